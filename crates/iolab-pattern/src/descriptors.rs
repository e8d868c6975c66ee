//! Descriptors of processes: which file a number stands for, and where in it the next access is.
//!
//! Threads share a table; a new process has a copy of it whose entries are the same open file
//! descriptions, so that both move one position (open(2), "open file description").

use std::collections::{BTreeSet, HashMap};

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
    /// Descriptors of all tables that stand for it; without one it is closed.
    references: u32,
}

#[derive(Debug, Default)]
struct Table {
    /// Description and whether it is closed on exec, by descriptor.
    entries: HashMap<u64, (usize, bool)>,
    /// Descriptors that another program does not inherit.
    closing: BTreeSet<u64>,
    /// Tasks that use it; without one its place is used again.
    users: u32,
    /// Entries that it had at first.
    copied: usize,
}

/// Tables of all tasks.
#[derive(Debug, Default)]
pub struct Descriptors {
    tables: Vec<Table>,
    free_tables: Vec<usize>,
    /// Table of each task.
    tasks: HashMap<u32, usize>,
    /// Tasks that are making another one; the child may come first in the text.
    making: Vec<(u32, bool)>,
    /// Entries of all tables that were copied from other ones.
    copied: usize,
    /// The same of all tables that ever were.
    copied_ever: usize,
    /// Tasks whose tables would have had more than there is room for.
    pub unfollowed: u64,
    /// Tasks that came while several others were making one: their parents are guessed.
    pub guessed: u64,
    descriptions: Vec<OpenFile>,
    free_descriptions: Vec<usize>,
    /// Descriptions that were closed since they were asked for, with their files.
    closed: Vec<(FileId, usize)>,
    files: Vec<File>,
    /// File that stands for all behind the first [`FILES_MAX`].
    further: Option<FileId>,
    by_name: HashMap<Vec<u8>, FileId>,
    /// Openings of files whose paths nobody knows, by task and descriptor.
    unnamed: HashMap<(u32, u64), u64>,
    /// Files by what calls named them, where `-y` shows another path: the last one of each.
    by_text: HashMap<Vec<u8>, FileId>,
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
/// Descriptors that tables have from others, some 40 bytes each: 2000 processes with 1000 of them.
const COPIED_MAX: usize = 1 << 21;
/// The same of a whole trace, so that its time is bounded: 60,000 processes with 1000 of them.
const COPIED_EVER_MAX: usize = 1 << 26;
/// Descriptors that a process has from its beginning.
pub const STANDARD: u64 = 2;

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

