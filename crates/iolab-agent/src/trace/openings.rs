//! Paths that calls are given, taken while these are under way: of files that are opened, and of
//! directories that a process changes to.
//!
//! Trace points of system calls tell the address of a path only (Linux up to 6.18), and a look at
//! the descriptor comes too late for a file that is closed at once. So a program in the kernel
//! copies the path when the call ends: by then the kernel has read it, and its page is there. What
//! lies there may have been changed meanwhile: a path is what the program says. A second program
//! follows tasks when they are made, as those of other processes are nobody's business. Left out:
//! kernels that refuse such programs, or do not tell them registers (before Linux 5.15), other
//! processors than x86-64, and calls that are rarely used: there the looks remain.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use iolab_trace::ring::Description;

use crate::sys::bpf::{Helper, Label, Map, MapKind, Program, Register, RingReader};

/// Arguments of a call: its path, and the directory that this begins in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// The path is the first one, and begins in the current directory.
    Path,
    /// A directory, then the path.
    DirectoryAndPath,
}

/// Calls whose paths are taken: the kernel's number and name, arguments, and what becomes of the
/// path. C libraries use these. The kernel takes long to leave a trace point, so there are no more.
#[cfg(target_arch = "x86_64")]
const CALLS: [(libc::c_long, &str, Arguments, bool); 3] = [
    (libc::SYS_open, "open", Arguments::Path, OPENS),
    (libc::SYS_openat, "openat", Arguments::DirectoryAndPath, OPENS),
    (libc::SYS_chdir, "chdir", Arguments::Path, !OPENS),
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [(libc::c_long, &str, Arguments, bool); 0] = [];
/// True if a call opens what it is given.
const OPENS: bool = true;
/// Places of the first and the second argument in struct `pt_regs` of
/// arch/x86/include/asm/ptrace.h.
const ARGUMENTS_AT: [i32; 2] = [112, 104];
/// Places of the call's number and of its result in what the trace point gives.
const NUMBER_AT: i16 = 8;
const RESULT_AT: i16 = 16;
/// `AT_FDCWD` of include/uapi/linux/fcntl.h: the current directory.
pub const CURRENT_DIRECTORY: i32 = -100;
/// `PATH_MAX` of include/uapi/linux/limits.h.
const PATH_MAX: i32 = 4096;
/// Time, thread, result, directory and call, before the path.
const HEAD_BYTES: i32 = 40;
/// Room for some fifty thousand calls between two readings.
const RING_BYTES: u32 = 1 << 22;
/// Tasks that are followed at once.
const TASKS_MAX: u32 = 1 << 16;
/// Paths that are kept until the events of their calls come.
const KEPT_MAX: usize = 1 << 14;
/// An event that has not come by then was lost, or is not recorded.
const KEPT_NS: u64 = 1_000_000_000;
/// Time between the program and the trace point's event of the same call, which comes second: it is
/// long if whoever is between both is interrupted.
const APART_NS: u64 = 50_000_000;

/// A path that a call was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Time at which the call ended, on the trace's clock.
    time_ns: u64,
    /// Descriptor of the directory that the path begins in, or [`CURRENT_DIRECTORY`].
    pub directory: i32,
    /// The path as it was given.
    pub path: Vec<u8>,
}

#[cfg(test)]
impl Opening {
    /// One of no time.
    pub fn of(directory: i32, path: &str) -> Self {
        Self { time_ns: 0, directory, path: path.into() }
    }
}

/// Use that a call has made of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    /// Opened as this descriptor.
    Opened(u64),
    /// Taken as the current directory.
    Entered,
}

/// Paths by thread and what was done with them, in the order in which they came.
type Kept = HashMap<(u32, Done), Vec<Opening>>;

/// Paths of all processes.
#[derive(Debug)]
pub struct Openings {
    reader: RingReader,
    kept: Kept,
    count: usize,
    tasks: Map,
    _points: Vec<File>,
}

impl Openings {
    /// Begins to watch, if the kernel lets it; `root` is a tracefs.
    pub fn watch(root: &Path) -> io::Result<Self> {
        let points: Vec<u16> =
            CALLS.iter().filter_map(|(_, call, ..)| number_of(root, call)).collect();
        if points.is_empty() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let scratch = Map::create(MapKind::PerCpu, 4, (HEAD_BYTES + PATH_MAX).cast_unsigned(), 1)?;
        let ring = Map::create(MapKind::Ring, 0, 0, RING_BYTES)?;
        let reader = RingReader::open(&ring, RING_BYTES)?;
        let tasks = Map::create(MapKind::Recent, 4, 4, TASKS_MAX)?;
        let mut points = program(&tasks, &scratch, &ring).run_at(&points)?;
        let (fork, parent_at, child_at) = point_of_forks(root).ok_or(io::ErrorKind::Unsupported)?;
        points.extend(program_of_forks(&tasks, parent_at, child_at).run_at(&[fork])?);
        Ok(Self { reader, kept: Kept::new(), count: 0, tasks, _points: points })
    }

