//! Descriptors of processes: which file a number stands for, and where in it the next access is.
//!
//! Threads share a table; a new process has a copy of it whose entries are the same open file
//! descriptions, so that both move one position (open(2), "open file description").

use std::collections::HashMap;

use crate::access::{File, FileId};
use crate::calls::OpenFlags;

/// An open file description.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile {
    /// File; None of pipes, sockets, terminals.
    pub file: Option<FileId>,
    /// Next byte; None at an end that is not known.
    pub position: Option<u64>,
    /// True if the last call on it set the position.
    pub is_sought: bool,
    /// Flags of its opening.
    pub flags: OpenFlags,
}

#[derive(Clone, Debug, Default)]
struct Table {
    /// Description and whether it is closed on exec, by descriptor.
    entries: HashMap<u64, (usize, bool)>,
}

/// Tables of all tasks.
#[derive(Debug, Default)]
pub struct Descriptors {
    tables: Vec<Table>,
    /// Table of each task.
    tasks: HashMap<u32, usize>,
    /// Tasks that are making another one; the child may come first in the text.
    making: Vec<(u32, bool)>,
    /// Tasks that came while several others were making one: their parents are guessed.
    pub guessed: u64,
    descriptions: Vec<OpenFile>,
    files: Vec<File>,
    /// File that stands for all behind the first [`FILES_MAX`].
    further: Option<FileId>,
    by_name: HashMap<Vec<u8>, FileId>,
}

/// Beginnings of names that `-y` prints for what is no file with positions.
const NO_FILES: &[&[u8]] = &[
    b"pipe:",
    b"socket:",
    b"anon_inode:",
    b"TCP:",
    b"TCPv6:",
    b"UDP:",
    b"UDPv6:",
    b"UNIX",
    b"NETLINK:",
    b"/proc/",
    b"/sys/",
    b"/dev/pts/",
    b"/dev/tty",
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/random",
    b"/dev/urandom",
];
/// Files that are told apart, so that memory is bounded.
const FILES_MAX: usize = 1 << 15;
/// Descriptors that a process has from its beginning.
const STANDARD: u64 = 2;

impl Descriptors {
    /// All files, by their numbers.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// A file to change.
    pub fn file_mut(&mut self, file: FileId) -> &mut File {
        &mut self.files[file]
    }

    /// A description to change.
    pub fn description_mut(&mut self, id: usize) -> &mut OpenFile {
        &mut self.descriptions[id]
    }

    /// A description.
    pub fn description(&self, id: usize) -> OpenFile {
        self.descriptions[id]
    }

    fn table_of(&mut self, task: u32) -> usize {
        if let Some(table) = self.tasks.get(&task) {
            return *table;
        }
        self.guessed += u64::from(self.making.len() > 1);
        let table = match self.making.last().copied() {
            Some((parent, shares)) if parent != task => self.child_table(parent, shares),
            _ => self.new_table(Table::default()),
        };
        self.tasks.insert(task, table);
        table
    }

    fn new_table(&mut self, table: Table) -> usize {
        self.tables.push(table);
        self.tables.len() - 1
    }

    fn child_table(&mut self, parent: u32, shares: bool) -> usize {
        let table = self.table_of(parent);
        if shares { table } else { self.new_table(self.tables[table].clone()) }
    }

    /// A task began to make another one.
    pub fn begin_fork(&mut self, task: u32, shares: bool) {
        self.making.retain(|(making, _)| *making != task);
        self.making.push((task, shares));
    }

    /// A task has made another one, or failed to.
    pub fn end_fork(&mut self, task: u32, child: Option<u32>, shares: bool) {
        self.making.retain(|(making, _)| *making != task);
        if let Some(child) = child {
            // Its first calls may have come before: then it has a table already.
            if !self.tasks.contains_key(&child) {
                let table = self.child_table(task, shares);
                self.tasks.insert(child, table);
            }
        }
    }

    /// A task has ended: its number may be another one's.
    pub fn end_task(&mut self, task: u32) {
        self.tasks.remove(&task);
        self.making.retain(|(making, _)| *making != task);
    }

    /// A task runs another program.
    pub fn execute(&mut self, task: u32) {
        let table = self.table_of(task);
        let mut own = self.tables[table].clone();
        own.entries.retain(|_, (_, is_closed)| !*is_closed);
        let table = self.new_table(own);
        self.tasks.insert(task, table);
    }

