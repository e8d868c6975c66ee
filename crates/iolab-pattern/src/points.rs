//! System calls as the kernel's trace points record them (layer `file-calls`), made into the calls
//! that strace prints, so that one piece of code follows both.
//!
//! Trace points tell numbers. The recorder looks files up by their descriptors, always after the
//! call; such a name counts if nothing closed the descriptor until then, for which events are read
//! ahead. Else the path counts that the call was given, if the kernel told it. Left out: what lies
//! in the memory of programs, as requests of `io_submit` do.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use iolab_trace::Error;
use iolab_trace::error::Caveat;
use iolab_trace::event::{Action, Event};
use iolab_trace::native::{FILE_CALLS, LAYERS_FACT};
use iolab_trace::ring::GIVEN;
use iolab_trace::source::{Facts, Source};

use crate::text::scan;

/// Events that are read ahead at most: a name that is not certain by then does not count.
const AHEAD_MAX: usize = 1 << 18;
/// Time of a look that is none: it was certain when the call ended.
const GIVEN_NS: u64 = 0;
/// Tasks that are in a call at once.
const BEGUN_MAX: usize = 1 << 16;
/// Names that wait for the calls that use them.
const NAMES_MAX: usize = 1 << 16;
/// `CLONE_FILES` of include/uapi/linux/sched.h.
const CLONE_FILES: i64 = 0x400;

