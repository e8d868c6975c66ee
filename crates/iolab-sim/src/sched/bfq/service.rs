//! B-WF2Q+: budgets, weights and virtual times decide which queue is served next.
//!
//! An entity may be chosen once the virtual time of its class has reached its start time; among
//! those, the one with the least finish time is next. Start and finish follow the service
//! received, divided by the weight, so that shares are proportional to weights and nobody is
//! further ahead of its share than one budget.
//!
//! Virtual times are 64 bits wide and do not wrap here (2^42 sectors times the weight).
//!
//! Source: P. Valente, F. Checconi, IEEE Trans. Computers 59(9), 2010; Linux 6.9
//! block/bfq-wf2q.c (behaviour).

use super::entity::{Class, Entity, Place, virtual_time};
use super::tree::Tree;
use super::weights::Weights;

/// One class: its entities and its virtual time.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceTree {
    pub(super) active: Tree,
    pub(super) idle: Tree,
    pub(super) virtual_time: u64,
    pub(super) weight_sum: u64,
}

/// Order of service: one level of the hierarchy.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    /// By queue number.
    pub(super) entities: Vec<Entity>,
    pub(super) trees: [ServiceTree; 3],
    /// Weights of the queues with work or requests in flight that are not raised.
    pub(super) weights: Weights,
    /// The entity in service.
    pub(super) in_service: Option<u32>,
    /// The cached answer to "who is next".
    pub(super) next: Option<u32>,
    /// Head of the list of active entities.
    pub(super) newest: Option<u32>,
    /// Entities that left the trees by themselves; the owner drains this.
    pub(super) forgotten: Vec<u32>,
    /// Tick at which the idle class was last looked at.
    pub(super) idle_class_looked_at: i64,
    /// Tick now; the owner sets it.
    pub(super) ticks: i64,
    /// Ticks after which the idle class is looked at first.
    // Linux block/bfq-iosched.h: BFQ_CL_IDLE_TIMEOUT, HZ/5.
    pub(super) idle_class_period: i64,
}

impl Agenda {
    fn entity(&self, id: u32) -> &Entity {
        &self.entities[id as usize]
    }

    fn tree_of(&mut self, id: u32) -> &mut ServiceTree {
        &mut self.trees[self.entities[id as usize].class.index()]
    }

    /// Virtual time of an entity's class.
    pub(super) fn virtual_time_of(&self, id: u32) -> u64 {
        self.trees[self.entity(id).class.index()].virtual_time
    }

    /// Charges service; virtual time moves on.
    pub(super) fn served(&mut self, id: u32, service: u64) {
        self.entities[id as usize].service += service;
        let class = self.entity(id).class;
        let tree = &mut self.trees[class.index()];
        tree.virtual_time += virtual_time(service, tree.weight_sum);
        self.forget_idle(class);
    }

    /// Something was queued (or a slot ended with work left): computes the times and enters the
    /// active tree. `was_waiting`: the entity counts as if it had never been idle.
    pub(super) fn activate_or_requeue(&mut self, id: u32, was_waiting: bool, is_expiration: bool) {
        let is_active = self.entity(id).place == Place::Active;
        if self.in_service == Some(id) || is_active {
            self.requeue(id);
        } else {
            self.activate(id, was_waiting);
        }
        self.update_next(Some(id), is_expiration);
    }

    /// Nothing is left to do: leaves the active tree (or service).
    pub(super) fn deactivate(&mut self, id: u32, is_expiration: bool) {
        if !self.entity(id).is_weighed {
            return;
        }
        let entity = &mut self.entities[id as usize];
        entity.finish_after(entity.service);
        if self.in_service == Some(id) {
            self.in_service = None;
        } else {
            entity.service = 0;
        }
        match self.entity(id).place {
            Place::Active => self.leave_active(id),
            Place::Idle => self.leave_idle(id),
            Place::Nowhere => {}
        }
        if self.entity(id).finish > self.virtual_time_of(id) {
            self.enter_idle(id);
        } else {
            self.forget(id);
        }
        if self.next == Some(id) {
            self.update_next(None, is_expiration);
        }
    }

    /// Puts the next entity in service. What was injected before counts in its slot.
    pub(super) fn serve_next(&mut self) -> Option<u32> {
        let id = self.next?;
        self.in_service = Some(id);
        self.leave_active(id);
        self.update_next(None, false);
        Some(id)
    }

    /// Ends service (after requeueing or deactivation).
    pub(super) const fn end_service(&mut self) {
        self.in_service = None;
    }

    /// Tell whether the choice could fall on another entity than the one in service.
    pub(super) fn next_may_preempt(&self) -> bool {
        self.next != self.in_service
    }

    /// Brings weight (and class, unless it sits in a tree) up to date.
    pub(super) fn reweigh(&mut self, id: u32, class_too: bool) {
        if !self.entity(id).must_reweigh {
            return;
        }
        let old_class = self.entity(id).class;
        let entity = &mut self.entities[id as usize];
        self.trees[old_class.index()].weight_sum -= u64::from(entity.weight);
        entity.original_weight = entity.new_weight;
        if class_too {
            entity.class = entity.new_class;
        }
        entity.must_reweigh = entity.class != entity.new_class;
        let weight = entity.original_weight * entity.raise;
        let (class, has_changed, is_raised) =
            (entity.class, entity.weight != weight, entity.raise > 1);
        if has_changed {
            self.uncount(id);
        }
        self.entities[id as usize].weight = weight;
        if has_changed && !is_raised {
            self.count(id);
        }
        let tree = &mut self.trees[class.index()];
        tree.weight_sum += u64::from(weight);
        if class != old_class {
            self.entities[id as usize].start = tree.virtual_time;
        }
    }

