//! A process that restores the machine when the agent dies, however it dies.
//!
//! It is this very program, started before the agent enters its private mount namespace, in a
//! session of its own, with nothing open but the pipe to the agent: so it neither dies with the
//! agent's group nor keeps a mount, a loop device or somebody's terminal alive. It blocks on the
//! pipe. A byte means a clean end; the end of the pipe means that the agent is dead.
//!
//! Before each trial the agent looks for it: a dead one is replaced, in the mount namespace where
//! the first one began, and a stopped one is woken. The end does not wait for one that hangs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::journal::{Journal, file_of};
use crate::machine::command;
use crate::protocol::Warning;
use crate::{restore, serve, sys};

/// The command by which the agent starts one.
pub const NAME: &str = "watchdog";
/// Message of a clean end.
const FAREWELL: &[u8] = b".";
/// Time that it may take to end: it only has to be scheduled.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
const NAMESPACE: &str = "/proc/self/ns/mnt";

/// The agent's side of it.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
    state_dir: PathBuf,
    run: String,
    /// Mount namespace in which others see the machine.
    namespace: File,
}

impl Watchdog {
    /// Starts watching over the journal of `run`.
    pub fn start(state_dir: &Path, run: &str) -> Result<Self> {
        let namespace =
            File::open(NAMESPACE).map_err(|error| Error::io("open", NAMESPACE, error))?;
        let child = spawn(state_dir, run, None)?;
        Ok(Self { child, state_dir: state_dir.to_path_buf(), run: run.to_owned(), namespace })
    }

    /// Sees to it that it watches; what was wrong is a warning.
    pub fn tend(&mut self) -> Result<Option<Warning>> {
        let waited = self.child.try_wait();
        if let Some(status) = waited.map_err(|error| Error::io("ask for", "the watchdog", error))? {
            let here = std::fs::metadata(NAMESPACE).map(|it| it.ino()).ok();
            let there = self.namespace.metadata().map(|it| it.ino()).ok();
            let elsewhere = (here != there).then_some(&self.namespace);
            self.child = spawn(&self.state_dir, &self.run, elsewhere)?;
            return Ok(Some(replaced(status)));
        }
        if !self.is_stopped() {
            return Ok(None);
        }
        self.signal(Signal::SIGCONT);
        Ok(Some(Warning::new(
            "watchdog_stopped",
            "the watchdog of this run had been stopped and was woken",
            "see who stops processes here: a stopped one restores nothing after a kill",
        )))
    }

    /// Sends it home: everything was put back. One that was stopped or hangs is ended.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            let _ = pipe.write_all(FAREWELL);
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => {}
                _ => return,
            }
            if self.is_stopped() {
                self.signal(Signal::SIGCONT);
            }
            sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), signal);
    }

    /// proc(5): the state is the first word behind the name, which may hold anything.
    fn is_stopped(&self) -> bool {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let state = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
        matches!(state, Some("T" | "t"))
    }
}

fn replaced(status: ExitStatus) -> Warning {
    Warning::new(
        "watchdog_replaced",
        format!("the watchdog of this run had died ({status}); another one watches now"),
        "see who kills processes here: nobody would have restored after a kill meanwhile",
    )
}

/// Starts one, in another mount namespace if one is named.
fn spawn(state_dir: &Path, run: &str, namespace: Option<&File>) -> Result<Child> {
    let fail = |error: std::io::Error| Error::io("start", "the watchdog", error);
    let mut command = command("/proc/self/exe");
    command
        .arg(NAME)
        .arg(state_dir)
        .arg(run)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sys::own_session(&mut command);
    if let Some(namespace) = namespace {
        sys::in_mount_namespace(&mut command, namespace.try_clone().map_err(fail)?);
    }
    command.spawn().map_err(fail)
}

/// True if a process is a watchdog.
pub fn is_one(pid: u32) -> bool {
    run_of(&pid.to_string()).is_some()
}

/// True if some process is the watchdog of `run`.
pub fn is_watching(run: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut names = processes.flatten().filter_map(|it| it.file_name().into_string().ok());
    names.any(|pid| run_of(&pid).as_deref() == Some(run))
}

/// The run that a process watches over: the last of the words that [`spawn`] gives it. Processes of
/// other users may call themselves as they like.
fn run_of(pid: &str) -> Option<String> {
    let folder = format!("/proc/{pid}");
    let owner = std::fs::metadata(&folder).ok()?.uid();
    let text = std::fs::read(format!("{folder}/cmdline")).ok()?;
    if owner != nix::unistd::geteuid().as_raw() {
        return None;
    }
    match text.split(|byte| *byte == 0).collect::<Vec<_>>()[..] {
        [_, name, _, run, []] if name == NAME.as_bytes() => String::from_utf8(run.to_vec()).ok(),
        _ => None,
    }
}

/// The watchdog's own life.
pub fn main(state_dir: &Path, run: &str) -> ExitCode {
    let mut word = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut word);
    if word == FAREWELL {
        return ExitCode::SUCCESS;
    }
    // The lock is the dead agent's until the kernel has closed all its files.
    match Journal::inherit(&file_of(state_dir, run)) {
        Ok(Some(journal)) => {
            let outcome = restore::undo_journal(journal, &restore::boot_id());
            serve::exit_code(outcome.problems.is_empty())
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => serve::exit_code(false),
    }
}
