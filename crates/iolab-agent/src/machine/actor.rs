//! Reading and changing the machine, below a root prefix, for real or only on paper.
//!
//! A dry run takes the same way as a real one: whatever would change something is recorded as an
//! action and left out, and later reads see what would have been written. Left out: system calls
//! that return something to work with; they are wrapped in [`Machine::act`] by their users.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::paper::{Paper, Text};
use crate::error::{Error, Result};
use crate::journal::{Change, Journal, State};
use crate::owned_directory;
use crate::protocol::{Action, ActionKind, RunAs};
use crate::sys;

/// Folders in which root looks for programs, whatever the caller's PATH says.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Carrier-out of decisions.
#[derive(Debug)]
enum Executor {
    Real,
    DryRun,
    #[cfg(test)]
    Emulated(super::emulated::Kernel),
}

/// The machine under the agent.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    executor: Executor,
    class: &'static str,
    actions: Vec<Action>,
    journal: Option<Journal>,
    /// The user for whom root works: his files are touched with his rights.
    user: Option<RunAs>,
    /// Loop devices of ours, attached as long as they are open; none is open in a dry run.
    loops: BTreeMap<u32, Option<fs::File>>,
    /// Dry run: what would have changed.
    paper: Paper,
}

impl Machine {
    /// The running machine; nothing is changed in a dry run.
    pub fn new(is_dry_run: bool) -> Self {
        let executor = if is_dry_run { Executor::DryRun } else { Executor::Real };
        Self::with(PathBuf::from("/"), executor)
    }

    /// A tree of files that stands for a machine, with a kernel that treats them as Linux would.
    #[cfg(test)]
    pub fn emulated(root: PathBuf, kernel: super::emulated::Kernel) -> Self {
        Self::with(root, Executor::Emulated(kernel))
    }

    /// A tree of files in which nothing is changed.
    #[cfg(test)]
    pub fn rehearsing(root: &Path) -> Self {
        Self::with(root.to_path_buf(), Executor::DryRun)
    }

    /// The same tree and a new agent, as after a crash.
    #[cfg(test)]
    pub fn reborn(root: &Path) -> Self {
        Self::emulated(root.to_path_buf(), super::emulated::Kernel::default())
    }

    /// Lets journal and kernel fail after some steps.
    #[cfg(test)]
    pub fn burn_after(&mut self, fuse: &super::emulated::Fuse) {
        if let Executor::Emulated(kernel) = &mut self.executor {
            kernel.fuse = Some(fuse.clone());
        }
        if let Some(journal) = &mut self.journal {
            journal.fuse = Some(fuse.clone());
        }
    }

    fn with(root: PathBuf, executor: Executor) -> Self {
        Self {
            root,
            executor,
            class: "A",
            actions: Vec::new(),
            journal: None,
            user: None,
            loops: BTreeMap::new(),
            paper: Paper::default(),
        }
    }

    /// Tell whether nothing is really changed.
    pub fn is_dry_run(&self) -> bool {
        matches!(self.executor, Executor::DryRun)
    }

    /// Privilege class of the actions that follow.
    pub fn set_class(&mut self, class: &'static str) {
        self.class = class;
    }

    /// Lets files of the user be touched with his rights only.
    pub fn work_for(&mut self, user: Option<RunAs>) {
        self.user = user;
    }

    /// The user for whom root works, if it is for one.
    pub fn user(&self) -> Option<&RunAs> {
        self.user.as_ref()
    }

    /// Actions since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    // Reading.

