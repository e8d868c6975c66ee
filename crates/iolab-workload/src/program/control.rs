//! Semaphores, barriers, and tenants that keep a proportion.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::description::Program;
use crate::spec::{Phase, Tenant};

/// Longest rest of a worker at a semaphore: its time may be over meanwhile.
const REST: Duration = Duration::from_millis(2);

/// A semaphore that the workers of a phase share.
#[derive(Debug, Default)]
pub(super) struct Semaphore {
    pub(super) name: String,
    held: Mutex<Held>,
    /// There may be enough to take.
    enough: Condvar,
    /// There may be room to post.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    value: u64,
    /// Number of broadcasts.
    broadcasts: u64,
    /// Smallest number that a resting worker wants to take; 0: none rests.
    wanted: u64,
    /// Number of workers that rest until they may post.
    posters: u32,
}

impl Semaphore {
    /// Every semaphore that programs name.
    pub(super) fn of<'a>(programs: impl Iterator<Item = &'a Program>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (_, node) in programs.flat_map(Program::nodes) {
            if let Some(name) = &node.semaphore
                && all.iter().all(|known| known.name != *name)
            {
                all.push(Self { name: name.clone(), ..Self::default() });
            }
        }
        all
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to it, unless it holds more than `high_water`.
    pub(super) fn post(&self, count: u64, high_water: Option<u64>) -> bool {
        let mut held = self.held();
        if high_water.is_some_and(|most| held.value > most) {
            return false;
        }
        held.value = held.value.saturating_add(count);
        if held.wanted > 0 && held.value >= held.wanted {
            held.wanted = 0;
            self.enough.notify_all();
        }
        true
    }

    /// Takes from it, if it holds so much.
    pub(super) fn take(&self, count: u64) -> bool {
        let mut held = self.held();
        let Some(left) = held.value.checked_sub(count) else { return false };
        held.value = left;
        if held.posters > 0 {
            self.room.notify_all();
        }
        true
    }

    /// Lets everybody go on who waits now.
    pub(super) fn broadcast(&self) {
        self.held().broadcasts += 1;
    }

    /// Number of broadcasts so far: who waits goes on when there are more.
    pub(super) fn broadcasts(&self) -> u64 {
        self.held().broadcasts
    }

    /// Rests a while, or until there may be enough to take.
    pub(super) fn rest_until_enough(&self, count: u64) {
        let mut held = self.held();
        if held.value < count {
            held.wanted = if held.wanted == 0 { count } else { held.wanted.min(count) };
            drop(self.enough.wait_timeout(held, REST));
        }
    }

    /// Rests a while, or until there may be room to post.
    pub(super) fn rest_until_room(&self, high_water: u64) {
        let mut held = self.held();
        if held.value > high_water {
            held.posters += 1;
            let waited = self.room.wait_timeout(held, REST);
            waited.unwrap_or_else(PoisonError::into_inner).0.posters -= 1;
        }
    }
}

/// A barrier: whoever comes there waits until all have come that are still at work.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) name: String,
    meeting: Mutex<Meeting>,
}

#[derive(Debug)]
struct Meeting {
    /// Workers at work of each tenant of the phase; none of those that never come.
    working: Vec<u32>,
    /// Tenants that begin there and have no step that comes again.
    comes_once: Vec<bool>,
    /// Workers that have come and wait.
    waiting: u32,
    /// Number of times that it has opened.
    openings: u64,
}

impl Meeting {
    /// Opens it if all have come.
    fn settle(&mut self) -> bool {
        let is_complete = self.waiting >= self.working.iter().sum();
        if is_complete {
            self.waiting = 0;
            self.openings += 1;
            for (working, _) in self.working.iter_mut().zip(&self.comes_once).filter(|it| *it.1) {
                *working = 0;
            }
        }
        is_complete
    }
}

impl Barrier {
    /// Every barrier that programs of a phase name.
    pub(super) fn of(phase: &Phase) -> Vec<Self> {
        let programs = || phase.tenants.iter().map(|tenant| (tenant, tenant.program.as_ref()));
        let names: BTreeSet<&str> =
            programs().filter_map(|(_, program)| program).flat_map(Program::barriers).collect();
        let barrier = |name: &str| {
            let workers = |(tenant, program): (&Tenant, Option<&Program>)| {
                program.filter(|program| program.comes_to(name)).map_or(0, |_| tenant.workers)
            };
            let working = programs().map(workers).collect();
            let comes_once = |(_, program): (&Tenant, Option<&Program>)| {
                program.is_some_and(|program| program.step_barriers().all(|step| step != name))
            };
            let comes_once = programs().map(comes_once).collect();
            let meeting = Mutex::new(Meeting { working, comes_once, waiting: 0, openings: 0 });
            Self { name: name.to_owned(), meeting }
        };
        names.into_iter().map(barrier).collect()
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker comes. `None`: it was the last one, and all go on; else what it waits with.
    pub(super) fn come(&self) -> Option<u64> {
        let mut meeting = self.meeting();
        meeting.waiting += 1;
        let ticket = meeting.openings;
        if meeting.settle() { None } else { Some(ticket) }
    }

    /// Tell whether it has opened for who waits with this ticket.
    pub(super) fn is_open(&self, ticket: u64) -> bool {
        self.meeting().openings > ticket
    }

    /// A worker of a tenant has ended, perhaps while it waited: nobody waits for it any longer.
    pub(super) fn leave(&self, tenant: usize, ticket: Option<u64>) {
        let mut meeting = self.meeting();
        meeting.working[tenant] = meeting.working[tenant].saturating_sub(1);
        if ticket.is_some_and(|ticket| ticket == meeting.openings) {
            meeting.waiting -= 1;
        }
        if meeting.waiting > 0 {
            meeting.settle();
        }
    }
}

/// Tenants whose passes stay in proportion.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) name: String,
    members: Mutex<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    tenant: usize,
    weight: u64,
    passes: u64,
    /// Workers that have not ended.
    active: u32,
}

