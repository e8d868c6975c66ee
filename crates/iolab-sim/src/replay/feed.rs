//! A scheduler that is fed from a recording and chooses by itself.
//!
//! Requests enter it, grow and join when the recording says, and the k-th request that is issued
//! ends when the k-th recorded one did. So neither processes nor a device are simulated, and slots
//! and merges are those of the kernel.
//!
//! A recording does not tell when the kernel *decided*: a few microseconds lie between an event and
//! the next dispatch, and two processors that dispatch at once may take two requests ahead instead
//! of one. By default a decision comes at once and is one request ahead; a [`Jitter`] makes other
//! histories, which the same trace allows as well.

use std::collections::VecDeque;

use iolab_model::Ns;
use iolab_model::seed::{Seed, Stream};
use iolab_model::trace_event::Action;

use super::arrivals::Arrivals;
use super::history::direction_of;
use super::places::{ByPlace, Place};
use super::recording::{Row, Setup};
use crate::Calendar;
use crate::api::bio::Operation;
use crate::api::request::RequestId;
use crate::api::scheduler::{Hz, Scheduler};
use crate::queue::rerun_after;

/// Longest time from an event to the dispatch that it causes. In the recordings of this
/// repository, nine in ten issues follow their cause within it.
const DELAY_MAX: Ns = Ns::from_us(40);

/// A dispatch that comes later after an end has another cause.
const REACTION_MAX: Ns = Ns::from_us(200);

/// The same where a recording does not show it: the median over the recordings of this repository.
const REACTION: Ns = Ns::from_us(30);

/// One row in so many finds the list of dispatched requests emptied by another processor.
const SECOND_TAKER: u64 = 50;

/// One issue in so many is overtaken by the next one, which another processor has taken.
const OVERTAKING: u64 = 20;

/// Issues that are remembered.
const KEPT: usize = 128;

/// Order of issue of a recording, and when each request ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Issues {
    /// Instant and place of each, in order.
    pub(super) places: Vec<(Ns, Place)>,
    /// End of each; [`Ns::MAX`] if the recording ends before.
    ends: Vec<Ns>,
    /// Time from the end of a request to the dispatch that it causes.
    reaction: Ns,
}

/// Time from an end to the dispatch that it causes: the median of those that nothing came
/// between. The kernel leaves this dispatch to another thread; one that an insertion causes
/// follows at once, on the processor of the process.
fn reaction(rows: &[Row]) -> Ns {
    let of_pair = |pair: &[Row]| {
        let gap = pair[1].at.since(pair[0].at);
        let is_pair = pair[0].action == Action::Completed && pair[1].action == Action::Issued;
        (is_pair && gap <= REACTION_MAX).then_some(gap)
    };
    let mut gaps: Vec<Ns> = rows.windows(2).filter_map(of_pair).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or(REACTION)
}

impl Issues {
    /// Issues of data; empty flushes pass the scheduler by.
    pub(super) fn of(rows: &[Row], epoch: Ns) -> Self {
        let (mut all, mut open) = (Self::default(), ByPlace::default());
        for row in rows.iter().filter(|row| row.bio.operation != Operation::Flush) {
            let place = (direction_of(&row.bio), row.bio.sector);
            if row.action == Action::Issued {
                open.add(place, all.ends.len());
                all.places.push((epoch + row.at, place));
                all.ends.push(Ns::MAX);
            } else if row.action == Action::Completed
                && let Some(index) = open.take_oldest(place)
            {
                all.ends[index] = epoch + row.at;
            }
        }
        all.reaction = reaction(rows);
        all
    }
}

/// State of a scheduler at a decision.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    /// Time of the decision, as in the recording.
    pub(super) at: Ns,
    /// Facts that decided.
    pub(super) state: Vec<String>,
}

/// Variations of what a recording does not tell.
#[derive(Clone, Debug)]
pub(super) struct Jitter(Stream);