    /// Contents of a file, without blanks around; in a dry run what it would hold by now.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        match self.paper.text(path) {
            Text::Known(text) => Ok(text.to_owned()),
            Text::Unknown => Err(Error::io("foresee", path, io::ErrorKind::NotFound)),
            Text::Unchanged => self.read_unchanged(path),
        }
    }

    /// Contents of a file on disk, whatever a dry run would have written.
    pub fn read_unchanged(&self, path: impl AsRef<Path>) -> Result<String> {
        let real = self.real(path.as_ref());
        let bytes = fs::read(&real).map_err(|error| Error::io("read", &real, error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Contents of a file, if it can be read.
    pub fn peek(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok()
    }

    /// Tell whether there is such a file.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.real(path.as_ref()).exists()
    }

    /// Names in a folder, sorted; none if it cannot be read.
    pub fn list(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let Ok(listing) = fs::read_dir(self.real(folder.as_ref())) else { return Vec::new() };
        let names = listing.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// End of a path, all links followed, as a path of the machine.
    pub fn resolve(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let resolved = fs::canonicalize(self.real(path.as_ref())).ok()?;
        let root = fs::canonicalize(&self.root).ok()?;
        Some(Path::new("/").join(resolved.strip_prefix(root).ok()?))
    }

    /// The same path below our root; that of a device which would exist, on its stand-in.
    pub fn real(&self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        for (name, stand_in) in self.paper.stand_ins() {
            for folder in ["sys/block", "sys/kernel/debug/block"] {
                if let Ok(rest) = relative.strip_prefix(Path::new(folder).join(name)) {
                    return self.root.join(folder).join(stand_in).join(rest);
                }
            }
        }
        self.root.join(relative)
    }

    /// In a dry run, lets `stand_in` show what `name`, which does not exist, would be like.
    pub fn let_stand_in(&mut self, name: &str, stand_in: &str) {
        assert!(self.is_dry_run(), "only a dry run invents devices");
        self.paper.let_stand_in(name, stand_in);
    }

    /// Tell whether a device exists on the paper of a dry run only.
    pub fn is_on_paper(&self, device: &str) -> bool {
        self.paper.is_stood_in_for(device)
    }

    /// Tell whether there is something at a path of our making, in a dry run on paper.
    pub fn has(&self, path: &Path) -> bool {
        if self.is_dry_run() {
            return self.paper.has(path);
        }
        !fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    // Changing.

    /// Does something, or only says so; none in a dry run.
    pub fn act<T>(
        &mut self,
        kind: ActionKind,
        target: impl Into<String>,
        detail: impl Into<String>,
        perform: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        let (target, detail) = (target.into(), detail.into());
        if self.is_dry_run() {
            self.paper.note(kind, &target);
        }
        self.actions.push(Action { class: self.class.to_owned(), kind, target, detail });
        if self.is_dry_run() {
            return Ok(None);
        }
        perform().map(Some)
    }

    /// Writes a knob's file; what it held is in the journal already.
    pub fn write_knob(&mut self, path: &Path, value: &str) -> Result<()> {
        let old = match self.paper.text(path) {
            Text::Unknown => "what the kernel chose".to_owned(),
            _ => active_or_whole(&self.peek(path).unwrap_or_default()).to_owned(),
        };
        self.actions.push(Action {
            class: self.class.to_owned(),
            kind: ActionKind::WriteKnob,
            target: path.display().to_string(),
            detail: format!("{old} -> {value}"),
        });
        self.write_file(path, value).map_err(|error| Error::io("write", path, error))
    }

    /// Does something that was listed when it was done for the first time.
    pub fn unlisted<T>(&mut self, perform: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let listed = self.actions.len();
        let done = perform(self);
        self.actions.truncate(listed);
        done
    }

    /// Says of the last action what is not known of it in advance.
    pub fn remark(&mut self, text: &str) {
        if let Some(action) = self.actions.last_mut() {
            action.detail += text;
        }
    }

    /// In a dry run, takes notice of a knob that is given a value.
    pub fn note_knob(&mut self, device: Option<&str>, knob: &str) {
        if self.is_dry_run() {
            self.paper.note_knob(device, knob);
        }
    }

    /// Tell whether a dry run has ever given a knob a value.
    pub fn was_set_on_paper(&self, device: Option<&str>, knob: &str) -> bool {
        self.paper.was_set(device, knob)
    }

    /// In a dry run, what the kernel would let a file hold in consequence of what was written.
    pub fn imagine(&mut self, path: &Path, text: &str) {
        if self.is_dry_run() {
            self.paper.write(path, text);
        }
    }

    /// In a dry run, a file or folder in which the kernel would have chosen new values.
    pub fn forget(&mut self, place: PathBuf) {
        if self.is_dry_run() {
            self.paper.forget(place);
        }
    }

    fn write_file(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let real = self.real(path);
        match &mut self.executor {
            Executor::Real => fs::OpenOptions::new()
                .write(true)
                .open(real)
                .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes())),
            Executor::DryRun => {
                self.paper.write(path, value);
                Ok(())
            }
            #[cfg(test)]
            Executor::Emulated(kernel) => kernel.write(&self.root, &real, value),
        }
    }

    /// Runs a program to its end; its failure is an error that quotes its last words.
    pub fn run(&mut self, kind: ActionKind, target: &str, command: &[String]) -> Result<String> {
        let line = command.join(" ");
        let output = self.act(kind, target, line.clone(), || run_program(command))?;
        let Some(output) = output else { return Ok(String::new()) };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let words = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        let words = text(words);
        // mkfs.xfs says what is wrong, and then 30 lines about itself.
        let said = words.split("Usage: ").map(str::trim).find(|part| !part.is_empty());
        Err(Error::Command {
            command: line,
            status: output.status.to_string(),
            output: last_lines(said.unwrap_or(&words), 5),
        })
    }

    /// Output of a program that only reads; `None` if it fails or nothing is done at all.
    pub fn ask(&self, command: &[String]) -> Option<String> {
        if self.is_dry_run() {
            return None;
        }
        let output = run_program(command).ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    }

    /// Keeps a loop device of ours open, hence attached; there is none to open in a dry run.
    pub fn hold_loop(&mut self, number: u32, device: Option<fs::File>) {
        self.loops.insert(number, device);
    }

    /// Numbers of the loop devices that are ours, those on paper included.
    pub fn loop_numbers(&self) -> impl Iterator<Item = u32> {
        self.loops.keys().copied()
    }

    /// Gives up a loop device, if it is ours and open.
    pub fn release_loop(&mut self, number: u32) -> Result<()> {
        let Some(device) = self.loops.remove(&number) else { return Ok(()) };
        let target = format!("/dev/loop{number}");
        self.act(ActionKind::DetachLoop, target.clone(), "", || {
            let device = device.as_ref().expect("it was opened, for this is no dry run");
            sys::detach_loop(device).map_err(|error| Error::io("detach", &target, error))
        })
        .map(drop)
    }

    // The journal.

    /// Begins to record changes in `journal`.
    pub fn attach_journal(&mut self, journal: Journal) {
        assert!(self.journal.is_none(), "one journal at a time");
        self.journal = Some(journal);
    }

    /// The journal, if there is one.
    pub fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Ends recording.
    pub fn detach_journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Must precede every change: on disk when this returns, in a dry run on paper.
    pub fn intend(&mut self, changes: Vec<Change>) -> Result<Vec<u64>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.journal
            .as_mut()
            .expect("changes are made only while a journal is open")
            .intend(changes)
    }

    /// Makes something that must be undone: announced, made, noted. Its number in the journal, and
    /// what it is; none in a dry run.
    ///
    /// What is there already is somebody else's: it is no longer announced, so that no restore
    /// removes it.
    pub fn make<T>(
        &mut self,
        change: Change,
        (kind, target, detail): (ActionKind, String, String),
        perform: impl FnOnce() -> Result<T>,
    ) -> Result<(u64, Option<T>)> {
        let ids = self.intend(vec![change])?;
        let made = self.act(kind, target, detail, perform).inspect_err(|error| {
            if let (true, Some(journal)) = (error.is_there_already(), &mut self.journal) {
                journal.settle(ids[0], State::Obsolete);
            }
        })?;
        self.applied(&ids)?;
        Ok((ids[0], made))
    }

    /// Records that intended changes were made.
    pub fn applied(&mut self, ids: &[u64]) -> Result<()> {
        match &mut self.journal {
            Some(journal) if !ids.is_empty() => journal.mark(ids, State::Applied),
            _ => Ok(()),
        }
    }
}

