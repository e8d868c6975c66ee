//! Names of files by the paths that calls were given, in the order of the calls.
//!
//! Events are heeded in the order of their times, so the directory that a relative path begins in
//! is known as it was then, or is not known, and then there is no name: nothing here is looked up
//! later. Left out: paths with `..`, which may lead through a link; relative ones behind a
//! descriptor that was not opened as a directory, or as `.`, while it was recorded; tasks with
//! another root. A directory that is renamed later keeps the name by which it was entered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;

use iolab_trace::Event;

use super::descriptors::{escaped, note, number};
use super::openings::{CURRENT_DIRECTORY, Done, Opening, Openings};
use super::processes;

// include/uapi/linux/sched.h
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_NEWNS: u64 = 0x2_0000;
/// `O_DIRECTORY` and `O_TMPFILE` without it, of include/uapi/asm-generic/fcntl.h.
const DIRECTORY: u64 = 0o200_000;
const UNNAMED: u64 = 0o20_000_000;
// include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// Tasks that are remembered.
const TASKS_MAX: usize = 1 << 14;
/// Directories of a table that are remembered: a task that is born copies them.
const OPEN_MAX: usize = 64;
/// Bytes of paths of directories that have been opened, until all are forgotten.
const OPEN_BYTES_MAX: usize = 32 << 20;
/// `PATH_MAX` of include/uapi/linux/limits.h.
const PATH_MAX: usize = 4096;

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

    /// Follows a process from now on: one that has not begun, or runs.
    pub fn hold(&mut self, pid: u32) {
        self.known.hold(pid);
        for thread in processes::threads_of(&[pid]) {
            self.openings.follow(thread);
            self.known.inherit(pid, thread, CLONE_FS | CLONE_FILES);
        }
    }

    /// Takes the next event; a note of the file that it opens.
    pub fn heed(&mut self, event: &Event) -> Option<Event> {
        let (name, fields) = event.point();
        let (task, time_ns) = (event.pid, event.time_ns);
        let known = &mut self.known;
        if let Some(call) = name.strip_prefix(b"syscalls:sys_enter_") {
            known.begin(task, call, fields);
            return None;
        }
        if let Some(call) = name.strip_prefix(b"syscalls:sys_exit_") {
            let result = number(fields, b"ret=");
            let begun = known.begun.remove(&task);
            match (call, result) {
                (b"open" | b"openat", Some(descriptor)) => {
                    let opening = self.openings.of(task, Done::Opened(descriptor), time_ns);
                    let flags = begun.map_or(0, |begun| begun.flags);
                    let path = known.open(task, descriptor, flags, &opening?)?;
                    let text = format!("iolab:opened fd={descriptor} path={path}");
                    return Some(note(task, time_ns, event.cpu, text));
                }
                (b"chdir", Some(0)) => {
                    let opening = self.openings.of(task, Done::Entered, time_ns);
                    known.enter(task, opening);
                }
                (b"fchdir", Some(0)) => {
                    let path = begun.and_then(|begun| known.open_as(task, begun.descriptor));
                    known.place_of(task).borrow_mut().path = path.map(|path| path.to_string());
                }
                (b"dup" | b"dup2" | b"dup3" | b"fcntl", Some(descriptor)) => {
                    if let Some(begun) = begun {
                        known.duplicate(task, begun.descriptor, descriptor);
                    }
                }
                (b"execve" | b"execveat", Some(0)) => known.execute(task),
                (b"chroot" | b"pivot_root" | b"setns", Some(0)) => known.leave(task),
                (b"unshare", Some(0)) => known.unshare(task, begun.map_or(!0, |it| it.flags)),
                _ => {}
            }
            return None;
        }
        match name {
            b"task:task_newtask" => {
                let flags = number(fields, b"clone_flags=").unwrap_or(0);
                known.inherit(task, number(fields, b"pid=")? as u32, flags);
            }
            b"sched:sched_process_exit" => known.forget(task),
            _ => {}
        }
        None
    }
}

/// A call that has begun.
#[derive(Debug)]
struct Begun {
    flags: u64,
    descriptor: u64,
}