impl Jitter {
    /// Variation number `index`.
    pub(super) fn new(index: u64) -> Self {
        Self(Seed(0).stream("jitter", index))
    }

    /// As usual in half of the cases.
    fn delay(&mut self, usual: Ns) -> Ns {
        if self.0.below(2) == 0 { usual } else { Ns(self.0.below(usual.0 * 2 + DELAY_MAX.0)) }
    }

    fn has_second_taker(&mut self) -> bool {
        self.0.below(SECOND_TAKER) == 0
    }

    fn has_overtaking(&mut self) -> bool {
        self.0.below(OVERTAKING) == 0
    }
}

/// A scheduler and what it was given.
#[derive(Clone)]
pub(super) struct Feed<'a> {
    scheduler: Box<dyn Scheduler>,
    epoch: Ns,
    arrivals: Arrivals,
    /// Pulled, and waiting for a tag.
    pulled: VecDeque<RequestId>,
    in_flight: u32,
    depth: u32,
    recorded: &'a Issues,
    serving: Calendar<RequestId>,
    /// Number of requests that the model issued, how many of them at the recorded place, and the
    /// newest ones.
    n_issued: usize,
    pub(super) agreeing: usize,
    newest: VecDeque<Place>,
    run_at: Ns,
    /// Time at which a scheduler that had requests and gave none is asked again; a worker that is
    /// called earlier is the same one (Linux 6.18 block/blk-mq.c: `mod_delayed_work`).
    rerun_at: Ns,
    hz: Hz,
    /// Absent: decisions come at once.
    pub(super) jitter: Option<Jitter>,
    /// Number of the decision to describe, and its description.
    described: Option<u64>,
    pub(super) decision: Option<Decision>,
    pulls: u64,
}

