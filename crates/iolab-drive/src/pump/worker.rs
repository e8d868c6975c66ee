//! The real-time pump of one worker: generic over lane and worker, no dynamic dispatch per op.

use std::time::Duration;

use iolab_model::op::{OpClass, Transfer};
use iolab_model::target::{Run, RunEnd};
use iolab_model::{Bytes, Completion, Error, Lane, Ns, Submission};
use iolab_workload::{RunKind, Step, Worker};

use crate::recorder::Recorder;

/// Number of times that an idle worker yields the CPU between looks at the group before it starts
/// to sleep.
const SPINS: u32 = 200;
/// Number and length of the short sleeps that follow; after that its sleep is longer.
const SHORT_NAPS: u32 = 200;
const SHORT_NAP: Duration = Duration::from_micros(10);
const NAP: Duration = Duration::from_micros(50);
/// Longest sleep of a worker that has nothing to do before an instant: it may be stopped meanwhile.
const SLEEP_MAX: Ns = Ns::from_ms(100);

/// Ends of a run that are counted together.
const COUNTED_MAX: usize = 64;

/// Reason why a worker has nothing more to submit right now.
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
    let has_runs = L::HAS_RUNS && lane.takes_runs();
    if recorder.submissions.is_some() {
        lane.time_submissions(recorder.submission_group);
    }
    let mut now = lane.now();
    let mut idle = 0;
    loop {
        if has_runs
            && recorder.is_plain()
            && let Some(kind) = worker.run_kind(now)
        {
            recorder.begin(now);
            now = run_of(lane, (worker, recorder), kind, now);
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
                count_end(lane, worker, recorder, &completion);
            }
            tell_if_due(worker, recorder, now);
            continue;
        }
        match pause {
            Pause::End => return Ok(()),
            Pause::Until(instant) if lane.in_flight() == 0 => {
                lane.sleep_until(instant.min(now + SLEEP_MAX));
            }
            Pause::Event if lane.in_flight() == 0 => {
                if has_runs
                    && idle == 0
                    && recorder.is_plain()
                    && let Some(kind) = worker.rehearsal()
                {
                    run_of(lane, (worker, recorder), kind, now);
                    worker.rehearsed();
                }
                if !worker.rest() {
                    wait_for_group(&mut idle);
                }
            }
            _ => {}
        }
        now = lane.now();
        tell_if_due(worker, recorder, now);
    }
}

/// Hands the end of an op to its worker, and counts it as that says.
#[inline]
fn count_end<L: Lane, W: Worker>(
    lane: &L,
    worker: &mut W,
    recorder: &mut Recorder,
    completion: &Completion,
) {
    if worker.complete(completion) {
        if recorder.submissions.is_some() {
            recorder.handed_over(completion, lane.submission_ns(completion.token));
        }
        recorder.completed(completion);
    } else {
        recorder.uncounted(completion);
        if let Some(at) = worker.begun_anew() {
            recorder.begin_anew(at);
        } else if let Some(one) = worker.whole_operation() {
            recorder.count(one.class, one.began, one.ended, one.bytes);
        }
    }
}

/// Lets a worker tell what it has done until `now`, if it is time.
#[inline]
fn tell_if_due<W: Worker>(worker: &W, recorder: &mut Recorder, now: Ns) {
    if recorder.is_telling_due(now) {
        tell(worker, recorder, now);
    }
}

/// Lets a worker tell what it has done until `now`.
#[cold]
fn tell<W: Worker>(worker: &W, recorder: &mut Recorder, now: Ns) {
    let Some(mut telling) = recorder.telling.take() else { return };
    if let Some(so_far) = worker.so_far() {
        let outcome = telling.outcome(so_far, recorder);
        telling.tell(&outcome, now);
    }
    recorder.telling = Some(telling);
}

/// A worker's run, and who counts it.
///
/// What is counted lies in a dozen cache lines, and a call of the kernel that copies data evicts
/// most of them from the nearest cache: ends are kept side by side and counted many at a time.
struct Counted<'a, W, const WRITES: bool> {
    worker: &'a mut W,
    recorder: &'a mut Recorder,
    /// Time at which the first of the following was submitted; each other one when the one before
    /// it ended.
    submitted: Ns,
    ended: [Ns; COUNTED_MAX],
    count: usize,
    at_most: usize,
    length: Bytes,
}

impl<W: Worker, const WRITES: bool> Counted<'_, W, WRITES> {
    /// Counts what is kept.
    #[inline(never)]
    fn count(&mut self) {
        let ended = &self.ended[..self.count];
        if ended.is_empty() {
            return;
        }
        if self.worker.ended_in_run(self.submitted, ended, self.length) {
            let class = if WRITES { OpClass::Write } else { OpClass::Read };
            self.recorder.count_run(class, self.submitted, ended, self.length.0);
        }
        let last = ended[self.count - 1];
        tell_if_due(self.worker, self.recorder, last);
        self.count = 0;
    }
}

impl<W: Worker, const WRITES: bool> Run for Counted<'_, W, WRITES> {
    const WRITES: bool = WRITES;

    #[inline]
    fn next(&mut self, now: Ns) -> Option<Transfer> {
        self.worker.next_of_run::<WRITES>(now)
    }

    #[inline]
    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) {
        if self.count == 0 {
            (self.submitted, self.length) = (submitted, length);
        }
        self.ended[self.count] = completed;
        self.count += 1;
        if self.count == self.at_most {
            self.count();
        }
    }
}

/// A run of a kind.
#[inline]
fn run_of<L: Lane, W: Worker>(
    lane: &mut L,
    who: (&mut W, &mut Recorder),
    kind: RunKind,
    now: Ns,
) -> Ns {
    let at_most = if kind.is_counted_at_once { 1 } else { COUNTED_MAX };
    if kind.writes {
        run::<L, W, true>(lane, who, at_most, now)
    } else {
        run::<L, W, false>(lane, who, at_most, now)
    }
}

/// Alike transfers as long as there are any, counted so many at a time; answers when the last one
/// ended.
#[inline(never)]
fn run<L: Lane, W: Worker, const WRITES: bool>(
    lane: &mut L,
    (worker, recorder): (&mut W, &mut Recorder),
    at_most: usize,
    now: Ns,
) -> Ns {
    let (ended, count, length) = ([Ns(0); COUNTED_MAX], 0, Bytes(0));
    let mut counted =
        Counted::<W, WRITES> { worker, recorder, submitted: now, ended, count, at_most, length };
    let end = lane.run(now, &mut counted);
    counted.count();
    match end {
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
    if *idle == 1 {
        // It may be open by now; whoever is alone never asks twice.
    } else if *idle < SPINS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(if *idle < SPINS + SHORT_NAPS { SHORT_NAP } else { NAP });
    }
}

#[cfg(test)]
mod tests;
