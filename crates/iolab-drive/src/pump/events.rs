//! The virtual-time pump: all workers on one thread, time jumps to the next thing that happens.

use iolab_model::{Completion, Error, Lane, Ns, Submission, VirtualTime};
use iolab_workload::{GroupState, Step, Worker};

use crate::recorder::Recorder;

/// One worker with its lane and its recorder.
pub struct Actor<L, W> {
    /// The worker's way in.
    pub lane: L,
    /// Worker, which decides.
    pub worker: W,
    /// Recorder of its ops.
    pub recorder: Recorder,
}

/// Runs all actors to their ends in virtual time; the same input gives the same output, always.
///
/// # Errors
///
/// If a lane breaks, if nobody can go on and nothing will ever happen (a deadlock of the model), if
/// a model asks for the same instant for ever, or if the user stops while no op ends.
pub fn run_events<L: Lane, W: Worker, T: VirtualTime>(
    actors: &mut [Actor<L, W>],
    time: &T,
    group: &dyn GroupState,
) -> Result<(), Error> {
    let mut done: Vec<Completion> = Vec::new();
    let (mut instant, mut rounds, mut still) = (Ns(0), 0_u32, 0_u32);
    loop {
        let mut wake = Ns::MAX;
        let (mut is_finished, mut has_moved) = (true, false);
        for actor in actors.iter_mut() {
            let step = actor.step(time, &mut done)?;
            wake = wake.min(step.wake);
            is_finished &= step.is_finished;
            has_moved |= step.has_moved;
        }
        if is_finished {
            return Ok(());
        }
        if has_moved {
            (rounds, still) = (0, 0);
            continue;
        }
        still = still.saturating_add(1);
        if still > STILL_MAX && group.is_stopped() {
            return Err(Error::Stopped);
        }
        let next = time.next_event().map_or(wake, |event| event.min(wake));
        if next == Ns::MAX {
            return Err(Error::Internal {
                problem: "every worker waits and nothing will happen".into(),
                fault: "a worker or a model lost an event",
            });
        }
        rounds = if next == instant { rounds + 1 } else { 0 };
        if rounds == ROUNDS_MAX {
            return Err(Error::Internal {
                problem: format!("simulated time stands still at {next}"),
                fault: "a model asks for the same instant again and again",
            });
        }
        instant = next;
        time.advance_to(next);
    }
}

/// Rounds at one instant in which no worker moves: far more than requests fit into any model.
const ROUNDS_MAX: u32 = 20_000_000;

/// Rounds in which no worker moves after which a stop does not wait for the ops under way: about a
/// second.
const STILL_MAX: u32 = 1_000_000;

struct Progress {
    wake: Ns,
    is_finished: bool,
    has_moved: bool,
}

impl<L: Lane, W: Worker> Actor<L, W> {
    /// Does all this actor can do at this instant.
    fn step<T: VirtualTime>(
        &mut self,
        time: &T,
        done: &mut Vec<Completion>,
    ) -> Result<Progress, Error> {
        let mut progress = Progress { wake: Ns::MAX, is_finished: false, has_moved: false };
        self.lane.reap(0, time.now(), done)?;
        loop {
            for completion in done.drain(..) {
                progress.has_moved = true;
                if self.worker.complete(&completion) {
                    self.recorder.completed(&completion);
                } else if let Some(at) = self.worker.begun_anew() {
                    self.recorder.begin_anew(at);
                } else if let Some(one) = self.worker.whole_operation() {
                    self.recorder.count(one.class, one.began, one.ended, one.bytes);
                }
            }
            match self.worker.next(time.now()) {
                Step::Submit(submission) => self.submit(submission, time.now(), done)?,
                Step::SleepUntil(instant) => {
                    progress.wake = instant;
                    return Ok(progress);
                }
                Step::Await => return Ok(progress),
                Step::Finished => {
                    progress.is_finished = true;
                    return Ok(progress);
                }
            }
            progress.has_moved = true;
        }
    }

    fn submit(
        &mut self,
        submission: Submission,
        now: Ns,
        done: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        self.recorder.submitted(&submission);
        if self.lane.submit_batch(now, &[submission], done).total() == 1 {
            return Ok(());
        }
        Err(Error::Unsupported {
            target: "simulation",
            what: format!("take {:?}: its queue is shorter than the worker's", submission.op),
        })
    }
}

#[cfg(test)]
mod tests;
