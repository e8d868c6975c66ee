//! Files of descriptors, looked up while system calls are recorded: trace points tell numbers only.
//!
//! A look comes after the call, so it says when it was made: who reads the recording sees whether
//! the descriptor was closed meanwhile. Left out: files that are closed by then, of which only the
//! path that was given is known ([`paths`](super::paths)).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use iolab_trace::Event;
use iolab_trace::event::{Action, Categories};

use super::processes;

/// Descriptors that are remembered; one that is forgotten is looked up again.
const KNOWN_MAX: usize = 1 << 16;
/// Descriptors of one process that are noted before the recording begins.
const HELD_MAX: usize = 1 << 16;

/// Descriptors of tasks that have been looked up.
///
/// Events come CPU by CPU, so what a task did before it moved to another one may come after what it
/// did there.
#[derive(Debug, Default)]
pub struct Looks {
    /// Times of the events that they were looked up for.
    known: HashMap<(u32, u64), u64>,
    /// Times at which tasks began another program: names from before end there.
    begun: HashMap<u32, u64>,
}

impl Looks {
    /// Takes the event of a call; the note of a descriptor that it opens, or uses first.
    pub fn heed(&mut self, event: &Event) -> Option<Event> {
        let (name, fields) = event.point();
        if let Some(call) = name.strip_prefix(b"syscalls:sys_enter_") {
            return self.begin(event, call, fields);
        }
        match name.strip_prefix(b"syscalls:sys_exit_")? {
            b"open" | b"openat" | b"openat2" | b"creat" => {
                self.look(event, number(fields, b"ret=")?, true)
            }
            b"execve" | b"execveat" if number(fields, b"ret=") == Some(0) => {
                let (pid, now_ns) = (event.pid, event.time_ns);
                self.known.retain(|(task, _), seen_ns| *task != pid || *seen_ns > now_ns);
                self.begun.insert(pid, now_ns);
                None
            }
            _ => None,
        }
    }

    fn begin(&mut self, event: &Event, call: &[u8], fields: &[u8]) -> Option<Event> {
        match call {
            b"close" => {
                self.known.remove(&(event.pid, number(fields, b"fd=")?));
                None
            }
            b"dup2" | b"dup3" => {
                self.known.remove(&(event.pid, number(fields, b"newfd=")?));
                self.look(event, number(fields, b"oldfd=")?, false)
            }
            b"close_range" => {
                let (first, last) = (number(fields, b"fd=")?, number(fields, b"max_fd=")?);
                let is_gone = |fd: &u64| (first..=last).contains(fd);
                self.known.retain(|(task, fd), _| *task != event.pid || !is_gone(fd));
                None
            }
            b"chdir" | b"fchdir" | b"chroot" | b"pivot_root" | b"setns" | b"unshare" => None,
            b"sendfile64" => self.look(event, number(fields, b"in_fd=")?, false),
            b"copy_file_range" | b"splice" => self.look(event, number(fields, b"fd_in=")?, false),
            b"dup" => self.look(event, number(fields, b"fildes=")?, false),
            _ => self.look(event, number(fields, b"fd=")?, false),
        }
    }

    fn look(&mut self, event: &Event, descriptor: u64, is_new: bool) -> Option<Event> {
        if self.known.len() >= KNOWN_MAX || self.begun.len() >= KNOWN_MAX {
            self.known.clear();
            self.begun.clear();
        }
        if self.begun.get(&event.pid).is_some_and(|begun_ns| event.time_ns < *begun_ns) {
            return None;
        }
        let known = self.known.insert((event.pid, descriptor), event.time_ns);
        if known.is_some() && !is_new {
            return None;
        }
        let path = path_of(event.pid, descriptor)?;
        let text = format!("iolab:descriptor fd={descriptor} seen={} path={path}", now_ns());
        Some(note(event.pid, event.time_ns, event.cpu, text))
    }
}

/// Notes of the descriptors that a process has, and of the threads that share them.
pub fn held(pid: u32, now_ns: u64) -> Vec<Event> {
    let mut notes = Vec::new();
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    for entry in entries.take(HELD_MAX) {
        let name = entry.file_name().into_string().ok();
        let Some(descriptor) = name.and_then(|name| name.parse().ok()) else { continue };
        let Some(path) = path_of(pid, descriptor) else { continue };
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}"));
        let (position, flags) = place_in(&info.unwrap_or_default());
        let mut text = format!("iolab:held fd={descriptor} flags={flags} pos={position}");
        let found = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file);
        if let Some(found) = found {
            let _ = write!(text, " size={}", found.len());
        }
        let _ = write!(text, " path={path}");
        notes.push(note(pid, now_ns, 0, text));
    }
    let others = processes::threads_of(&[pid]).into_iter().filter(|thread| *thread != pid);
    notes.extend(others.map(|thread| note(thread, now_ns, 0, format!("iolab:task group={pid}"))));
    notes
}