/// An argument as strace would print it.
#[derive(Clone, Copy)]
enum Argument {
    /// A descriptor, with its path behind it.
    File(&'static str),
    /// A number.
    Number(&'static str),
    /// The address of an offset: NULL, or there is one.
    Place(&'static str),
    /// An address of which nothing is known.
    Unknown,
    /// A list of which nothing is known.
    List,
}

use Argument::{File, List, Number, Place, Unknown};

/// Calls, sorted by name: arguments in the order of strace, by the names of the kernel's fields.
const CALLS: &[(&str, &[Argument])] = &[
    ("close", &[File("fd")]),
    ("close_range", &[Number("fd"), Number("max_fd"), Number("flags")]),
    ("copy_file_range", &[File("fd_in"), Place("off_in"), File("fd_out"), Place("off_out")]),
    ("creat", &[Unknown]),
    ("dup", &[File("fildes")]),
    ("dup2", &[File("oldfd"), Number("newfd")]),
    ("dup3", &[File("oldfd"), Number("newfd"), Number("flags")]),
    ("execve", &[]),
    ("execveat", &[]),
    ("fallocate", &[File("fd"), Number("mode"), Number("offset"), Number("len")]),
    ("fcntl", &[File("fd"), Number("cmd"), Number("arg")]),
    ("fdatasync", &[File("fd")]),
    ("fsync", &[File("fd")]),
    ("ftruncate", &[File("fd"), Number("length")]),
    ("io_getevents", &[Number("ctx_id")]),
    ("io_pgetevents", &[Number("ctx_id")]),
    ("io_submit", &[Number("ctx_id"), Number("nr"), List]),
    ("io_uring_setup", &[Number("entries")]),
    ("lseek", &[File("fd"), Number("offset"), Number("whence")]),
    ("mmap", &[Unknown, Number("len"), Number("prot"), Unknown, File("fd")]),
    ("msync", &[Number("start"), Number("len"), Number("flags")]),
    ("open", &[Unknown, Number("flags")]),
    ("openat", &[Unknown, Unknown, Number("flags")]),
    ("openat2", &[Unknown, Unknown, Unknown]),
    ("pread64", &[File("fd"), Unknown, Number("count"), Number("pos")]),
    ("preadv", &[File("fd"), Unknown, Number("vlen"), Number("pos_l")]),
    ("preadv2", &[File("fd"), Unknown, Number("vlen"), Number("pos_l"), Number("flags")]),
    ("pwrite64", &[File("fd"), Unknown, Number("count"), Number("pos")]),
    ("pwritev", &[File("fd"), Unknown, Number("vlen"), Number("pos_l")]),
    ("pwritev2", &[File("fd"), Unknown, Number("vlen"), Number("pos_l"), Number("flags")]),
    ("read", &[File("fd"), Unknown, Number("count")]),
    ("readv", &[File("fd"), Unknown, Number("vlen")]),
    ("sendfile64", &[File("out_fd"), File("in_fd"), Place("offset"), Number("count")]),
    ("splice", &[File("fd_in"), Place("off_in"), File("fd_out"), Place("off_out")]),
    ("sync", &[]),
    ("sync_file_range", &[File("fd"), Number("offset"), Number("nbytes"), Number("flags")]),
    ("syncfs", &[File("fd")]),
    ("write", &[File("fd"), Unknown, Number("count")]),
    ("writev", &[File("fd"), Unknown, Number("vlen")]),
];

/// Something that a task did, or that is known of it.
#[derive(Debug)]
pub enum PointDeed {
    /// A call, which is in [`PointReader::body`].
    Call {
        /// Thread.
        task: u32,
        /// Its beginning.
        begin_ns: u64,
    },
    /// Birth of another task.
    Made {
        /// Thread.
        task: u32,
        /// The new one.
        child: u32,
        /// True if both have one table of descriptors.
        shares: bool,
    },
    /// File that was open before the recording began.
    Held(Held),
    /// End of a task.
    Ended(u32),
}

/// A descriptor from before the recording.
#[derive(Debug)]
pub struct Held {
    /// Process.
    pub task: u32,
    /// Its number.
    pub descriptor: u64,
    /// Path.
    pub path: Vec<u8>,
    /// Flags of open(2).
    pub flags: i64,
    /// Position.
    pub position: u64,
    /// Size of a regular file.
    pub size: Option<u64>,
}

/// Deed that waits for its turn.
enum Waiting {
    Deed(PointDeed),
    Call(Ended),
    /// The first of the looks.
    Look,
}

/// A call that has ended: payload of its first event, and result.
struct Ended {
    task: u32,
    begin_ns: u64,
    end_ns: u64,
    begun: Vec<u8>,
    result: i64,
}

/// A look at a descriptor.
struct Look {
    task: u32,
    group: u32,
    descriptor: u64,
    path: Vec<u8>,
    /// 0: it is the path that the call was given.
    seen_ns: u64,
    is_stale: bool,
}

/// True if a recording has the calls by which files are opened, moved in and closed.
pub fn has_calls(facts: &Facts) -> bool {
    facts.get(LAYERS_FACT).is_some_and(|layers| layers.split(", ").any(|it| it == FILE_CALLS))
}

/// Calls of a recording, each when it ended.
pub struct PointReader<'a> {
    source: &'a mut dyn Source,
    event: Event,
    waiting: VecDeque<Waiting>,
    looks: VecDeque<Look>,
    begun: HashMap<u32, (u64, Vec<u8>)>,
    /// Process of a thread, and whoever shares its table.
    groups: HashMap<u32, u32>,
    /// Paths by thread and descriptor, for the next call.
    names: HashMap<(u32, u64), Vec<u8>>,
    body: Vec<u8>,
    now_ns: u64,
    is_at_end: bool,
}

impl<'a> PointReader<'a> {
    /// Reader of a source.
    pub fn new(source: &'a mut dyn Source) -> Self {
        Self {
            source,
            event: Event::default(),
            waiting: VecDeque::new(),
            looks: VecDeque::new(),
            begun: HashMap::new(),
            groups: HashMap::new(),
            names: HashMap::new(),
            body: Vec::new(),
            now_ns: 0,
            is_at_end: false,
        }
    }

    /// The call of the last deed as strace prints it, from its name on.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Findings about the recording.
    pub fn caveats(&self) -> Vec<Caveat> {
        self.source.caveats().to_vec()
    }

    /// Number of reads and writes that had not ended.
    pub fn cut_off(&self) -> usize {
        let is_transfer = |(_, payload): &&(u64, Vec<u8>)| {
            let name = parts(payload).0.strip_prefix(ENTER).unwrap_or_default();
            matches!(crate::calls::effect_of(name), Some(crate::calls::CallEffect::Transfer(_)))
        };
        self.begun.values().filter(is_transfer).count()
    }

    /// Goes to the next deed; None at the end.
    pub fn advance(&mut self) -> Result<Option<PointDeed>, Error> {
        loop {
            if !self.is_first_certain() {
                self.read()?;
                continue;
            }
            match self.waiting.pop_front() {
                None => return Ok(None),
                Some(Waiting::Deed(deed)) => return Ok(Some(deed)),
                Some(Waiting::Call(call)) => {
                    if self.print(&call) {
                        let Ended { task, begin_ns, .. } = call;
                        return Ok(Some(PointDeed::Call { task, begin_ns }));
                    }
                }
                Some(Waiting::Look) => {
                    let look = self.looks.pop_front().filter(|look| !look.is_stale);
                    if self.names.len() >= NAMES_MAX {
                        self.names.clear();
                    }
                    let Some(Look { task, descriptor, path, seen_ns, .. }) = look else { continue };
                    let name = self.names.entry((task, descriptor));
                    // A look sees through links.
                    if seen_ns == GIVEN_NS {
                        name.or_insert(path);
                    } else {
                        name.insert_entry(path);
                    }
                }
            }
        }
    }

    /// True if what comes next does not depend on events that are still to be read.
    fn is_first_certain(&mut self) -> bool {
        match (self.waiting.front(), self.looks.front_mut()) {
            (None, _) => self.is_at_end,
            (Some(Waiting::Look), Some(look)) => {
                let is_known = look.is_stale || self.is_at_end || self.now_ns >= look.seen_ns;
                look.is_stale |= !is_known && self.waiting.len() >= AHEAD_MAX;
                is_known || look.is_stale
            }
            _ => true,
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        if !self.source.next(&mut self.event)? {
            self.is_at_end = true;
            return Ok(());
        }
        self.now_ns = self.now_ns.max(self.event.time_ns);
        if self.event.action != Action::Point {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.event.payload);
        self.take(payload);
        Ok(())
    }

    fn take(&mut self, payload: Vec<u8>) {
        let (task, time_ns) = (self.event.pid, self.event.time_ns);
        let (name, fields) = parts(&payload);
        if let Some(call) = name.strip_prefix(ENTER) {
            if let Some((first, last)) = closed(call, fields) {
                self.forget(task, first, last);
            }
            if self.begun.len() < BEGUN_MAX || self.begun.contains_key(&task) {
                self.begun.insert(task, (time_ns, payload));
            }
            return;
        }
        if let Some(call) = name.strip_prefix(EXIT) {
            self.end(task, call, value(fields, "ret").unwrap_or(-1));
            return;
        }
        let deed = match name {
            b"iolab:descriptor" => {
                return self.look(task, fields, value(fields, "seen").map(|seen| seen as u64));
            }
            b"iolab:opened" => return self.look(task, fields, Some(GIVEN_NS)),
            b"iolab:held" => held(task, fields).map(PointDeed::Held),
            b"iolab:task" => number(fields, "group").map(|group| {
                self.groups.insert(task, group);
                PointDeed::Made { task: group, child: task, shares: true }
            }),
            b"task:task_newtask" => number(fields, "pid").map(|child| {
                let shares = value(fields, "clone_flags").unwrap_or(0) & CLONE_FILES != 0;
                if shares {
                    self.groups.insert(child, self.group_of(task));
                } else {
                    self.groups.remove(&child);
                }
                PointDeed::Made { task, child, shares }
            }),
            b"sched:sched_process_exit" => {
                self.begun.remove(&task);
                self.groups.remove(&task);
                Some(PointDeed::Ended(task))
            }
            _ => None,
        };
        self.waiting.extend(deed.map(Waiting::Deed));
    }

    fn end(&mut self, task: u32, call: &[u8], result: i64) {
        let begun = self.begun.remove(&task);
        let is_same = |payload: &[u8]| parts(payload).0.strip_prefix(ENTER) == Some(call);
        // One whose beginning was lost, or was before the recording, moved nobody knows what.
        let Some((begin_ns, begun)) = begun.filter(|(_, payload)| is_same(payload)) else {
            return;
        };
        if result == 0 && call.starts_with(b"execve") {
            self.forget(task, 0, u64::MAX);
        }
        let end_ns = self.event.time_ns;
        self.waiting.push_back(Waiting::Call(Ended { task, begin_ns, end_ns, begun, result }));
    }

    fn group_of(&self, task: u32) -> u32 {
        self.groups.get(&task).copied().unwrap_or(task)
    }

    fn look(&mut self, task: u32, fields: &[u8], seen_ns: Option<u64>) {
        let found = number(fields, "fd").zip(seen_ns).zip(path(fields));
        let Some(((descriptor, seen_ns), path)) = found else { return };
        // Of a path that was given, all is part of the name.
        let path = match seen_ns {
            GIVEN_NS => word(fields, "path").unwrap_or_default().to_vec(),
            _ => path,
        };
        let descriptor = u64::from(descriptor);
        let group = self.group_of(task);
        self.looks.push_back(Look { task, group, descriptor, path, seen_ns, is_stale: false });
        self.waiting.push_back(Waiting::Look);
    }

    /// Descriptors are closed: what is seen there later is something else.
    fn forget(&mut self, task: u32, first: u64, last: u64) {
        let (group, now_ns) = (self.group_of(task), self.event.time_ns);
        let is_of = |look: &&mut Look| {
            look.group == group
                && (first..=last).contains(&look.descriptor)
                && look.seen_ns >= now_ns
        };
        self.looks.iter_mut().filter(is_of).for_each(|look| look.is_stale = true);
    }

    /// Prints a call; false if it is none of those that are followed.
    fn print(&mut self, call: &Ended) -> bool {
        let (name, fields) = parts(&call.begun);
        let name = name.strip_prefix(ENTER).unwrap_or_default();
        let Ok(row) = CALLS.binary_search_by(|(row, _)| row.as_bytes().cmp(name)) else {
            return false;
        };
        let mut text = std::mem::take(&mut self.body);
        text.clear();
        text.extend_from_slice(name);
        text.push(b'(');
        for (index, argument) in CALLS[row].1.iter().enumerate() {
            text.extend_from_slice(if index > 0 { b", " } else { b"" });
            match argument {
                File(field) => self.print_file(&mut text, call.task, value(fields, field)),
                Number(field) => print(&mut text, value(fields, field).unwrap_or(0)),
                Place(field) => text.extend_from_slice(word(fields, field).unwrap_or(GIVEN)),
                Unknown => text.extend_from_slice(b"NULL"),
                List => text.extend_from_slice(b"[...]"),
            }
        }
        text.extend_from_slice(b") = ");
        if name.starts_with(b"open") || name == b"creat" {
            self.print_file(&mut text, call.task, Some(call.result));
        } else {
            print(&mut text, call.result);
        }
        if matches!(name, b"dup2" | b"dup3") {
            // Whatever it stood for before.
            self.names.remove(&(call.task, call.result as u64));
        }
        let lasted = call.end_ns.saturating_sub(call.begin_ns);
        let (seconds, rest) = (lasted / 1_000_000_000, lasted % 1_000_000_000);
        text.extend_from_slice(format!(" <{seconds}.{rest:09}>").as_bytes());
        self.body = text;
        true
    }

    fn print_file(&mut self, text: &mut Vec<u8>, task: u32, number: Option<i64>) {
        // The kernel takes 32 bits, and libraries put anything into the others.
        let number = i64::from(number.unwrap_or(-1) as i32);
        print(text, number);
        if let Some(path) = self.names.remove(&(task, number as u64)) {
            text.push(b'<');
            text.extend_from_slice(&path);
            text.push(b'>');
        }
    }
}

const ENTER: &[u8] = b"syscalls:sys_enter_";
const EXIT: &[u8] = b"syscalls:sys_exit_";

fn print(text: &mut Vec<u8>, number: i64) {
    let mut digits = String::new();
    let _ = write!(digits, "{number}");
    text.extend_from_slice(digits.as_bytes());
}

/// Name and fields of a payload.
fn parts(payload: &[u8]) -> (&[u8], &[u8]) {
    match payload.iter().position(|byte| *byte == b' ') {
        Some(at) => (&payload[..at], &payload[at + 1..]),
        None => (payload, b""),
    }
}

/// Descriptors that a call closes.
fn closed(call: &[u8], fields: &[u8]) -> Option<(u64, u64)> {
    let one = |name: &str| number(fields, name).map(u64::from);
    match call {
        b"close" => one("fd").map(|fd| (fd, fd)),
        b"dup2" | b"dup3" => one("newfd").map(|fd| (fd, fd)),
        b"close_range" => one("fd").zip(one("max_fd")),
        _ => None,
    }
}

fn held(task: u32, fields: &[u8]) -> Option<Held> {
    Some(Held {
        task,
        descriptor: u64::from(number(fields, "fd")?),
        path: scan::unescaped(&path(fields)?)?,
        flags: value(fields, "flags").unwrap_or(0),
        position: value(fields, "pos").unwrap_or(0) as u64,
        size: value(fields, "size").map(|size| size as u64),
    })
}

/// The escaped path of a note, without what says that it is deleted.
fn path(fields: &[u8]) -> Option<Vec<u8>> {
    let path = word(fields, "path")?;
    Some(path.strip_suffix(b"\\040(deleted)").unwrap_or(path).to_vec())
}

/// The word behind `NAME=`.
fn word<'a>(fields: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut words = fields.split(|byte| *byte == b' ');
    words.find_map(|word| word.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The number behind `NAME=`; one above 2^63 is a negative one of 64 bits.
fn value(fields: &[u8], name: &str) -> Option<i64> {
    let text = std::str::from_utf8(word(fields, name)?).ok()?;
    text.parse().ok().or_else(|| text.parse::<u64>().ok().map(u64::cast_signed))
}

/// The same of 32 bits without a sign.
fn number(fields: &[u8], name: &str) -> Option<u32> {
    let value = value(fields, name)?;
    u32::try_from(value).ok()
}

#[cfg(test)]
mod tests;