impl<'a> Feed<'a> {
    /// An idle scheduler; times of the recording count from `epoch`. Decision number `described`
    /// will be described.
    pub(super) fn new(
        setup: &Setup,
        scheduler: Box<dyn Scheduler>,
        (recorded, epoch): (&'a Issues, Ns),
        described: Option<u64>,
    ) -> Self {
        Self {
            scheduler,
            epoch,
            arrivals: Arrivals::new(setup),
            pulled: VecDeque::new(),
            in_flight: 0,
            depth: setup.driver_queue_depth,
            recorded,
            serving: Calendar::default(),
            n_issued: 0,
            agreeing: 0,
            newest: VecDeque::new(),
            run_at: Ns::MAX,
            rerun_at: Ns::MAX,
            hz: Hz(setup.hz),
            jitter: None,
            described,
            decision: None,
            pulls: 0,
        }
    }

    /// Place of issue number `number`: made, or decided already. None of old ones.
    pub(super) fn choice(&self, number: usize) -> Option<Place> {
        if let Some(ahead) = number.checked_sub(self.n_issued) {
            return self.pulled.get(ahead).map(|&id| self.arrivals.place(id));
        }
        let index = self.newest.len().checked_sub(self.n_issued - number)?;
        self.newest.get(index).copied()
    }

    /// Follows one event of the recording.
    pub(super) fn follow(&mut self, row: &Row) {
        let now = self.epoch + row.at;
        self.advance(now);
        if self.jitter.as_mut().is_some_and(Jitter::has_second_taker) {
            self.take_ahead(now);
        }
        if self.arrivals.follow(now, row, &mut *self.scheduler) {
            self.ask(now, Ns(0));
        }
        let is_flush = row.bio.operation == Operation::Flush;
        if row.action == Action::Issued {
            self.in_flight += u32::from(is_flush);
            // The kernel has decided by now.
            if self.run_at < Ns::MAX {
                self.run(now);
            }
        } else if row.action == Action::Completed && is_flush {
            self.in_flight = self.in_flight.saturating_sub(1);
            self.ask(now, self.recorded.reaction);
        }
    }

    /// Lets everything happen that comes before `until`, and ends and timers at that instant.
    pub(super) fn advance(&mut self, until: Ns) {
        loop {
            let (end, timer) = (self.serving.next_event(), self.scheduler.next_timer());
            let now = end.min(timer).min(self.run_at).min(self.rerun_at);
            if now == Ns::MAX || now > until || (now == until && self.run_at == now) {
                return;
            }
            if end <= now {
                let (_, id) = self.serving.take_due(now).expect("an event is due");
                self.in_flight -= 1;
                self.scheduler.complete(now, &self.arrivals.requests, id);
                self.arrivals.requests.remove(id);
                // Linux 6.18 block/blk-mq-sched.c: an end has the queue run if a request waits for
                // a tag (`BLK_MQ_S_SCHED_RESTART`), or if the scheduler wants it.
                if !self.pulled.is_empty() || self.scheduler.wants_run() {
                    self.ask(now, self.recorded.reaction);
                    self.rerun_at = Ns::MAX;
                }
            } else {
                if self.rerun_at <= now {
                    self.rerun_at = Ns::MAX;
                }
                if timer <= now {
                    self.scheduler.timer(now, &self.arrivals.requests);
                    self.rerun_at = Ns::MAX;
                }
                self.run(now);
            }
        }
    }

    /// Has the scheduler asked, usually after this time.
    fn ask(&mut self, now: Ns, usual: Ns) {
        let delay = self.jitter.as_mut().map_or(usual, |jitter| jitter.delay(usual));
        self.run_at = self.run_at.min(now + delay);
    }

    fn ask_again(&mut self, now: Ns) {
        if self.rerun_at == Ns::MAX {
            self.rerun_at = rerun_after(self.hz, now);
        }
    }

    fn run(&mut self, now: Ns) {
        self.run_at = Ns::MAX;
        let n_before = self.n_issued;
        while self.in_flight < self.depth {
            let Some(id) = self.pulled.pop_front().or_else(|| self.pull(now)) else {
                if self.n_issued == n_before && self.scheduler.has_requests() {
                    self.ask_again(now);
                }
                return;
            };
            let is_overtaken = self.jitter.as_mut().is_some_and(Jitter::has_overtaking);
            let first = if is_overtaken { self.overtaker(now) } else { None };
            if first.is_some() {
                self.pulled.push_front(id);
            }
            self.issue(now, first.unwrap_or(id));
        }
        if self.pulled.is_empty() {
            self.take_ahead(now);
        }
    }

    /// The request after the next one.
    fn overtaker(&mut self, now: Ns) -> Option<RequestId> {
        self.pulled.pop_front().or_else(|| self.pull(now))
    }

    /// Takes a request that waits for a tag.
    fn take_ahead(&mut self, now: Ns) {
        let id = self.pull(now);
        self.pulled.extend(id);
    }

    fn pull(&mut self, now: Ns) -> Option<RequestId> {
        if !self.scheduler.has_requests() {
            return None;
        }
        if self.described == Some(self.pulls) {
            let state = self.scheduler.describe(now, &self.arrivals.requests);
            self.decision = Some(Decision { at: Ns(now.0 - self.epoch.0), state });
        }
        let id = self.scheduler.dispatch(now, &self.arrivals.requests)?;
        self.pulls += 1;
        self.arrivals.take(self.arrivals.place(id), |queued| queued == id);
        Some(id)
    }

    fn issue(&mut self, now: Ns, id: RequestId) {
        self.arrivals.requests[id].issued = now;
        self.scheduler.activate(now, &self.arrivals.requests, id);
        self.in_flight += 1;
        let end = self.recorded.ends.get(self.n_issued).copied().unwrap_or(Ns::MAX);
        let place = self.arrivals.place(id);
        let recorded = self.recorded.places.get(self.n_issued).map(|&(_, place)| place);
        self.agreeing += usize::from(recorded == Some(place));
        self.n_issued += 1;
        if self.newest.len() == KEPT {
            self.newest.pop_front();
        }
        self.newest.push_back(place);
        if end < Ns::MAX {
            self.serving.plan(end.max(now), id);
        }
    }
}