/// Position and flags in a file of `/proc/PID/fdinfo`; the flags are octal there.
fn place_in(info: &str) -> (u64, u64) {
    let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let position = line("pos:").and_then(|text| text.parse().ok()).unwrap_or(0);
    let flags = line("flags:").and_then(|text| u64::from_str_radix(text, 8).ok()).unwrap_or(0);
    (position, flags)
}

/// Path of a descriptor as strace prints it; none if it is gone.
fn path_of(task: u32, descriptor: u64) -> Option<String> {
    let path = fs::read_link(format!("/proc/{task}/fd/{descriptor}")).ok()?;
    Some(escaped(path.as_os_str().as_bytes()))
}

/// A path without blanks and without what ends a path in a text of strace.
pub(super) fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for byte in path {
        match byte {
            b'"' | b'<' | b'>' | b'\\' => {
                let _ = write!(text, "\\{byte:03o}");
            }
            b'!'..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text
}

pub(super) fn note(pid: u32, time_ns: u64, cpu: u32, text: String) -> Event {
    Event {
        action: Action::Point,
        categories: Categories::of_action(Action::Point),
        time_ns,
        cpu,
        pid,
        payload: text.into_bytes(),
        ..Event::default()
    }
}

/// A number behind `NAME=`; none if it is negative.
pub(super) fn number(fields: &[u8], name: &[u8]) -> Option<u64> {
    let mut words = fields.split(|byte| *byte == b' ');
    let value = words.find_map(|word| word.strip_prefix(name))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn now_ns() -> u64 {
    use nix::sys::time::TimeValLike as _;
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn point(text: String) -> Event {
        note(std::process::id(), 5, 0, text)
    }

    #[test]
    fn a_descriptor_is_looked_up_when_it_is_opened_or_used_first() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a b>");
        let file = fs::File::create(&path).unwrap();
        let fd = file.as_raw_fd();
        let mut looks = Looks::default();
        let told = |event: Option<Event>| event.map(|it| String::from_utf8(it.payload).unwrap());
        let used = point(format!("syscalls:sys_enter_read fd={fd} count=1"));
        let text = told(looks.heed(&used)).unwrap();
        assert!(
            text.contains(&format!("fd={fd} seen=")) && text.ends_with("/a\\040b\\076"),
            "{text}"
        );
        assert_eq!(told(looks.heed(&used)), None, "once is enough");
        let opened = point(format!("syscalls:sys_exit_openat ret={fd}"));
        assert!(told(looks.heed(&opened)).is_some(), "it is another file, perhaps");
        assert_eq!(told(looks.heed(&point("syscalls:sys_exit_openat ret=-2".into()))), None);
        looks.heed(&point(format!("syscalls:sys_enter_close fd={fd}")));
        assert!(told(looks.heed(&used)).is_some());
    }

    /// A task reads, begins another program on another CPU and reads there; that CPU comes first.
    #[test]
    fn what_comes_late_from_before_another_program_is_not_taken_for_its_own() {
        let file = tempfile::tempfile().unwrap();
        let used = format!("syscalls:sys_enter_read fd={} count=1", file.as_raw_fd());
        let at = |time_ns, text: &str| Event { time_ns, ..point(text.to_owned()) };
        let mut looks = Looks::default();
        assert!(looks.heed(&at(1, &used)).is_some());
        assert!(looks.heed(&at(5, "syscalls:sys_exit_execve ret=0")).is_none());
        assert!(looks.heed(&at(3, &used)).is_none());
        assert!(looks.heed(&at(7, &used)).is_some());
    }

    #[test]
    fn what_a_process_holds_is_noted_with_place_and_size() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("held");
        fs::write(&path, "12345").unwrap();
        let file = fs::File::open(&path).unwrap();
        let wanted = format!("fd={} ", file.as_raw_fd());
        let notes = held(std::process::id(), 9);
        let texts: Vec<String> =
            notes.iter().map(|it| String::from_utf8(it.payload.clone()).unwrap()).collect();
        let it = texts.iter().find(|text| text.contains(&wanted)).unwrap();
        assert!(it.contains(" pos=0 size=5 path=") && it.ends_with("/held"), "{it}");
        assert!(texts.iter().any(|text| text.starts_with("iolab:task group=")), "threads of tests");
    }

    #[test]
    fn flags_are_octal() {
        assert_eq!(place_in("pos:\t4096\nflags:\t0102001\n"), (4096, 0o102_001));
        assert_eq!(place_in(""), (0, 0));
    }
}
