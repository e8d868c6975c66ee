//! Names of files by the paths that calls were given, in the order of the calls.
//!
//! Events are heeded in the order of their times, so the directory that a relative path begins in
//! is known as it was then. Left out: relative paths whose directory nobody knows any more; they
//! stay relative. Links are not followed, and `..` stays.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use iolab_trace::Event;

use super::descriptors::{escaped, note, number, path_of};
use super::openings::{CURRENT_DIRECTORY, Done, Opening, Openings};
use super::processes;

/// `CLONE_FS` of include/uapi/linux/sched.h.
const CLONE_FS: u64 = 0x200;
/// Places that are remembered.
const PLACES_MAX: usize = 1 << 16;
/// Bytes of paths of descriptors that are remembered.
const OPEN_BYTES_MAX: usize = 16 << 20;

/// Paths of the files that recorded tasks open.
#[derive(Debug)]
pub struct Paths {
    openings: Openings,
    known: Known,
}

impl Paths {
    /// Begins to watch, if the kernel lets it; `root` is a tracefs.
    pub fn watch(root: &Path) -> io::Result<Self> {
        Ok(Self { openings: Openings::watch(root)?, known: Known::default() })
    }

    /// Takes what has come, so that there is room for more.
    pub fn read(&mut self) {
        self.openings.read();
    }

    /// Notes where a process is, which has not begun or is recorded from now on.
    pub fn hold(&mut self, pid: u32) {
        for thread in processes::threads_of(&[pid]) {
            self.known.inherit(pid, thread, true);
        }
    }

    /// Takes the next event; a note of the file that it opens.
    pub fn heed(&mut self, event: &Event) -> Option<Event> {
        let (name, fields) = event.point();
        let (task, time_ns) = (event.pid, event.time_ns);
        match name {
            b"syscalls:sys_exit_open" | b"syscalls:sys_exit_openat" => {
                let descriptor = number(fields, b"ret=")?;
                let opening = self.openings.of(task, Done::Opened(descriptor), time_ns)?;
                let path = self.known.whole(task, &opening);
                let text = format!("iolab:opened fd={descriptor} path={path}");
                self.known.open(task, descriptor, path);
                return Some(note(task, time_ns, event.cpu, text));
            }
            b"syscalls:sys_enter_close" => self.known.close(task, number(fields, b"fd=")?),
            b"syscalls:sys_exit_chdir" if number(fields, b"ret=") == Some(0) => {
                let opening = self.openings.of(task, Done::Entered, time_ns);
                let path = opening.map(|opening| self.known.whole(task, &opening));
                self.known.change(task, path.filter(|path| path.starts_with('/')));
            }
            b"syscalls:sys_enter_fchdir" => {
                let path = self.known.open_as(task, number(fields, b"fd=")?);
                self.known.entering.insert(task, path);
            }
            b"syscalls:sys_exit_fchdir" => {
                let path = self.known.entering.remove(&task)?;
                if number(fields, b"ret=") == Some(0) {
                    self.known.change(task, path);
                }
            }
            b"task:task_newtask" => {
                let shares = number(fields, b"clone_flags=").unwrap_or(0) & CLONE_FS != 0;
                self.known.inherit(task, number(fields, b"pid=")? as u32, shares);
            }
            b"sched:sched_process_exit" => self.known.forget(task),
            _ => {}
        }
        None
    }
}

/// Directories and files of tasks at the time of the event that was taken last.
#[derive(Debug, Default)]
struct Known {
    /// Numbers of the places where tasks are; those that share one change it together.
    of_tasks: HashMap<u32, usize>,
    /// Paths of places; one that is not known is looked up.
    places: Vec<Option<String>>,
    /// Paths of directories that tasks are about to enter.
    entering: HashMap<u32, Option<String>>,
    /// Paths of descriptors.
    open: HashMap<(u32, u64), String>,
    open_bytes: usize,
}

impl Known {
    /// The path of an opening with its directory, as far as that is known.
    fn whole(&mut self, task: u32, opening: &Opening) -> String {
        let path = plain(&opening.path);
        if path.starts_with(b"/") {
            return escaped(&path);
        }
        let directory = match u64::try_from(opening.directory) {
            Ok(descriptor) => self.open_as(task, descriptor),
            Err(_) if opening.directory == CURRENT_DIRECTORY => self.directory_of(task),
            Err(_) => None,
        };
        match directory {
            Some(directory) if path.is_empty() => directory,
            Some(directory) => format!("{}/{}", directory.trim_end_matches('/'), escaped(&path)),
            None => escaped(&path),
        }
    }