/// Directory that a task is in.
#[derive(Clone, Debug, Default)]
struct Place {
    path: Option<String>,
    /// True if absolute paths begin elsewhere, too.
    is_elsewhere: bool,
}

/// Paths of directories by descriptor.
type Table = HashMap<u64, Rc<str>>;

/// Place and descriptors of a task, which others may share.
#[derive(Clone, Debug, Default)]
struct Task {
    place: Rc<RefCell<Place>>,
    table: Rc<RefCell<Table>>,
}

/// Directories of tasks at the time of the event that was taken last.
#[derive(Debug, Default)]
struct Known {
    tasks: HashMap<u32, Task>,
    begun: HashMap<u32, Begun>,
    /// Bytes of paths that came into tables since these were emptied.
    open_bytes: usize,
}

impl Known {
    /// Notes where a process is.
    fn hold(&mut self, pid: u32) {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
        let path = link("cwd").map(|path| escaped(path.as_os_str().as_bytes()));
        let is_elsewhere = link("root").is_none_or(|root| root != Path::new("/"));
        *self.place_of(pid).borrow_mut() = Place { path, is_elsewhere };
    }

    fn begin(&mut self, task: u32, call: &[u8], fields: &[u8]) {
        let field = |name: &[u8]| number(fields, name);
        match call {
            b"open" | b"openat" => self.note_begin(task, field(b"flags="), None),
            b"unshare" => self.note_begin(task, field(b"unshare_flags="), None),
            b"fchdir" => self.note_begin(task, None, field(b"fd=")),
            b"close" => self.close(task, field(b"fd="), field(b"fd=")),
            b"close_range" => self.close(task, field(b"fd="), field(b"max_fd=")),
            b"dup" => self.note_begin(task, None, field(b"fildes=")),
            b"dup2" | b"dup3" => {
                self.close(task, field(b"newfd="), field(b"newfd="));
                self.note_begin(task, None, field(b"oldfd="));
            }
            b"fcntl" if matches!(field(b"cmd="), Some(F_DUPFD | F_DUPFD_CLOEXEC)) => {
                self.note_begin(task, None, field(b"fd="));
            }
            _ => {}
        }
    }

    fn note_begin(&mut self, task: u32, flags: Option<u64>, descriptor: Option<u64>) {
        if self.begun.len() >= TASKS_MAX {
            self.begun.clear();
        }
        let (flags, descriptor) = (flags.unwrap_or(!0), descriptor.unwrap_or(!0));
        self.begun.insert(task, Begun { flags, descriptor });
    }

    /// The path of an opening, if it is certain.
    fn whole(&mut self, task: u32, opening: &Opening) -> Option<String> {
        let path = plain(&opening.path)?;
        let place = self.place_of(task).borrow().clone();
        if place.is_elsewhere {
            return None;
        }
        if path.starts_with(b"/") {
            return Some(escaped(&path));
        }
        let directory = match u64::try_from(opening.directory) {
            Ok(descriptor) => self.open_as(task, descriptor)?.to_string(),
            Err(_) if opening.directory == CURRENT_DIRECTORY => place.path?,
            Err(_) => return None,
        };
        if path.is_empty() {
            return Some(directory);
        }
        let whole = format!("{}/{}", directory.trim_end_matches('/'), escaped(&path));
        (whole.len() <= PATH_MAX).then_some(whole)
    }

    /// A task has opened a file; its path.
    fn open(
        &mut self,
        task: u32,
        descriptor: u64,
        flags: u64,
        opening: &Opening,
    ) -> Option<String> {
        self.task(task).table.borrow_mut().remove(&descriptor);
        if flags & UNNAMED != 0 {
            return None;
        }
        let path = self.whole(task, opening)?;
        if flags & DIRECTORY != 0 || opening.path.ends_with(b".") {
            self.open_bytes += path.len();
            if self.open_bytes > OPEN_BYTES_MAX {
                self.open_bytes = 0;
                self.tasks.values_mut().for_each(|task| task.table = Rc::default());
            }
            self.remember(task, descriptor, path.as_str().into());
        }
        Some(path)
    }

    fn remember(&mut self, task: u32, descriptor: u64, path: Rc<str>) {
        let mut table = self.task(task).table.borrow_mut();
        if table.len() < OPEN_MAX {
            table.insert(descriptor, path);
        }
    }