/// Runs a program in an empty directory that is removed already, with an environment of ours: it
/// may neither find nor leave a file where somebody happens to be.
fn run_program(command: &[String]) -> Result<std::process::Output> {
    let (program, arguments) = command.split_first().expect("a command names its program");
    let path = find_program(program).ok_or_else(|| Error::io("run", program, missing()))?;
    let folder = removed_folder()?;
    self::command(path)
        .args(arguments)
        .stdin(Stdio::null())
        .current_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
        .output()
        .map_err(|error| Error::io("run", program, error))
}

/// A directory that is removed already: a working directory in which no name can be made, and
/// which needs no removal should we be killed.
fn removed_folder() -> Result<fs::File> {
    // Nobody else may change names in it, /tmp is sticky and /run belongs to root.
    let is_root = nix::unistd::geteuid().is_root();
    let parent = if is_root { PathBuf::from("/run") } else { std::env::temp_dir() };
    let path = parent.join(format!(
        "iolab-program-{}-{}",
        std::process::id(),
        owned_directory::fresh_token()?
    ));
    let fail = |error| Error::io("create", &path, error);
    fs::DirBuilder::new().mode(0o700).create(&path).map_err(fail)?;
    let folder = fs::File::open(&path);
    fs::remove_dir(&path).map_err(fail)?;
    folder.map_err(fail)
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// A program to be started; nothing of the caller's environment reaches what root starts.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if nix::unistd::geteuid().is_root() {
        command.env_clear().env("PATH", SYSTEM_FOLDERS.join(":"));
    }
    command.env("LC_ALL", "C");
    command
}

/// Path of a program. Root takes none but the system's; others find theirs as they usually do, and
/// the administrator's even if PATH lacks them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let mut usual = SYSTEM_FOLDERS.iter().map(PathBuf::from);
    if nix::unistd::geteuid().is_root() {
        let found = usual.find(|folder| folder.join(name).is_file());
        return found.map(|folder| folder.join(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.find(|folder| folder.join(name).is_file());
    found
        .or_else(|| usual.find(|folder| folder.join(name).is_file()))
        .map(|folder| folder.join(name))
}

/// `bfq` of `none mq-deadline [bfq]`; any other text as it is.
fn active_or_whole(text: &str) -> &str {
    let active = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    active.unwrap_or(text)
}

/// The last `count` lines, joined.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join(" | ")
}
