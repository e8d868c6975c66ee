//! B-WF2Q+: the tree in lock step with a list, and shares within their bounds.

use proptest::prelude::*;

use crate::sched::bfq::entity::{Class, Entity, Place, virtual_time};
use crate::sched::bfq::service::Agenda;
use crate::sched::bfq::tree::Tree;

/// The tree's twin: entities in insertion order.
#[derive(Default)]
struct List {
    rows: Vec<(u32, u64, u64)>,
}

impl List {
    fn first_eligible(&self, time: u64) -> Option<u32> {
        let eligible = self.rows.iter().filter(|row| row.1 <= time);
        eligible.min_by_key(|row| row.2).map(|row| row.0)
    }

    fn first(&self) -> Option<(u32, u64)> {
        self.rows.iter().min_by_key(|row| row.2).map(|row| (row.0, row.2))
    }

    fn last(&self) -> Option<(u32, u64)> {
        self.rows.iter().max_by_key(|row| row.2).map(|row| (row.0, row.2))
    }
}

proptest! {
    #[test]
    fn the_tree_answers_like_a_list(
        steps in prop::collection::vec((0_u32..24, 0_u64..60, 0_u64..20, 0_u64..90), 1..400)
    ) {
        let mut tree = Tree::default();
        let mut list = List::default();
        for (id, start, length, time) in steps {
            if let Some(place) = list.rows.iter().position(|row| row.0 == id) {
                list.rows.remove(place);
                tree.remove(id);
            } else {
                list.rows.push((id, start, start + length));
                tree.insert(id, start, start + length);
            }
            prop_assert_eq!(tree.first_eligible(time), list.first_eligible(time));
            prop_assert_eq!(tree.first(), list.first());
            prop_assert_eq!(tree.last(), list.last());
            prop_assert_eq!(tree.is_empty(), list.rows.is_empty());
            let least = list.rows.iter().map(|row| row.1).min();
            prop_assert_eq!(tree.least_start(), least);
        }
    }

    #[test]
    fn shares_follow_weights_within_two_budgets(
        weights in prop::collection::vec(1_u32..100, 2..8),
        budgets in prop::collection::vec(8_u64..16_384, 60..200),
    ) {
        let lag = greatest_lag(&weights, &budgets);
        prop_assert!(lag <= 2.0 * 16_384.0, "a lag of {lag} sectors");
    }

    #[test]
    fn equal_weights_are_never_more_than_two_budgets_apart(
        count in 2_usize..8,
        budgets in prop::collection::vec(8_u64..16_384, 60..200),
    ) {
        let lag = greatest_lag(&vec![40; count], &budgets);
        prop_assert!(lag <= 2.0 * 16_384.0, "a lag of {lag} sectors");
    }
}

fn agenda_of(weights: &[u32]) -> Agenda {
    let entities = weights.iter().map(|&weight| Entity::new(Class::BestEffort, weight));
    Agenda { entities: entities.collect(), idle_class_period: 1, ..Agenda::default() }
}

/// Serves entities that always have work, one budget after another; the greatest distance in
/// sectors between an entity's service and its share of all service.
fn greatest_lag(weights: &[u32], budgets: &[u64]) -> f64 {
    let mut agenda = agenda_of(weights);
    let sum: f64 = weights.iter().copied().map(f64::from).sum();
    let mut served = vec![0.0; weights.len()];
    let mut greatest: f64 = 0.0;
    for id in 0..weights.len() as u32 {
        agenda.entities[id as usize].budget = budgets[0];
        agenda.activate_or_requeue(id, false, false);
    }
    for &budget in &budgets[1..] {
        let id = agenda.serve_next().expect("everybody has work");
        let work = agenda.entities[id as usize].budget;
        agenda.served(id, work / 2);
        agenda.served(id, work - work / 2);
        served[id as usize] += work as f64;
        agenda.entities[id as usize].budget = budget;
        agenda.activate_or_requeue(id, false, true);
        agenda.end_service();
        agenda.entities[id as usize].service = 0;
        let total: f64 = served.iter().sum();
        for (work, &weight) in served.iter().zip(weights) {
            greatest = greatest.max((work - total * f64::from(weight) / sum).abs());
        }
    }
    greatest
}