    /// The path of a directory's descriptor.
    fn open_as(&mut self, task: u32, descriptor: u64) -> Option<Rc<str>> {
        self.task(task).table.borrow().get(&descriptor).cloned()
    }

    fn duplicate(&mut self, task: u32, from: u64, to: u64) {
        if let Some(path) = self.open_as(task, from) {
            self.remember(task, to, path);
        }
    }

    fn close(&mut self, task: u32, first: Option<u64>, last: Option<u64>) {
        let Some((first, last)) = first.zip(last) else { return };
        let table = &self.task(task).table;
        table.borrow_mut().retain(|descriptor, _| !(first..=last).contains(descriptor));
    }

    /// A task has changed its directory.
    fn enter(&mut self, task: u32, opening: Option<Opening>) {
        let path = opening.and_then(|opening| self.whole(task, &opening));
        self.place_of(task).borrow_mut().path = path;
    }

    /// A task has another root from now on.
    fn leave(&mut self, task: u32) {
        *self.place_of(task).borrow_mut() = Place { path: None, is_elsewhere: true };
    }

    /// A task begins another program: descriptors may have been closed by that.
    fn execute(&mut self, task: u32) {
        self.task(task).table = Rc::default();
    }

    /// A task shares no more what it shared.
    fn unshare(&mut self, task: u32, flags: u64) {
        let parts = self.task(task);
        if flags & (CLONE_FS | CLONE_NEWNS) != 0 {
            let place = parts.place.borrow().clone();
            parts.place = Rc::new(RefCell::new(place));
        }
        if flags & CLONE_FILES != 0 {
            let table = parts.table.borrow().clone();
            parts.table = Rc::new(RefCell::new(table));
        }
    }

    /// A task begins with what its parent has, or shares that.
    fn inherit(&mut self, parent: u32, task: u32, flags: u64) {
        let of_parent = self.task(parent).clone();
        if parent == task {
            return;
        }
        *self.task(task) = of_parent;
        self.unshare(task, !flags & (CLONE_FS | CLONE_FILES));
    }

    fn forget(&mut self, task: u32) {
        self.tasks.remove(&task);
        self.begun.remove(&task);
    }

    fn place_of(&mut self, task: u32) -> &Rc<RefCell<Place>> {
        &self.task(task).place
    }

    fn task(&mut self, task: u32) -> &mut Task {
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&task) {
            self.tasks.clear();
        }
        self.tasks.entry(task).or_default()
    }
}

