//! The real-time pump of one worker: generic over lane and worker, no dynamic dispatch per op.

use std::time::Duration;

use iolab_model::op::{OpClass, Transfer};
use iolab_model::target::{Run, RunEnd};
use iolab_model::{Bytes, Completion, Error, Lane, Ns, Submission};
use iolab_workload::{Step, Worker};

use crate::recorder::Recorder;

/// How long an idle worker yields the CPU between looks at the group before it starts to sleep.
const SPINS: u32 = 200;
const NAP: Duration = Duration::from_micros(50);
/// Longest sleep of a worker that has nothing to do before an instant: it may be stopped meanwhile.
const SLEEP_MAX: Ns = Ns::from_ms(100);

/// Why a worker has nothing more to submit right now.
#[derive(Clone, Copy, PartialEq)]
enum Pause {
    Until(Ns),
    Event,
    End,
}

/// Runs `worker` on `lane` to its end; latencies of counted ops go to `recorder`.
///
/// # Errors
///
/// Only if the lane itself breaks; failed ops are the worker's business.
pub fn drive<L: Lane, W: Worker>(
    lane: &mut L,
    worker: &mut W,
    recorder: &mut Recorder,
    depth: u32,
) -> Result<(), Error> {
    let mut batch: Vec<Submission> = Vec::with_capacity(depth as usize);
    let mut done: Vec<Completion> = Vec::with_capacity(depth as usize);
    let mut now = lane.now();
    let mut idle = 0;
    loop {
        if L::HAS_RUNS
            && let Some(writes) = worker.run_writes()
            && recorder.is_plain()
        {
            now = if writes {
                run::<L, W, true>(lane, worker, recorder, now)
            } else {
                run::<L, W, false>(lane, worker, recorder, now)
            };
        }
        let pause = fill(&mut batch, depth, worker, recorder, now);
        if !batch.is_empty() {
            submit(lane, &mut batch, &mut done, now)?;
        }
        if lane.in_flight() > 0 {
            let (min, until) = match pause {
                Pause::Until(instant) if done.is_empty() => (1, instant),
                Pause::Until(_) => (0, now),
                Pause::Event | Pause::End => (u32::from(done.is_empty()), Ns::MAX),
            };
            lane.reap(min, until, &mut done)?;
        }
        if let Some(last) = done.last() {
            now = last.completed;
            idle = 0;
            for completion in done.drain(..) {
                if worker.complete(&completion) {
                    recorder.completed(&completion);
                }
            }
            continue;
        }
        match pause {
            Pause::End => return Ok(()),
            Pause::Until(instant) if lane.in_flight() == 0 => {
                lane.sleep_until(instant.min(now + SLEEP_MAX));
            }
            Pause::Event if lane.in_flight() == 0 => wait_for_group(&mut idle),
            _ => {}
        }
        now = lane.now();
    }
}

/// A worker's run, and who counts it.
struct Counted<'a, W, const WRITES: bool> {
    worker: &'a mut W,
    recorder: &'a mut Recorder,
}

impl<W: Worker, const WRITES: bool> Run for Counted<'_, W, WRITES> {
    const WRITES: bool = WRITES;

    #[inline]
    fn next(&mut self, now: Ns) -> Option<Transfer> {
        self.worker.next_of_run(now)
    }

    #[inline]
    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) {
        if self.worker.ended_in_run(submitted, completed, length) {
            let class = if WRITES { OpClass::Write } else { OpClass::Read };
            self.recorder.count(class, submitted, completed, length.0);
        }
    }
}

/// Alike transfers as long as there are any; answers when the last one ended.
fn run<L: Lane, W: Worker, const WRITES: bool>(
    lane: &mut L,
    worker: &mut W,
    recorder: &mut Recorder,
    now: Ns,
) -> Ns {
    let mut counted = Counted::<W, WRITES> { worker, recorder };
    match lane.run(now, &mut counted) {
        RunEnd::Over(ended) => ended,
        RunEnd::FellShort(transfer, completion) => {
            if let Some(submission) = worker.leave_run(&transfer, completion.submitted) {
                recorder.submitted(&submission);
                if worker.complete(&completion) {
                    recorder.completed(&completion);
                }
            }
            completion.completed
        }
    }
}

/// Asks the worker until it has nothing more or the batch is full.
#[inline]
fn fill<W: Worker>(
    batch: &mut Vec<Submission>,
    depth: u32,
    worker: &mut W,
    recorder: &mut Recorder,
    now: Ns,
) -> Pause {
    while batch.len() < depth as usize {
        match worker.next(now) {
            Step::Submit(submission) => {
                recorder.submitted(&submission);
                batch.push(submission);
            }
            Step::SleepUntil(instant) => return Pause::Until(instant),
            Step::Await => return Pause::Event,
            Step::Finished => return Pause::End,
        }
    }
    // A full batch: every slot is taken, so only a completion can bring news.
    Pause::Event
}

/// Sends a whole batch, making room when the lane says busy.
#[inline]
fn submit<L: Lane>(
    lane: &mut L,
    batch: &mut Vec<Submission>,
    done: &mut Vec<Completion>,
    now: Ns,
) -> Result<(), Error> {
    let mut taken = lane.submit_batch(now, batch, done).total();
    while taken < batch.len() {
        if lane.in_flight() == 0 {
            return Err(Error::Unsupported {
                target: "lane",
                what: format!("take {:?}, although it is idle", batch[taken].op),
            });
        }
        lane.reap(1, Ns::MAX, done)?;
        let now = lane.now();
        taken += lane.submit_batch(now, &batch[taken..], done).total();
    }
    batch.clear();
    Ok(())
}

/// Nothing in flight and nothing to do: the group's state must change first.
fn wait_for_group(idle: &mut u32) {
    *idle += 1;
    if *idle < SPINS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(NAP);
    }
}

#[cfg(test)]
mod tests;