impl FlowState {
    /// Every flow of a phase.
    pub(super) fn of(phase: &Phase) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (index, tenant) in phase.tenants.iter().enumerate() {
            let Some(flow) = tenant.program.as_ref().and_then(|own| own.flow.as_ref()) else {
                continue;
            };
            let member =
                Member { tenant: index, weight: flow.weight, passes: 0, active: tenant.workers };
            let known = all.iter_mut().find(|known| known.name == flow.name);
            if let Some(known) = known {
                known.members.get_mut().unwrap_or_else(PoisonError::into_inner).push(member);
            } else {
                let members = Mutex::new(vec![member]);
                all.push(Self { name: flow.name.clone(), members });
            }
        }
        all
    }

    /// Begins a pass of a tenant, unless it is ahead of another that still works.
    pub(super) fn begin(&self, tenant: usize) -> bool {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(me) = members.iter().position(|member| member.tenant == tenant) else {
            return true;
        };
        let (mine, weight) = (u128::from(members[me].passes), u128::from(members[me].weight));
        let is_ahead = |other: &Member| {
            let (theirs, their_weight) = (u128::from(other.passes), u128::from(other.weight));
            other.active > 0 && other.tenant != tenant && mine * their_weight > theirs * weight
        };
        if members.iter().any(is_ahead) {
            return false;
        }
        members[me].passes += 1;
        true
    }

    /// A worker of a tenant has ended: nobody waits for it any longer.
    pub(super) fn leave(&self, tenant: usize) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(member) = members.iter_mut().find(|member| member.tenant == tenant) {
            member.active = member.active.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_gives_what_it_got() {
        let semaphore = Semaphore::default();
        assert!(!semaphore.take(1));
        assert!(semaphore.post(3, Some(2)));
        assert!(!semaphore.post(1, Some(2)), "it holds more than 2");
        assert!(semaphore.take(2) && !semaphore.take(2) && semaphore.take(1));
    }

    #[test]
    fn a_barrier_opens_for_all_who_are_still_at_work() {
        let comes_once = vec![false; 3];
        let meeting = Meeting { working: vec![2, 0, 1], comes_once, waiting: 0, openings: 0 };
        let barrier = Barrier { name: "b".into(), meeting: Mutex::new(meeting) };
        let first = barrier.come().unwrap();
        let second = barrier.come().unwrap();
        assert!(!barrier.is_open(first));
        assert_eq!(barrier.come(), None, "the last one waits for nobody");
        assert!(barrier.is_open(first) && barrier.is_open(second));
        // Two have come again when the third ends elsewhere.
        let tickets = [barrier.come().unwrap(), barrier.come().unwrap()];
        barrier.leave(2, None);
        assert!(tickets.iter().all(|&ticket| barrier.is_open(ticket)));
        // One waits and is ended by its clock: it is not counted as one that has come.
        let ticket = barrier.come();
        barrier.leave(0, ticket);
        assert_eq!(barrier.come(), None, "it is alone");
    }

    /// Symptom: a tenant that came to a barrier in each pass waited the second time until those had
    /// ended that only began there.
    #[test]
    fn who_only_begins_at_a_barrier_is_waited_for_once() {
        let comes_once = vec![false, true];
        let meeting = Meeting { working: vec![1, 2], comes_once, waiting: 0, openings: 0 };
        let barrier = Barrier { name: "b".into(), meeting: Mutex::new(meeting) };
        assert!(barrier.come().is_some() && barrier.come().is_some());
        assert_eq!(barrier.come(), None);
        assert_eq!(barrier.come(), None, "the one that comes again is alone");
        barrier.leave(1, None);
        assert_eq!(barrier.come(), None);
    }

    #[test]
    fn a_flow_keeps_its_proportion() {
        let member = |tenant, weight| Member { tenant, weight, passes: 0, active: 1 };
        let members = Mutex::new(vec![member(0, 2), member(1, 1)]);
        let flow = FlowState { name: "f".into(), members };
        let mut passes = [0_u64; 2];
        for _ in 0..300 {
            for (tenant, count) in passes.iter_mut().enumerate() {
                *count += u64::from(flow.begin(tenant));
            }
            assert!(passes[0].abs_diff(2 * passes[1]) <= 2, "{passes:?}");
        }
        assert!(passes[1] > 90, "somebody can always go on: {passes:?}");
        flow.leave(1);
        assert!((0..50).all(|_| flow.begin(0)), "who is alone waits for nobody");
    }
}
