//! One worker on the calling thread: the coordinator's work is done where the worker arrives at a
//! gate.
//!
//! A process with one thread is worth having: the kernel then looks up descriptors without atomic
//! reference counts, which a cached small read feels (`make bench`), and nobody wakes up to
//! watch.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use iolab_model::{Error, Target};
use iolab_workload::{Gate, GroupState};

use super::threads::Seat;
use crate::coordinate::{Observer, WorkerOutcome};

/// The observer is asked whether to stop about this often.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// Longest stride between two looks at the time, in questions of the worker.
const STRIDE_MAX: u32 = 1 << 14;

/// Group state of a single worker, with its observer inside.
struct InlineGroup<'a, O> {
    observer: RefCell<&'a mut O>,
    is_stopped: Cell<bool>,
    /// Questions left until the observer is asked.
    countdown: Cell<u32>,
    stride: Cell<u32>,
    asked: Cell<Instant>,
}

impl<O: Observer> InlineGroup<'_, O> {
    /// Asks the observer, and sets the stride so that the next time comes after about `ASK_EVERY`.
    #[cold]
    fn ask(&self) {
        let elapsed = self.asked.replace(Instant::now()).elapsed().max(Duration::from_nanos(1));
        let stride = f64::from(self.stride.get()) * ASK_EVERY.as_secs_f64() / elapsed.as_secs_f64();
        let stride = (stride as u32).clamp(1, STRIDE_MAX.min(self.stride.get() * 2));
        self.stride.set(stride);
        self.countdown.set(stride);
        if self.observer.borrow_mut().should_stop() {
            self.is_stopped.set(true);
        }
    }
}

impl<O: Observer> GroupState for InlineGroup<'_, O> {
    fn arrive(&self, gate: Gate) {
        let mut observer = self.observer.borrow_mut();
        match gate {
            Gate::Start => {
                observer.starting();
                observer.released();
            }
            Gate::End => observer.ended(),
        }
    }

    fn is_open(&self, _: Gate) -> bool {
        true
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

/// Runs the only worker of a phase on this thread.
pub(super) fn run_inline<T: Target, O: Observer>(
    seat: &Seat<'_>,
    target: &T,
    directory: &Path,
    observer: &mut O,
) -> Result<WorkerOutcome, Error> {
    let group = InlineGroup {
        observer: RefCell::new(observer),
        is_stopped: Cell::new(false),
        countdown: Cell::new(1),
        stride: Cell::new(1),
        asked: Cell::new(Instant::now()),
    };
    seat.run(target, directory, &group)
}