    /// The file of a name; it is new if nobody named it before.
    pub fn file_named(&mut self, name: Vec<u8>) -> FileId {
        if let Some(file) = self.by_name.get(&name) {
            return *file;
        }
        if self.files.len() == FILES_MAX {
            return *self.further.get_or_insert_with(|| {
                self.files.push(File { name: b"(further files)".to_vec(), ..File::default() });
                FILES_MAX
            });
        }
        if let Some(further) = self.further {
            return further;
        }
        let file = self.files.len();
        self.files.push(File { name: name.clone(), ..File::default() });
        self.by_name.insert(name, file);
        file
    }

    /// A task opened something; None as file: something that has no positions.
    pub fn open(&mut self, task: u32, descriptor: u64, name: Option<Vec<u8>>, flags: OpenFlags) {
        let name = name.filter(|name| is_file(name));
        let file = name.map(|name| self.file_named(name));
        if let Some(file) = file {
            let file = &mut self.files[file];
            file.is_direct |= flags.is_direct;
            file.is_synchronous |= flags.is_synchronous;
            if flags.is_truncated {
                file.size = Some(0);
            }
        }
        let description = OpenFile { file, position: Some(0), is_sought: false, flags };
        self.descriptions.push(description);
        let entry = (self.descriptions.len() - 1, flags.is_closed_on_exec);
        let table = self.table_of(task);
        self.tables[table].entries.insert(descriptor, entry);
    }

    /// Description of a descriptor; one that no call opened becomes one.
    ///
    /// `path` is what `-y` prints behind it, `is_placed` tells that the call has a position: then
    /// it is a file even if nothing is known of it.
    pub fn at(
        &mut self,
        task: u32,
        descriptor: u64,
        path: Option<Vec<u8>>,
        is_placed: bool,
    ) -> Option<usize> {
        let table = self.table_of(task);
        if let Some((id, _)) = self.tables[table].entries.get(&descriptor).copied() {
            let known = self.descriptions[id].file.map(|file| &self.files[file].name);
            // Another path: the descriptor was opened by a call that the trace lacks.
            if path.is_none() || known.is_none() || known == path.as_ref() {
                return self.descriptions[id].file.map(|_| id);
            }
            if path.as_deref().zip(known).is_some_and(|(path, name)| is_same(path, name)) {
                return Some(id);
            }
        }
        let is_named = path.is_some();
        if !is_named && descriptor <= STANDARD && !is_placed {
            return None;
        }
        let name = path.unwrap_or_else(|| unnamed(task, descriptor));
        if !is_file(&name) {
            return None;
        }
        self.open(task, descriptor, Some(name), OpenFlags::default());
        let table = self.table_of(task);
        let (id, _) = self.tables[table].entries.get(&descriptor).copied()?;
        let file = self.descriptions[id].file?;
        self.files[file].is_opened_before = true;
        Some(id)
    }

    /// Another descriptor of the same description.
    pub fn duplicate(&mut self, task: u32, from: u64, to: u64, is_closed_on_exec: bool) {
        let table = self.table_of(task);
        let entries = &mut self.tables[table].entries;
        match entries.get(&from).copied() {
            Some((id, _)) => entries.insert(to, (id, is_closed_on_exec)),
            None => entries.remove(&to),
        };
    }

    /// Descriptors from one to another were closed.
    pub fn close(&mut self, task: u32, first: u64, last: u64) {
        let table = self.table_of(task);
        let entries = &mut self.tables[table].entries;
        if first == last {
            entries.remove(&first);
        } else {
            entries.retain(|descriptor, _| !(first..=last).contains(descriptor));
        }
    }

    /// Marks all descriptors that are not known to be files.
    pub fn open_other(&mut self, task: u32, descriptor: u64) {
        self.open(task, descriptor, None, OpenFlags::default());
    }
}

fn unnamed(task: u32, descriptor: u64) -> Vec<u8> {
    if task == 0 {
        format!("descriptor {descriptor}").into_bytes()
    } else {
        format!("descriptor {descriptor} of process {task}").into_bytes()
    }
}

fn is_file(name: &[u8]) -> bool {
    !NO_FILES.iter().any(|beginning| name.starts_with(beginning))
}

/// True if a relative name may be that of an absolute path.
fn is_same(path: &[u8], name: &[u8]) -> bool {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    !name.starts_with(b"/") && path.ends_with(name)
}
