//! Waiting before a phase: for other copies of a program, or for the front end.

use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::observer::IS_INTERRUPTED;
use crate::protocol::{WaitFor, Waits};
use crate::semaphores::{Passed, Set};

/// Between two questions whether to stop.
const LOOK_MS: u16 = 200;

fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}

/// Waits until the phase may begin.
///
/// # Errors
///
/// Nobody can be waited for; says why.
pub fn wait(waits: &Waits, phase: &str, ask: impl FnOnce(u16)) -> Result<Passed, String> {
    let Some(&number) = waits.numbers.get(phase) else { return Ok(Passed::Together) };
    match waits.kind {
        WaitFor::Semaphores => Set::find()?.pass(number, is_interrupted),
        WaitFor::FrontEnd => {
            ask(number);
            wait_for_line()
        }
    }
}

/// Each line says that one phase may begin.
pub(super) fn wait_for_line() -> Result<Passed, String> {
    let input = std::io::stdin();
    loop {
        if is_interrupted() {
            return Ok(Passed::Stopped);
        }
        let mut waiting = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        // Interrupted by a signal: it is asked again above.
        if matches!(poll(&mut waiting, PollTimeout::from(LOOK_MS)), Ok(1..)) {
            let mut line = String::new();
            return match input.read_line(&mut line) {
                Ok(0) => Err("nobody is left who could say that it may go on".into()),
                Ok(_) => Ok(Passed::Together),
                Err(error) => Err(format!("waiting for the front end failed: {error}")),
            };
        }
    }
}