    /// Follows a task, and all that it makes from now on.
    pub fn follow(&self, task: u32) {
        // One that finds no room has no names.
        let _ = self.tasks.set(task, 1);
    }

    /// The path with which a thread has done something, by the time of the call's event.
    pub fn of(&mut self, thread: u32, done: Done, time_ns: u64) -> Option<Opening> {
        self.read();
        take(self.kept.get_mut(&(thread, done))?, time_ns)
    }

    /// Reads what has come, so that there is room for more.
    pub fn read(&mut self) {
        let Self { reader, kept, count, .. } = self;
        reader.read(|record| {
            let Some((key, opening)) = parsed(record) else { return };
            if *count >= KEPT_MAX {
                forget_before(kept, opening.time_ns.saturating_sub(KEPT_NS));
                *count = kept.values().map(Vec::len).sum();
            }
            if *count < KEPT_MAX {
                kept.entry(key).or_default().push(opening);
                *count += 1;
            }
        });
    }
}

/// Drops openings from before a time.
fn forget_before(kept: &mut Kept, time_ns: u64) {
    kept.retain(|_, same| {
        same.retain(|opening| opening.time_ns >= time_ns);
        !same.is_empty()
    });
}

/// Takes the last opening before a time, and drops those before it.
fn take(openings: &mut Vec<Opening>, time_ns: u64) -> Option<Opening> {
    let count = openings.partition_point(|opening| opening.time_ns <= time_ns);
    let last = openings.drain(..count).next_back();
    last.filter(|opening| opening.time_ns + APART_NS >= time_ns)
}

/// Thread, deed and path of a record.
fn parsed(record: &[u8]) -> Option<((u32, Done), Opening)> {
    let (head, path) = record.split_at_checked(HEAD_BYTES as usize)?;
    let word = |index: usize| Some(u64::from_ne_bytes(*head[8 * index..].first_chunk()?));
    let path = path.strip_suffix(&[0])?.to_vec();
    let (thread, call) = (word(1)? as u32, word(4)?.cast_signed());
    let (.., opens) = CALLS.iter().find(|(number, ..)| *number == call)?;
    let done = if *opens { Done::Opened(word(2)?) } else { Done::Entered };
    // The kernel takes 32 bits of it.
    let directory = (word(3)? as u32).cast_signed();
    Some(((thread, done), Opening { time_ns: word(0)?, directory, path }))
}

// Registers that survive helpers, and the end of the stack.
const RECORD: Register = 6;
const RESULT: Register = 7;
const CALLERS: Register = 8;
const CALL: Register = 9;
const STACK: Register = 10;
// Places below the end of the stack: directory and path of the call, key of the scratch memory.
const DIRECTORY: i16 = -8;
const PATH: i16 = -16;
const KEY: i16 = -24;

/// The program at the end of a call.
fn program(tasks: &Map, scratch: &Map, ring: &Map) -> Program {
    let mut program = Program::default();
    let end = program.label();
    program.load(RESULT, 1, RESULT_AT);
    program.load_half(CALL, 1, NUMBER_AT);
    program.go_if_negative(RESULT, end);
    program.call(Helper::ProcessAndThread);
    program.store_half(STACK, KEY, 0);
    look_up(&mut program, tasks, end);
    push_arguments(&mut program, end);
    push_record(&mut program, (scratch, ring), end);
    program.here(end);
    program.end();
    program
}

/// Brings directory and path of a call onto the stack; goes on elsewhere if it is another call.
fn push_arguments(program: &mut Program, end: Label) {
    program.call(Helper::Task);
    program.copy(1, 0);
    program.call(Helper::Registers);
    program.copy(CALLERS, 0);
    let [of_path, of_both] = [Arguments::Path, Arguments::DirectoryAndPath].map(|it| {
        let way = program.label();
        for (number, ..) in CALLS.iter().filter(|(_, _, arguments, _)| *arguments == it) {
            program.go_if(CALL, *number as i32, way);
        }
        way
    });
    program.go(end);
    let copy = |program: &mut Program, place: i16, at| {
        point_to(program, 1, place);
        program.set(2, 8);
        program.copy(3, CALLERS);
        program.add(3, at);
        program.call(Helper::ReadKernel);
    };
    let [first_at, second_at] = ARGUMENTS_AT;
    let both = program.label();
    program.here(of_path);
    copy(program, PATH, first_at);
    program.set(1, CURRENT_DIRECTORY);
    program.store(STACK, DIRECTORY, 1);
    program.go(both);
    program.here(of_both);
    copy(program, DIRECTORY, first_at);
    copy(program, PATH, second_at);
    program.here(both);
}