/// A path without what leads nowhere: empty parts and `.`; none where `..` may lead anywhere.
fn plain(path: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&&b".."[..]) {
        return None;
    }
    let mut plain = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    plain.extend(parts.join(&b'/'));
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u32 = u32::MAX;
    const OTHER: u32 = u32::MAX - 1;

    fn whole(known: &mut Known, task: u32, directory: i32, path: &str) -> Option<String> {
        known.whole(task, &Opening::of(directory, path))
    }

    fn here(known: &mut Known, task: u32) -> Option<String> {
        whole(known, task, CURRENT_DIRECTORY, "x")
    }

    fn enter(known: &mut Known, task: u32, path: &str) {
        known.enter(task, Some(Opening::of(CURRENT_DIRECTORY, path)));
    }

    fn open(known: &mut Known, task: u32, descriptor: u64, path: &str) -> Option<String> {
        known.open(task, descriptor, DIRECTORY, &Opening::of(CURRENT_DIRECTORY, path))
    }

    #[test]
    fn a_path_that_was_given_is_told_with_its_directory_if_that_is_certain() {
        let mut known = Known::default();
        let told = |known: &mut Known, directory, path: &str| whole(known, ONE, directory, path);
        assert_eq!(told(&mut known, CURRENT_DIRECTORY, "//a/./b c").unwrap(), "/a/b\\040c");
        assert_eq!(here(&mut known, ONE), None, "nobody knows where it is");
        enter(&mut known, ONE, "/tmp/");
        assert_eq!(here(&mut known, ONE).unwrap(), "/tmp/x");
        assert_eq!(told(&mut known, CURRENT_DIRECTORY, "a/../b"), None);
        assert_eq!(told(&mut known, -5, "x"), None);
        assert_eq!(told(&mut known, 3, "x"), None, "nobody knows what 3 is");
        let deep = "d".repeat(PATH_MAX);
        assert_eq!(told(&mut known, CURRENT_DIRECTORY, &deep), None);
        known.enter(ONE, None);
        assert_eq!(here(&mut known, ONE), None);
        enter(&mut known, ONE, "in");
        assert_eq!(here(&mut known, ONE), None, "nobody knows in what");
    }

    #[test]
    fn a_directory_is_inherited_shared_and_changed() {
        let mut known = Known::default();
        let (copy, thread) = (OTHER, OTHER - 1);
        enter(&mut known, ONE, "/tmp");
        known.inherit(ONE, copy, 0);
        known.inherit(ONE, thread, CLONE_FS | CLONE_FILES);
        enter(&mut known, thread, "/var");
        assert_eq!(here(&mut known, ONE).unwrap(), "/var/x");
        assert_eq!(here(&mut known, copy).unwrap(), "/tmp/x");
        known.unshare(thread, CLONE_FS);
        enter(&mut known, thread, "/usr");
        assert_eq!(here(&mut known, ONE).unwrap(), "/var/x");
        known.forget(copy);
        assert_eq!(here(&mut known, copy), None, "its number is another's");
        known.leave(ONE);
        enter(&mut known, ONE, "/tmp");
        assert_eq!(whole(&mut known, ONE, CURRENT_DIRECTORY, "/etc/x"), None, "of what root?");
    }

    #[test]
    fn a_descriptor_of_a_directory_ends_with_all_that_may_close_it() {
        let mut known = Known::default();
        let fields: [(&[u8], &[u8]); 3] = [
            (b"close", b"fd=3"),
            (b"close_range", b"fd=2 max_fd=4294967295"),
            (b"dup2", b"oldfd=9 newfd=3"),
        ];
        for (call, fields) in fields {
            assert_eq!(open(&mut known, ONE, 3, "/tmp").unwrap(), "/tmp");
            known.inherit(ONE, OTHER, 0);
            assert_eq!(whole(&mut known, ONE, 3, "x").unwrap(), "/tmp/x");
            known.begin(ONE, call, fields);
            assert_eq!(whole(&mut known, ONE, 3, "x"), None);
            assert_eq!(whole(&mut known, OTHER, 3, "x").unwrap(), "/tmp/x", "its own table");
            known.execute(OTHER);
            assert_eq!(whole(&mut known, OTHER, 3, "x"), None);
        }
        open(&mut known, ONE, 3, "/tmp");
        known.duplicate(ONE, 3, 7);
        known.duplicate(ONE, 4, 8);
        assert_eq!(whole(&mut known, ONE, 7, "x").unwrap(), "/tmp/x");
        assert_eq!(whole(&mut known, ONE, 8, "x"), None);
        assert_eq!(open(&mut known, ONE, 3, "y"), None, "another file");
        assert_eq!(whole(&mut known, ONE, 3, "x"), None);
        enter(&mut known, ONE, "/tmp");
        let opening = Opening::of(CURRENT_DIRECTORY, ".");
        assert_eq!(known.open(ONE, 4, 0, &opening).unwrap(), "/tmp");
        assert_eq!(whole(&mut known, ONE, 4, "x").unwrap(), "/tmp/x");
        let opening = Opening::of(CURRENT_DIRECTORY, "/tmp");
        assert_eq!(known.open(ONE, 4, DIRECTORY | UNNAMED, &opening), None);
    }

    #[test]
    fn descriptors_of_directories_do_not_grow_without_bound() {
        let mut known = Known::default();
        open(&mut known, ONE, 3, "/tmp");
        for copy in 4..1_000 {
            known.duplicate(ONE, 3, copy);
        }
        assert_eq!(known.task(ONE).table.borrow().len(), OPEN_MAX);
        let long = format!("/{}", "d".repeat(PATH_MAX - 1));
        for _ in 0..=OPEN_BYTES_MAX / PATH_MAX {
            open(&mut known, OTHER, 3, &long);
        }
        assert!(known.task(ONE).table.borrow().is_empty() && known.open_bytes <= PATH_MAX);
    }
}