    /// Counts an entity among the weights in use.
    pub(super) fn count(&mut self, id: u32) {
        let entity = &mut self.entities[id as usize];
        if entity.counted.is_none() {
            entity.counted = Some(entity.weight);
            self.weights.add(entity.weight);
        }
    }

    /// Counts it no more.
    pub(super) fn uncount(&mut self, id: u32) {
        if let Some(weight) = self.entities[id as usize].counted.take() {
            self.weights.remove(weight);
        }
    }

    fn activate(&mut self, id: u32, was_waiting: bool) {
        let now = self.virtual_time_of(id);
        let entity = self.entity(id);
        let (place, finish, weight) = (entity.place, entity.finish, entity.weight);
        let is_shifted_back = was_waiting && now > finish;
        let least_start = if is_shifted_back { finish } else { now };
        if place == Place::Idle {
            self.leave_idle(id);
            self.entities[id as usize].start = least_start.max(finish);
        } else {
            self.tree_of(id).weight_sum += u64::from(weight);
            self.entities[id as usize].start = least_start;
            self.entities[id as usize].is_weighed = true;
        }
        self.enter_active(id, is_shifted_back);
    }

    fn requeue(&mut self, id: u32) {
        if self.in_service == Some(id) {
            let entity = &mut self.entities[id as usize];
            entity.finish_after(entity.service);
            entity.start = entity.finish;
        }
        if self.entity(id).place == Place::Active {
            self.leave_active(id);
        }
        self.enter_active(id, false);
    }

    fn enter_active(&mut self, id: u32, is_shifted_back: bool) {
        self.reweigh(id, true);
        let now = self.virtual_time_of(id);
        let newest = self.newest.replace(id);
        let entity = &mut self.entities[id as usize];
        entity.finish_after(entity.budget);
        if is_shifted_back && now > entity.finish {
            let delta = (now - entity.finish) / u64::from(entity.raise);
            entity.start += delta;
            entity.finish += delta;
        }
        entity.place = Place::Active;
        entity.newer = None;
        entity.older = newest;
        let (start, finish) = (entity.start, entity.finish);
        if let Some(newest) = newest {
            self.entities[newest as usize].newer = Some(id);
        }
        self.tree_of(id).active.insert(id, start, finish);
    }

    fn leave_active(&mut self, id: u32) {
        self.tree_of(id).active.remove(id);
        let entity = &mut self.entities[id as usize];
        entity.place = Place::Nowhere;
        let (newer, older) = (entity.newer.take(), entity.older.take());
        match newer {
            Some(newer) => self.entities[newer as usize].older = older,
            None => self.newest = older,
        }
        if let Some(older) = older {
            self.entities[older as usize].newer = newer;
        }
    }

    fn enter_idle(&mut self, id: u32) {
        let entity = &mut self.entities[id as usize];
        entity.place = Place::Idle;
        let (start, finish) = (entity.start, entity.finish);
        self.tree_of(id).idle.insert(id, start, finish);
    }

    fn leave_idle(&mut self, id: u32) {
        self.tree_of(id).idle.remove(id);
        self.entities[id as usize].place = Place::Nowhere;
    }

    fn forget(&mut self, id: u32) {
        let entity = &mut self.entities[id as usize];
        entity.is_weighed = false;
        let weight = u64::from(entity.weight);
        self.tree_of(id).weight_sum -= weight;
    }

    /// Forgets at most one idle entity whose finish time has passed.
    fn forget_idle(&mut self, class: Class) {
        let tree = &mut self.trees[class.index()];
        let Some((first, first_finish)) = tree.idle.first() else {
            return;
        };
        if tree.active.is_empty() {
            let (_, last_finish) = tree.idle.last().expect("the tree has a first");
            tree.virtual_time = tree.virtual_time.min(last_finish);
        }
        if first_finish <= tree.virtual_time {
            self.leave_idle(first);
            self.forget(first);
            self.forgotten.push(first);
        }
    }

    /// Brings the cached next entity up to date after `changed` was put in a tree.
    fn update_next(&mut self, changed: Option<u32>, is_expiration: bool) {
        if let Some(id) = changed.filter(|_| changed != self.next) {
            let Some(next) = self.next else {
                self.next = Some(id);
                return;
            };
            let (new, old) = (self.entity(id), self.entity(next));
            if new.class == old.class
                && new.start <= self.virtual_time_of(id)
                && new.finish < old.finish
            {
                self.next = Some(id);
                return;
            }
        }
        self.next = self.look_up(is_expiration);
    }

    fn look_up(&mut self, is_expiration: bool) -> Option<u32> {
        let mut classes = &Class::ALL[..];
        if self.idle_class_looked_at + self.idle_class_period < self.ticks {
            if !self.trees[Class::Idle.index()].active.is_empty() {
                classes = &Class::ALL[2..];
            }
            self.idle_class_looked_at = self.ticks;
        }
        classes.iter().find_map(|&class| self.first_of(class, is_expiration))
    }

    fn first_of(&mut self, class: Class, is_expiration: bool) -> Option<u32> {
        let is_serving = self.in_service.is_some() && !is_expiration;
        let tree = &mut self.trees[class.index()];
        let least_start = tree.active.least_start()?;
        let reached = tree.virtual_time.max(least_start);
        if !is_serving && reached > tree.virtual_time {
            tree.virtual_time = reached;
            self.forget_idle(class);
        }
        self.trees[class.index()].active.first_eligible(reached)
    }
}