    /// The path of a descriptor.
    fn open_as(&self, task: u32, descriptor: u64) -> Option<String> {
        let known = self.open.get(&(task, descriptor)).cloned();
        known.or_else(|| path_of(task, descriptor))
    }

    fn open(&mut self, task: u32, descriptor: u64, path: String) {
        if self.open_bytes + path.len() > OPEN_BYTES_MAX || self.open.len() >= PLACES_MAX {
            self.open.clear();
            self.open_bytes = 0;
        }
        self.open_bytes += path.len();
        self.open.insert((task, descriptor), path);
    }

    fn close(&mut self, task: u32, descriptor: u64) {
        if let Some(path) = self.open.remove(&(task, descriptor)) {
            self.open_bytes -= path.len();
        }
    }

    /// The path of the directory that a task is in.
    fn directory_of(&mut self, task: u32) -> Option<String> {
        let place = self.place_of(task);
        if self.places[place].is_none() {
            let path = fs::read_link(format!("/proc/{task}/cwd")).ok();
            self.places[place] = path.map(|path| escaped(path.as_os_str().as_bytes()));
        }
        self.places[place].clone()
    }

    /// A task has another directory from now on; one that is not known is looked up before it
    /// changes again.
    fn change(&mut self, task: u32, path: Option<String>) {
        let place = self.place_of(task);
        self.places[place] = path;
        self.directory_of(task);
    }

    /// A task begins where its parent is.
    fn inherit(&mut self, parent: u32, task: u32, shares: bool) {
        let path = self.directory_of(parent);
        let place = if shares { self.place_of(parent) } else { self.add(path) };
        self.of_tasks.insert(task, place);
    }

    fn forget(&mut self, task: u32) {
        self.of_tasks.remove(&task);
        self.entering.remove(&task);
    }

    fn place_of(&mut self, task: u32) -> usize {
        if let Some(place) = self.of_tasks.get(&task) {
            return *place;
        }
        let place = self.add(None);
        self.of_tasks.insert(task, place);
        place
    }

    fn add(&mut self, path: Option<String>) -> usize {
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
            self.of_tasks.clear();
        }
        self.places.push(path);
        self.places.len() - 1
    }
}

/// A path without what leads nowhere: empty parts and `.`. What `..` leads to depends on links.
fn plain(path: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    let mut plain = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    plain.extend(parts.join(&b'/'));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: u32 = u32::MAX;

    fn whole(known: &mut Known, task: u32, directory: i32, path: &str) -> String {
        known.whole(task, &Opening::of(directory, path))
    }

    #[test]
    fn a_path_that_was_given_is_told_with_its_directory() {
        let mut known = Known::default();
        let own = std::process::id();
        let here = std::env::current_dir().unwrap();
        assert_eq!(whole(&mut known, own, CURRENT_DIRECTORY, "//a/./b c"), "/a/b\\040c");
        let found = whole(&mut known, own, CURRENT_DIRECTORY, "./x/../y");
        assert_eq!(found, format!("{}/x/../y", escaped(here.as_os_str().as_bytes())));
        assert_eq!(whole(&mut known, NOBODY, CURRENT_DIRECTORY, "x"), "x");
        assert_eq!(whole(&mut known, own, -5, "x"), "x");
        known.open(NOBODY, 3, "/tmp".to_owned());
        assert_eq!(whole(&mut known, NOBODY, 3, "x"), "/tmp/x");
        known.close(NOBODY, 3);
        assert_eq!(whole(&mut known, NOBODY, 3, "x"), "x");
        assert_eq!(known.open_bytes, 0);
    }

    #[test]
    fn a_directory_is_inherited_shared_and_changed() {
        let mut known = Known::default();
        let (copy, thread) = (NOBODY - 1, NOBODY - 2);
        let of = |known: &mut Known, task| whole(known, task, CURRENT_DIRECTORY, "x");
        known.change(NOBODY, Some("/tmp".to_owned()));
        known.inherit(NOBODY, copy, false);
        known.inherit(NOBODY, thread, true);
        known.change(thread, Some("/var".to_owned()));
        assert_eq!(of(&mut known, NOBODY), "/var/x");
        assert_eq!(of(&mut known, copy), "/tmp/x");
        known.forget(copy);
        assert_eq!(of(&mut known, copy), "x");
    }
}
