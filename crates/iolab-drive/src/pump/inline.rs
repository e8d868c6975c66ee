//! One worker on the calling thread: the coordinator's work is done where the worker arrives at a
//! gate.
//!
//! A process with one thread is worth having: the kernel then looks up descriptors without atomic
//! reference counts, which a cached small read feels (`make bench`), and nobody wakes up to
//! watch.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use iolab_model::Error;
use iolab_workload::{Gate, GroupState};

use super::threads::Seat;
use super::workplace::Workplace;
use crate::coordinate::{Observer, ParentClock, WorkerOutcome};

/// The observer is asked whether to stop about this often, and not before so much time is over:
/// what it looks at would be timed.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// Longest stride between two looks at the time, in questions of the worker.
const STRIDE_MAX: u32 = 1 << 14;

/// Group state of a single worker, with its observer inside.
pub struct InlineGroup<'a> {
    observer: RefCell<&'a mut dyn Observer>,
    is_stopped: Cell<bool>,
    /// The worker has been sent to look at the clock since the observer has read its counters.
    is_started: Cell<bool>,
    /// Since the observer has read its counters.
    clock: Cell<Option<ParentClock>>,
    /// Questions left until it is looked whether to ask the observer.
    countdown: Cell<u32>,
    /// Questions from the last time that it was asked to the end of the countdown.
    passed: Cell<u32>,
    /// Time at which it was asked last.
    asked: Cell<Instant>,
}

impl InlineGroup<'_> {
    /// Asks the observer, if it is time to, and sets the countdown so that the next time comes
    /// after about `ASK_EVERY`.
    #[cold]
    fn ask(&self) {
        let (elapsed, passed) = (self.asked.get().elapsed(), self.passed.get());
        if elapsed < ASK_EVERY / 2 {
            let more = passed.min(STRIDE_MAX);
            self.countdown.set(more);
            self.passed.set(passed.saturating_add(more));
            return;
        }
        let stride = f64::from(passed) * ASK_EVERY.as_secs_f64() / elapsed.as_secs_f64();
        self.count_down(stride.clamp(1.0, f64::from(STRIDE_MAX)) as u32);
        if self.observer.borrow_mut().should_stop() {
            self.is_stopped.set(true);
        }
    }

    /// From now on it is so many questions until the observer may be asked.
    fn count_down(&self, questions: u32) {
        self.asked.set(Instant::now());
        self.countdown.set(questions);
        self.passed.set(questions);
    }
}

impl GroupState for InlineGroup<'_> {
    fn arrive(&self, gate: Gate) {
        let mut observer = self.observer.borrow_mut();
        match gate {
            Gate::Start => {
                observer.starting();
                observer.released();
                self.count_down(1);
                self.clock.set(Some(ParentClock::start()));
            }
            Gate::End => {
                let mut clock = self.clock.get();
                clock.iter_mut().for_each(ParentClock::pause);
                observer.ended();
                clock.iter_mut().for_each(ParentClock::resume);
                self.clock.set(clock);
            }
        }
    }

    /// The first question comes with a time from before the observer read its counters: whoever
    /// hears no looks at the clock again, and the timed region begins there.
    fn is_open(&self, gate: Gate) -> bool {
        gate == Gate::End || self.is_started.replace(true)
    }

    fn stop(&self) {
        self.is_stopped.set(true);
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        let left = self.countdown.get().saturating_sub(1);
        self.countdown.set(left);
        if left == 0 {
            self.ask();
        }
        self.is_stopped.get()
    }
}

/// Runs the only worker of a phase on this thread; answers also the time from its release until it
/// has closed its file.
pub(super) fn run_inline(
    seat: &Seat<'_>,
    target: &dyn Workplace,
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<(WorkerOutcome, Option<u64>), Error> {
    let group = InlineGroup {
        observer: RefCell::new(observer),
        is_stopped: Cell::new(false),
        is_started: Cell::new(false),
        clock: Cell::new(None),
        countdown: Cell::new(1),
        passed: Cell::new(1),
        asked: Cell::new(Instant::now()),
    };
    let outcome = target.work_alone(seat, directory, &group)?;
    Ok((outcome, group.clock.get().map(|clock| clock.read())))
}
