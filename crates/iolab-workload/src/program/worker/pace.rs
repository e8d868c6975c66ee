//! Beginning a pass: when it may, and which of a read and a write is next where each has a rate.

use std::sync::Arc;

use iolab_model::Ns;
use iolab_model::op::Op;

use super::super::deed::Deed;
use super::super::description::Pace;
use super::super::draw;
use super::ProgramWorker;
use super::job::Job;
use crate::bursting::BURN_MAX;
use crate::group::GroupState;
use crate::worker::Step;

/// State of a program whose reads and writes have rates of their own; reads come first.
#[derive(Debug, Default)]
pub(super) struct Directed {
    /// Number and bytes that were begun.
    issued: [(u64, u64); 2],
    /// Direction that was drawn, and perhaps waits for its time.
    drawn: Option<usize>,
    /// Direction of the pass at hand.
    pub(super) next: Option<usize>,
}

impl Directed {
    /// A step has begun that moves so much; only reads and writes count.
    pub(super) fn count(&mut self, does: Deed, bytes: u64) {
        let place = match does {
            Deed::Read => 0,
            Deed::Write => 1,
            _ => return,
        };
        self.issued[place].0 += 1;
        self.issued[place].1 += bytes;
    }

    /// Number of reads and writes.
    pub(super) fn transfers(&self) -> u64 {
        self.issued[0].0 + self.issued[1].0
    }
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Begins a pass if it may: `Some(None)`: the timed region is over.
    #[allow(clippy::option_option, reason = "what to do instead may be to ask again")]
    pub(super) fn begin_pass(&mut self, now: Ns) -> Option<Option<Step>> {
        let limit = &self.code.program.limit;
        let passes = if limit.is_none() { Some(1) } else { limit.passes };
        if passes.is_some_and(|most| self.passes >= most) {
            return Some(self.end_timed());
        }
        if let Some(step) = self.pause_first(now) {
            return Some(step);
        }
        let intended = self.next_intended(now);
        // Who has nothing more to do in its time waits for its end.
        let not_before = intended.max(self.earliest).min(self.deadline);
        if now < not_before {
            return Some(Some(Step::SleepUntil(not_before)));
        }
        if let Some(flow) = self.code.flow
            && !self.stage.flows[flow].begin(self.tenant)
        {
            return Some(Some(Step::Await));
        }
        self.passes += 1;
        (self.intended, self.at) = (intended, 0);
        self.directed.drawn = None;
        match self.code.program.pace {
            Pace::Rate { passes_per_s } => {
                self.next_arrival =
                    self.started + Ns((self.passes as f64 * 1e9 / passes_per_s) as u64);
            }
            Pace::Poisson { passes_per_s } => {
                let gap = draw::exponential(&mut self.random) * 1e9 / passes_per_s;
                self.next_arrival += Ns(gap as u64);
            }
            Pace::Closed
            | Pace::Bursts { .. }
            | Pace::Bytes { .. }
            | Pace::Directions { .. }
            | Pace::Recorded { .. } => {}
        }
        None
    }

    /// Pauses behind a burst that is over: `Some(None)`: ask again; `None`: there is no pause.
    #[allow(clippy::option_option, reason = "what to do instead may be to ask again")]
    pub(super) fn pause_first(&mut self, now: Ns) -> Option<Option<Step>> {
        let is_busy = self.is_busy();
        let bursting = self.bursting.as_mut()?;
        if bursting.is_over() {
            if is_busy {
                return Some(Some(Step::Await));
            }
            self.earliest = bursting.pause(self.earliest);
        }
        if let Some(duration) = bursting.to_burn(now) {
            return Some(self.burn(duration));
        }
        let until = self.earliest.min(self.deadline);
        (now < until).then_some(Some(Step::SleepUntil(until)))
    }

    /// Meant beginning of the next pass.
    fn next_intended(&mut self, now: Ns) -> Ns {
        let begun = self.started + self.delayed();
        match self.code.program.pace {
            Pace::Closed | Pace::Bursts { .. } | Pace::Recorded { .. } => now.max(self.earliest),
            Pace::Rate { .. } | Pace::Poisson { .. } => self.next_arrival + self.delayed(),
            Pace::Bytes { bytes_per_s } => {
                begun + Ns((self.issued.1 as f64 * 1e9 / bytes_per_s) as u64)
            }
            Pace::Directions { reads_per_s, writes_per_s, is_in_bytes } => {
                self.take_turn(now, [reads_per_s, writes_per_s], is_in_bytes)
            }
        }
    }

    /// Decides whether a read or a write is next, each of which has its rate: when it is due.
    fn take_turn(&mut self, now: Ns, rates: [f64; 2], is_in_bytes: bool) -> Ns {
        let begun = self.started + self.delayed();
        let due = [0, 1].map(|place| {
            let (ops, bytes) = self.directed.issued[place];
            let done = if is_in_bytes { bytes } else { ops };
            let is_free = rates[place] <= 0.0;
            if is_free { now } else { begun + Ns((done as f64 * 1e9 / rates[place]) as u64) }
        });
        let drawn = match self.directed.drawn {
            Some(drawn) => drawn,
            None => self.draw_direction(),
        };
        let other = 1 - drawn;
        let place = if due[drawn] <= now || (due[other] > now && due[drawn] <= due[other]) {
            drawn
        } else {
            other
        };
        (self.directed.drawn, self.directed.next) = (Some(drawn), Some(place));
        due[place].max(self.earliest.min(now))
    }

    /// Draws a read (0) or a write (1) by the weights of the first step.
    fn draw_direction(&mut self) -> usize {
        let code = Arc::clone(&self.code);
        let first = &code.flats[code.lists[1][0]];
        let weights = first.children.iter().map(|&child| code.flats[child].node.weight);
        let drawn = first.children[draw::weighted(&mut self.random, weights)];
        usize::from(code.flats[drawn].node.does == Deed::Write)
    }

    /// Pauses by which its schedule is later.
    pub(super) fn delayed(&self) -> Ns {
        self.bursting.as_ref().map_or(Ns(0), |burst| burst.delayed())
    }

    /// Burns the CPU in a pause; `None`: ask again.
    fn burn(&mut self, duration: Ns) -> Option<Step> {
        let duration = duration.min(BURN_MAX);
        let Some(token) = self.free.pop() else { return Some(Step::Await) };
        self.jobs[token as usize] = Some(Job::aside(Op::Burn { duration }, self.intended));
        self.blocked = Some(token);
        self.ready.push(token);
        None
    }

    pub(super) fn end_pass(&mut self, now: Ns) {
        match self.code.program.pace {
            Pace::Bursts { passes, pause_ns } if self.passes.is_multiple_of(passes) => {
                self.earliest = now + pause_ns;
            }
            Pace::Rate { passes_per_s } => {
                let is_late = now.since(self.intended).0 as f64 > 1e9 / passes_per_s;
                *self.report.late_ops.get_or_insert(0) += u64::from(is_late);
            }
            _ => {}
        }
    }
}