    /// Descriptions that were closed since the last time, with their files.
    pub fn take_closed(&mut self) -> std::vec::Drain<'_, (FileId, usize)> {
        self.closed.drain(..)
    }

    fn table_of(&mut self, task: u32) -> usize {
        if let Some(table) = self.tasks.get(&task) {
            return *table;
        }
        self.guessed += u64::from(self.making.len() > 1);
        let table = match self.making.last().copied() {
            Some((parent, shares)) if parent != task => self.child_table(parent, shares),
            _ => self.new_table(HashMap::new()),
        };
        self.join(task, table);
        table
    }

    fn join(&mut self, task: u32, table: usize) {
        self.tables[table].users += 1;
        if let Some(before) = self.tasks.insert(task, table) {
            self.leave(before);
        }
    }

    /// A task does not use a table any more.
    fn leave(&mut self, table: usize) {
        let left = &mut self.tables[table];
        left.users -= 1;
        if left.users > 0 {
            return;
        }
        self.copied -= std::mem::take(&mut left.copied);
        for (id, _) in std::mem::take(&mut left.entries).into_values() {
            self.release(id);
        }
        self.free_tables.push(table);
    }

    /// A table with entries, each of which refers to its description once more.
    fn new_table(&mut self, entries: HashMap<u64, (usize, bool)>) -> usize {
        for (id, _) in entries.values() {
            self.descriptions[*id].references += 1;
        }
        let copied = entries.len();
        self.copied += copied;
        self.copied_ever += copied;
        let closing = entries.iter().filter(|(_, (_, is_closed))| *is_closed);
        let closing = closing.map(|(descriptor, _)| *descriptor).collect();
        let table = Table { entries, closing, users: 0, copied };
        if let Some(free) = self.free_tables.pop() {
            self.tables[free] = table;
            return free;
        }
        self.tables.push(table);
        self.tables.len() - 1
    }

    fn child_table(&mut self, parent: u32, shares: bool) -> usize {
        let table = self.table_of(parent);
        if shares {
            return table;
        }
        let entries = &self.tables[table].entries;
        let has_room = self.copied + entries.len() <= COPIED_MAX
            && self.copied_ever + entries.len() <= COPIED_EVER_MAX;
        self.unfollowed += u64::from(!has_room);
        let entries = if has_room { entries.clone() } else { HashMap::new() };
        self.new_table(entries)
    }

    /// A descriptor stands for a description; whatever it stood for has one reference less.
    fn refer(&mut self, table: usize, descriptor: u64, id: usize, is_closed_on_exec: bool) {
        self.descriptions[id].references += 1;
        let entry = (id, is_closed_on_exec);
        if is_closed_on_exec {
            self.tables[table].closing.insert(descriptor);
        } else {
            self.tables[table].closing.remove(&descriptor);
        }
        if let Some((before, _)) = self.tables[table].entries.insert(descriptor, entry) {
            self.release(before);
        }
    }

    fn release(&mut self, id: usize) {
        let description = &mut self.descriptions[id];
        description.references -= 1;
        if description.references == 0 {
            self.closed.extend(description.file.map(|file| (file, id)));
            self.free_descriptions.push(id);
        }
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
                self.join(child, table);
            }
        }
    }

    /// A task has ended: its number may be another one's.
    pub fn end_task(&mut self, task: u32) {
        if let Some(table) = self.tasks.remove(&task) {
            self.leave(table);
        }
        self.making.retain(|(making, _)| *making != task);
    }

    /// A task runs another program.
    pub fn execute(&mut self, task: u32) {
        let mut table = self.table_of(task);
        if self.tables[table].users > 1 {
            table = self.child_table(task, false);
            self.join(task, table);
        }
        let own = &mut self.tables[table];
        for descriptor in std::mem::take(&mut own.closing) {
            if let Some((id, _)) = self.tables[table].entries.remove(&descriptor) {
                self.release(id);
            }
        }
    }

    /// The file of a name, if somebody named it before.
    pub fn known(&self, name: &[u8]) -> Option<FileId> {
        self.by_name.get(name).or_else(|| self.by_text.get(name)).copied()
    }

    /// Remembers how a call named a file, as long as there is room.
    pub fn remember(&mut self, text: Option<Vec<u8>>, file: FileId) {
        let Some(text) = text.filter(|text| *text != self.files[file].name) else { return };
        if self.by_text.len() < FILES_MAX || self.by_text.contains_key(&text) {
            self.by_text.insert(text, file);
        }
    }

    /// The file of a name; it is new if nobody named it before.
    pub fn file_named(&mut self, name: Vec<u8>) -> FileId {
        if let Some(file) = self.by_name.get(&name) {
            return *file;
        }
        if self.files.len() == FILES_MAX {
            return *self.further.get_or_insert_with(|| {
                self.files.push(File { name: b"(all other files)".to_vec(), ..File::default() });
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
    ///
    /// Returns its description.
    pub fn open(
        &mut self,
        task: u32,
        descriptor: u64,
        name: Option<Vec<u8>>,
        flags: OpenFlags,
    ) -> usize {
        let name = name.filter(|name| is_file(name));
        let file = name.map(|name| self.file_named(name));
        if let Some(file) = file {
            let file = &mut self.files[file];
            if flags.is_truncated {
                file.size = Some(0);
            }
        }
        let description =
            OpenFile { file, position: Some(0), is_sought: false, flags, references: 0 };
        let id = if let Some(free) = self.free_descriptions.pop() {
            self.descriptions[free] = description;
            free
        } else {
            self.descriptions.push(description);
            self.descriptions.len() - 1
        };
        let table = self.table_of(task);
        self.refer(table, descriptor, id, flags.is_closed_on_exec);
        id
    }

    /// Tell whether a call has said what a descriptor stands for.
    pub fn is_known(&self, task: u32, descriptor: Option<u64>) -> bool {
        let table = self.tasks.get(&task).map(|table| &self.tables[*table]);
        table.zip(descriptor).is_some_and(|(table, one)| table.entries.contains_key(&one))
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
            if self.descriptions[id].file.is_some_and(|file| self.files[file].is_unnamed) {
                return path.and_then(|path| self.rename(id, path));
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
        let id = self.open(task, descriptor, Some(name), OpenFlags::default());
        let file = self.descriptions[id].file?;
        self.files[file].is_opened_before = true;
        self.files[file].is_unnamed = !is_named;
        Some(id)
    }

    /// A task opened a file whose path nobody knows.
    pub fn open_unnamed(&mut self, task: u32, descriptor: u64, flags: OpenFlags) -> usize {
        let mut name = unnamed(task, descriptor);
        // Each opening may be one of another file.
        if self.files.len() < FILES_MAX {
            let openings = self.unnamed.entry((task, descriptor)).or_default();
            *openings += 1;
            if *openings > 1 {
                name.extend_from_slice(format!(" (opening {openings})").as_bytes());
            }
        }
        let id = self.open(task, descriptor, Some(name), flags);
        if let Some(file) = self.descriptions[id].file.filter(|file| Some(*file) != self.further) {
            self.files[file].is_unnamed = true;
        }
        id
    }

    /// The path of a description that had none becomes known; what it moved before stays where it
    /// was counted.
    fn rename(&mut self, id: usize, path: Vec<u8>) -> Option<usize> {
        let file = is_file(&path).then(|| self.file_named(path));
        self.descriptions[id].file = file;
        file.map(|_| id)
    }

    /// Another descriptor of the same description.
    pub fn duplicate(&mut self, task: u32, from: u64, to: u64, is_closed_on_exec: bool) {
        let table = self.table_of(task);
        match self.tables[table].entries.get(&from).copied() {
            Some((id, _)) => self.refer(table, to, id, is_closed_on_exec),
            None => self.close(task, to, to),
        }
    }

    /// Descriptors from one to another were closed.
    pub fn close(&mut self, task: u32, first: u64, last: u64) {
        let table = self.table_of(task);
        let Table { entries, closing, .. } = &mut self.tables[table];
        let gone: Vec<(usize, bool)> = if last.saturating_sub(first) < entries.len() as u64 {
            (first..=last)
                .filter_map(|descriptor| {
                    closing.remove(&descriptor);
                    entries.remove(&descriptor)
                })
                .collect()
        } else {
            let is_gone =
                |descriptor: &u64, _: &mut (usize, bool)| (first..=last).contains(descriptor);
            closing.retain(|descriptor| !(first..=last).contains(descriptor));
            entries.extract_if(is_gone).map(|(_, entry)| entry).collect()
        };
        for (id, _) in gone {
            self.release(id);
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
