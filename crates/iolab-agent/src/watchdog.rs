//! A process that restores the machine when the agent dies, however it dies.
//!
//! It is this very program, started before the agent enters its private mount namespace, in a
//! session of its own, with nothing open but the pipe to the agent: so it neither dies with the
//! agent's group nor keeps a mount, a loop device or somebody's terminal alive. It blocks on the
//! pipe. A byte means a clean end; the end of the pipe means that the agent is dead.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::error::{Error, Result};
use crate::journal::{Journal, file_of};
use crate::{restore, serve, sys};

/// What a clean end looks like.
const FAREWELL: &[u8] = b".";

/// The agent's side of it.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts watching over the journal of `run`.
    pub fn start(state_dir: &Path, run: &str) -> Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg("watchdog")
            .arg(state_dir)
            .arg(run)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        sys::own_session(&mut command);
        let child = command.spawn().map_err(|error| Error::io("start", "the watchdog", error))?;
        Ok(Self { child })
    }

    /// Sends it home: everything was put back.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            let _ = pipe.write_all(FAREWELL);
        }
        let _ = self.child.wait();
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