#[test]
fn virtual_times_are_floored() {
    // 22-bit shift: (1 << 22) / 3 = 1398101.33.
    assert_eq!(virtual_time(1, 3), 1_398_101);
    assert_eq!(virtual_time(10_922, 40), (10_922 << 22) / 40);
}

#[test]
fn an_idle_entity_that_returns_in_time_starts_where_it_finished() {
    let mut agenda = agenda_of(&[40, 40]);
    for id in 0..2 {
        agenda.entities[id].budget = 1_000;
        agenda.activate_or_requeue(id as u32, false, false);
    }
    assert_eq!(agenda.serve_next(), Some(0));
    agenda.served(0, 1_000);
    agenda.deactivate(0, true);
    agenda.end_service();
    // Two are weighed: virtual time has moved half as far as the finish time of the one served.
    assert_eq!(agenda.entities[0].finish, virtual_time(1_000, 40));
    assert_eq!(agenda.trees[1].virtual_time, virtual_time(1_000, 80));
    assert_eq!(agenda.entities[0].place, Place::Idle);
    agenda.activate_or_requeue(0, false, false);
    assert_eq!(agenda.entities[0].start, virtual_time(1_000, 40));
}

#[test]
fn virtual_time_goes_back_to_the_last_idle_one_when_nothing_is_active() {
    let mut agenda = agenda_of(&[40, 40]);
    for id in 0..2 {
        agenda.entities[id].budget = 1_000;
        agenda.activate_or_requeue(id as u32, false, false);
    }
    assert_eq!(agenda.serve_next(), Some(0));
    agenda.served(0, 100);
    agenda.deactivate(0, true);
    agenda.end_service();
    assert_eq!(agenda.serve_next(), Some(1));
    agenda.served(1, 1_000);
    assert_eq!(agenda.trees[1].virtual_time, virtual_time(100, 40));
    assert_eq!(agenda.forgotten, [0]);
}

#[test]
fn one_that_was_waiting_is_shifted_back() {
    let mut agenda = agenda_of(&[40, 40, 40]);
    for id in 0..3 {
        agenda.entities[id].budget = 1_000;
        agenda.activate_or_requeue(id as u32, false, false);
    }
    assert_eq!(agenda.serve_next(), Some(0));
    agenda.served(0, 100);
    agenda.deactivate(0, true);
    agenda.end_service();
    assert_eq!(agenda.serve_next(), Some(1));
    agenda.served(1, 1_000);
    let (now, finish) = (agenda.trees[1].virtual_time, agenda.entities[0].finish);
    assert!(now > finish);
    agenda.entities[0].budget = 900;
    agenda.activate_or_requeue(0, true, false);
    assert_eq!(agenda.entities[0].start, finish);
    // Its finish time lies behind the start it would otherwise have got plus a full budget.
    assert!(agenda.entities[0].finish < now + virtual_time(900, 40));
}

#[test]
fn classes_are_strict_but_idle_comes_after_its_period() {
    let mut agenda = agenda_of(&[40, 40, 40]);
    agenda.idle_class_period = 200;
    for (id, class) in [(0, Class::Idle), (1, Class::BestEffort), (2, Class::RealTime)] {
        agenda.entities[id].new_class = class;
        agenda.entities[id].class = class;
        agenda.entities[id].budget = 1_000;
        agenda.activate_or_requeue(id as u32, false, false);
    }
    assert_eq!(agenda.serve_next(), Some(2));
    assert_eq!(agenda.next, Some(1));
    agenda.ticks = 201;
    agenda.served(2, 1_000);
    agenda.activate_or_requeue(2, false, true);
    agenda.end_service();
    assert_eq!(agenda.next, Some(0), "the idle class was not looked at for 200 ticks");
    assert_eq!(agenda.serve_next(), Some(0));
    assert_eq!(agenda.next, Some(2), "and is not looked at again so soon");
}
