//! Processors that the processes of lanes share, in slices of time.
//!
//! A process keeps its processor from call to call while it has something to compute. It leaves it
//! when it waits, or when its slice is over and somebody else wants it: between two calls, or where
//! a call waits or is caught up with. Who waits for one gets the first that is left. Who was woken
//! comes first, unless somebody else has waited for a slice; equals come in the order in which they
//! began to wait. So nobody waits for ever.
//!
//! Simplified from Linux kernel/sched/fair.c: equal weights, no preemption within the work of a
//! call. Threads of the kernel have processors of their own.

use std::collections::VecDeque;

use iolab_model::Ns;

use super::engine::{Event, Machine};
use super::task::{RunBy, TaskIndex};

/// A process that has made no call for so long has left its processor; about what a switch takes.
const LEFT_AFTER: Ns = Ns(1_000);

/// One processor.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Lane whose process is, or was, the last one here.
    owner: Option<u32>,
    /// End of its slice.
    until: Ns,
    /// A look at it is planned.
    is_planned: bool,
}

/// Processors and who waits for them.
#[derive(Debug)]
pub(super) struct Processors {
    /// None: each lane has one of its own.
    places: Vec<Place>,
    slice: Ns,
    /// Lanes that were woken, and those whose slice is over or that begin, with the time since
    /// which they wait.
    woken: VecDeque<u32>,
    others: VecDeque<(u32, Ns)>,
}

impl Processors {
    pub(super) fn new(count: u16, slice: Ns) -> Self {
        let places = vec![Place::default(); usize::from(count)];
        Self { places, slice, woken: VecDeque::new(), others: VecDeque::new() }
    }

    fn is_wanted(&self) -> bool {
        !(self.woken.is_empty() && self.others.is_empty())
    }

    fn next(&mut self, now: Ns) -> Option<u32> {
        let is_late = self.others.front().is_some_and(|&(_, since)| since + self.slice <= now);
        let woken = if is_late { None } else { self.woken.pop_front() };
        woken.or_else(|| Some(self.others.pop_front()?.0)).or_else(|| self.woken.pop_front())
    }
}

impl Machine {
    /// Processor on which a lane runs, or ran last.
    pub(super) fn processor_of(&self, lane: u32) -> u16 {
        self.lanes.get(lane as usize).and_then(|state| state.place).unwrap_or_else(|| {
            let count = match self.processors.places.len() {
                0 => u32::from(self.settings.cpus.max(1)),
                count => count as u32,
            };
            (lane % count) as u16
        })
    }

    /// Lets a task go on with some work of the processor if its process has one: the end of that
    /// work. If not, it waits for one, and does the work then.
    pub(super) fn go_on(&mut self, index: TaskIndex, cost_ns: u64, is_woken: bool) -> Option<Ns> {
        let RunBy::Lane(lane) = self.task(index).runner else {
            return Some(self.spend(index, cost_ns));
        };
        if self.processors.places.is_empty() || self.takes_processor(lane) {
            return Some(if cost_ns > 0 { self.spend(index, cost_ns) } else { self.now });
        }
        self.task(index).pending += 1;
        self.task(index).is_waiting = true;
        let state = &mut self.lanes[lane as usize];
        state.held.push((index, cost_ns));
        if state.held.len() == 1 {
            if is_woken && !state.is_over {
                self.processors.woken.push_back(lane);
            } else {
                self.processors.others.push_back((lane, self.now));
            }
        }
        for number in 0..self.processors.places.len() {
            self.plan_look(number);
        }
        None
    }

    /// Tell whether a process has a processor, if need be one that has been left.
    fn takes_processor(&mut self, lane: u32) -> bool {
        let number = usize::from(self.processor_of(lane));
        let is_wanted = self.processors.is_wanted();
        if self.processors.places[number].owner == Some(lane) {
            if !is_wanted || self.processors.places[number].until > self.now {
                return true;
            }
            self.lanes[lane as usize].is_over = true;
            self.hand_over(number);
            return false;
        }
        if is_wanted {
            return false;
        }
        let count = self.processors.places.len();
        let left = (number..count).chain(0..number).find(|&number| self.is_left(number));
        if let Some(number) = left {
            self.put(number, lane, self.now);
        }
        left.is_some()
    }

    fn free_from(&self, number: usize) -> Ns {
        let owner = self.processors.places[number].owner;
        owner.map_or(Ns(0), |lane| self.lanes[lane as usize].cpu_free)
    }

    fn is_left(&self, number: usize) -> bool {
        let place = self.processors.places[number];
        place.owner.is_none() || self.free_from(number) + LEFT_AFTER <= self.now
    }

    fn put(&mut self, number: usize, lane: u32, from: Ns) {
        let until = from + self.processors.slice;
        let place = &mut self.processors.places[number];
        let before = (place.owner, place.until);
        (place.owner, place.until) = (Some(lane), until);
        if let (Some(other), true) = (before.0, before.1 <= from) {
            // If it wants to go on: it was not woken, its slice is over.
            let is_busy = self.lanes[other as usize].cpu_free + LEFT_AFTER > from;
            self.lanes[other as usize].is_over |= is_busy;
        }
        let state = &mut self.lanes[lane as usize];
        state.place = Some(number as u16);
        state.is_over = false;
        state.cpu_free = state.cpu_free.max(from);
    }

    /// Gives a processor to the first that waits for one.
    fn hand_over(&mut self, number: usize) {
        let Some(lane) = self.processors.next(self.now) else { return };
        let from = self.free_from(number).max(self.now);
        self.put(number, lane, from);
        for (index, cost_ns) in core::mem::take(&mut self.lanes[lane as usize].held) {
            let at = self.spend(index, cost_ns);
            let task = self.task(index);
            task.pending -= 1;
            if task.pending == 0 && task.is_waiting {
                self.calendar.plan(at, Event::Resume(index));
            }
        }
        self.plan_look(number);
    }

    /// Plans to look at a processor when it may have been left, if somebody waits for one.
    fn plan_look(&mut self, number: usize) {
        let place = self.processors.places[number];
        if place.is_planned || !self.processors.is_wanted() {
            return;
        }
        let busy = self.free_from(number).max(self.now);
        let is_over = place.until <= busy && busy > self.now;
        let at = if is_over { busy } else { busy + LEFT_AFTER };
        self.processors.places[number].is_planned = true;
        self.calendar.plan(at, Event::Processor(number as u16));
    }

    /// Gives a processor away if its process has left it or its slice is over.
    pub(super) fn look_at_processor(&mut self, number: u16) {
        let number = usize::from(number);
        self.processors.places[number].is_planned = false;
        let is_over = self.processors.places[number].until <= self.now;
        if self.is_left(number) || is_over && self.free_from(number) <= self.now {
            self.hand_over(number);
        }
        self.plan_look(number);
    }
}