/// Puts a record together and appends it to the ring.
fn push_record(program: &mut Program, (scratch, ring): (&Map, &Map), end: Label) {
    program.set(1, 0);
    program.store(STACK, KEY, 1);
    look_up(program, scratch, end);
    program.copy(RECORD, 0);
    program.call(Helper::Clock);
    program.store(RECORD, 0, 0);
    program.call(Helper::ProcessAndThread);
    program.store(RECORD, 8, 0);
    program.store(RECORD, 16, RESULT);
    program.load(1, STACK, DIRECTORY);
    program.store(RECORD, 24, 1);
    program.store(RECORD, 32, CALL);
    program.copy(1, RECORD);
    program.add(1, HEAD_BYTES);
    program.set(2, PATH_MAX);
    program.load(3, STACK, PATH);
    program.call(Helper::ReadUserText);
    program.go_if_negative(0, end);
    program.copy(3, 0);
    program.add(3, HEAD_BYTES);
    program.map(1, ring);
    program.copy(2, RECORD);
    program.set(4, 0);
    program.call(Helper::RingOutput);
}

/// The program at the birth of a task: what one that is followed makes is followed, too.
fn program_of_forks(tasks: &Map, parent_at: i16, child_at: i16) -> Program {
    const CONTEXT: Register = 6;
    const CHILD: i16 = DIRECTORY;
    const VALUE: i16 = PATH;
    let mut program = Program::default();
    let end = program.label();
    program.copy(CONTEXT, 1);
    program.load_half(1, CONTEXT, parent_at);
    program.store_half(STACK, KEY, 1);
    look_up(&mut program, tasks, end);
    program.load_half(1, CONTEXT, child_at);
    program.store_half(STACK, CHILD, 1);
    program.set(1, 1);
    program.store_half(STACK, VALUE, 1);
    program.map(1, tasks);
    point_to(&mut program, 2, CHILD);
    point_to(&mut program, 3, VALUE);
    program.set(4, 0);
    program.call(Helper::MapUpdate);
    program.here(end);
    program.end();
    program
}

/// Looks the key on the stack up; goes on elsewhere if there is no value.
fn look_up(program: &mut Program, map: &Map, end: Label) {
    program.map(1, map);
    point_to(program, 2, KEY);
    program.call(Helper::MapLookup);
    program.go_if(0, 0, end);
}

/// Lets a register point to a place on the stack.
fn point_to(program: &mut Program, register: Register, place: i16) {
    program.copy(register, STACK);
    program.add(register, i32::from(place));
}

/// The kernel's number of the trace point at the birth of a task, and where it has both tasks.
fn point_of_forks(root: &Path) -> Option<(u16, i16, i16)> {
    let folder = root.join("events/sched/sched_process_fork");
    let text = fs::read_to_string(folder.join("format")).ok()?;
    let found = Description::parse("sched_process_fork", &text).ok()?;
    let place = |name: &str| i16::try_from(found.fields.get(name)?.offset).ok();
    Some((found.id, place("parent_pid")?, place("child_pid")?))
}

/// The kernel's number of the trace point at the end of a call.
fn number_of(root: &Path, call: &str) -> Option<u16> {
    let path = root.join(format!("events/syscalls/sys_exit_{call}/id"));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(time_ns: u64, path: &str) -> Opening {
        Opening { time_ns, ..Opening::of(CURRENT_DIRECTORY, path) }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_record_is_taken_apart() {
        let here = u64::from(CURRENT_DIRECTORY.cast_unsigned());
        let record = |call: libc::c_long| {
            let words = [5, 9 << 32 | 7, 3, here, call as u64];
            words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
        };
        let whole = |call| [record(call), b"a/b\0".to_vec()].concat();
        let opened = ((7, Done::Opened(3)), opening(5, "a/b"));
        assert_eq!(parsed(&whole(libc::SYS_openat)), Some(opened));
        let entered = ((7, Done::Entered), opening(5, "a/b"));
        assert_eq!(parsed(&whole(libc::SYS_chdir)), Some(entered));
        assert_eq!(parsed(&whole(libc::SYS_read)), None);
        assert_eq!(parsed(&record(libc::SYS_open)), None, "no path");
        assert_eq!(parsed(&record(libc::SYS_open)[..20]), None);
    }

    #[test]
    fn an_event_has_the_opening_before_it() {
        let mut openings = vec![opening(100, "a"), opening(2_000, "b"), opening(9_000, "c")];
        // An interrupt of 5 us came between both: the next opening is nearer.
        assert_eq!(take(&mut openings, 7_000).unwrap().path, b"b");
        assert_eq!(openings, [opening(9_000, "c")], "what came before is over");
        assert_eq!(take(&mut openings, 8_000), None, "it has none");
        assert_eq!(take(&mut openings, 80_000_000), None, "that was another call's");
        openings = vec![opening(9_000, "c")];
        let mut kept = Kept::from([
            ((7, Done::Entered), openings),
            ((7, Done::Opened(4)), vec![opening(5, "d")]),
        ]);
        forget_before(&mut kept, 6);
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [(7, Done::Entered)]);
    }
}
