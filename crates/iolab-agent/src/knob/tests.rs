//! Each knob on a fake root: read, apply, verify, restore; and what a crash leaves to restore.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{ALL, KnobSet, Scope, Site, find};
use crate::error::{Error, Result};
use crate::journal::{self, Journal};
use crate::machine::{Fuse, Machine, fake_machine, tree};
use crate::protocol::ActionKind;
use crate::restore;

const BOOT: &str = "boot-1";

fn asked(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn devices(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

struct Laboratory {
    root: tempfile::TempDir,
    state: tempfile::TempDir,
    machine: Machine,
}

impl Laboratory {
    fn new() -> Self {
        let (root, mut machine) = fake_machine();
        let state = tempfile::tempdir().unwrap();
        machine.attach_journal(Journal::create(state.path(), "run-1", BOOT).unwrap());
        Self { root, state, machine }
    }

    fn read(&self, device: Option<&str>, knob: &str) -> Option<String> {
        find(knob).unwrap().1.read(&self.machine, Site { device, knob })
    }
}

/// Each row, or of a family its first member, with its two example values.
fn examples() -> impl Iterator<Item = (&'static str, [String; 2])> {
    ALL.iter().map(|row| {
        let about = row.knob.about();
        (about.members.first().map_or(row.name, |(name, _)| *name), about.example)
    })
}

#[test]
fn every_row_is_applied_verified_and_restored() {
    for (name, [_, value]) in examples() {
        let mut lab = Laboratory::new();
        let before = tree(lab.root.path());
        let device = (find(name).unwrap().1.scope() == Scope::Device).then_some("sda");
        let original = lab.read(device, name).expect(name);
        assert_ne!(original, value, "{name}");
        let mut knobs = KnobSet::new(&devices(&["sda"]), None);
        let applied = knobs.apply(&mut lab.machine, &asked(&[(name, &value)])).expect(name);
        assert_eq!(applied.warnings, [], "{name}");
        assert_eq!(lab.read(device, name), Some(value), "{name}");
        let outcome = restore::undo(&mut lab.machine, BOOT);
        assert_eq!(outcome.problems, Vec::<String>::new(), "{name}");
        assert_eq!(tree(lab.root.path()), before, "{name}");
    }
}

#[test]
fn every_row_refuses_nonsense_before_writing() {
    for (name, _) in examples() {
        for value in ["", "fast", "-7", "99999999999999999999"] {
            let mut lab = Laboratory::new();
            let before = tree(lab.root.path());
            let mut knobs = KnobSet::new(&devices(&["sda"]), None);
            let error = knobs.apply(&mut lab.machine, &asked(&[(name, value)])).unwrap_err();
            assert!(matches!(error, Error::KnobValue { .. }), "{name}={value}: {error}");
            assert_eq!(tree(lab.root.path()), before, "{name}={value}");
        }
    }
}

#[test]
fn knobs_that_are_not_named_go_back_between_trials() {
    let mut lab = Laboratory::new();
    let before = tree(lab.root.path());
    let mut knobs = KnobSet::new(&devices(&["sda"]), None);
    let first = [("scheduler", "bfq"), ("bfq.slice_idle", "0"), ("driver_queue_depth", "4")];
    let applied = knobs.apply(&mut lab.machine, &asked(&first)).unwrap();
    assert_eq!(applied.knobs["bfq.slice_idle"], "0");
    assert_eq!(applied.knobs["wbt_lat_usec"], "0", "bfq turns it off");
    let second = knobs.apply(&mut lab.machine, &asked(&[("scheduler", "bfq")])).unwrap();
    assert_eq!(second.knobs["bfq.slice_idle"], "8", "a tunable of an earlier trial is forgotten");
    assert_eq!(second.knobs["driver_queue_depth"], "128");
    knobs.apply(&mut lab.machine, &asked(&[])).unwrap();
    assert_eq!(tree(lab.root.path()), before);
}

#[test]
fn twins_differ_in_knobs_and_each_original_is_noted_once() {
    let mut lab = Laboratory::new();
    let before = tree(lab.root.path());
    let mut knobs = KnobSet::new(&devices(&["loop8", "sda"]), None);
    let levels = [asked(&[("scheduler", "none")]), asked(&[("scheduler", "bfq")])];
    for shift in [0, 1, 0, 1] {
        for place in 0..2 {
            let level = &levels[(place + shift) % 2];
            let applied = knobs.apply_on(&mut lab.machine, place, level).unwrap();
            assert_eq!(applied.knobs["scheduler"], level["scheduler"]);
            assert_eq!(applied.knobs.contains_key("bfq.low_latency"), level["scheduler"] == "bfq");
        }
    }
    let path = journal::file_of(lab.state.path(), "run-1");
    let journal = std::fs::read_to_string(path).unwrap();
    assert_eq!(journal.matches("/queue/scheduler\"").count(), 2, "once for each device");
    let machine_wide = asked(&[("vm.dirty_ratio", "1")]);
    assert!(knobs.apply_on(&mut lab.machine, 0, &machine_wide).is_err());
    let outcome = restore::undo(&mut lab.machine, BOOT);
    assert_eq!(outcome.problems, Vec::<String>::new());
    assert_eq!(tree(lab.root.path()), before);
}

#[test]
fn a_tunable_of_another_scheduler_is_not_written() {
    let mut lab = Laboratory::new();
    let mut knobs = KnobSet::new(&devices(&["sda"]), None);
    let both = [("scheduler", "bfq"), ("bfq.slice_idle", "0"), ("mq-deadline.fifo_batch", "1")];
    let applied = knobs.apply(&mut lab.machine, &asked(&both)).unwrap();
    assert_eq!(applied.knobs["bfq.slice_idle"], "0");
    let back = asked(&[("mq-deadline.fifo_batch", "2"), ("bfq.slice_idle", "0")]);
    let applied = knobs.apply(&mut lab.machine, &back).unwrap();
    assert_eq!(applied.knobs["scheduler"], "mq-deadline");
    assert_eq!(applied.knobs["mq-deadline.fifo_batch"], "2");
    assert_eq!(applied.knobs["nr_requests"], "64", "its owner's value");
}

#[test]
fn old_names_of_schedulers_are_explained() {
    let mut lab = Laboratory::new();
    let mut knobs = KnobSet::new(&devices(&["loop8"]), None);
    for (legacy, today) in [("noop", "none"), ("deadline", "mq-deadline"), ("cfq", "bfq")] {
        let error = knobs.apply(&mut lab.machine, &asked(&[("scheduler", legacy)])).unwrap_err();
        assert!(error.to_string().contains(&format!("'{today}'")), "{error}");
    }
    let error = knobs.apply(&mut lab.machine, &asked(&[("scheduler", "bqf")])).unwrap_err();
    assert!(error.to_string().contains("did you mean 'bfq'?"), "{error}");
    let error = knobs.apply(&mut lab.machine, &asked(&[("schedular", "bfq")])).unwrap_err();
    assert!(error.to_string().contains("did you mean 'scheduler'?"), "{error}");
}

/// Issue 14, point 15: `--nr-requests 0` was answered by a complaint about `driver_queue_depth`,
/// which had not been typed: the value was checked under the name that it has for the driver.
#[test]
fn requests_under_none_are_refused_by_the_name_that_was_typed() {
    let mut lab = Laboratory::new();
    let mut knobs = KnobSet::new(&devices(&["loop8"]), None);
    let none = [("scheduler", "none"), ("nr_requests", "0")];
    let error = knobs.apply(&mut lab.machine, &asked(&none)).unwrap_err().to_string();
    assert!(error.starts_with("nr_requests of loop8 cannot be '0'"), "{error}");
    assert!(!error.contains("driver_queue_depth"), "{error}");
    let depth = [("scheduler", "none"), ("driver_queue_depth", "0")];
    let error = knobs.apply(&mut lab.machine, &asked(&depth)).unwrap_err().to_string();
    assert!(error.starts_with("driver_queue_depth of loop8 cannot be '0'"), "{error}");
}

#[test]
fn requests_under_none_are_the_drivers_depth() {
    let mut lab = Laboratory::new();
    let before = tree(lab.root.path());
    let mut knobs = KnobSet::new(&devices(&["loop8"]), None);
    let applied = knobs.apply(&mut lab.machine, &asked(&[("nr_requests", "4")])).unwrap();
    assert_eq!(applied.warnings[0].code, "nr_requests_is_driver_depth");
    assert_eq!(applied.knobs["driver_queue_depth"], "4");
    let applied = knobs.apply(&mut lab.machine, &asked(&[("scheduler", "bfq")])).unwrap();
    assert_eq!(applied.knobs["driver_queue_depth"], "128", "it must not survive the switch");
    knobs.apply(&mut lab.machine, &asked(&[])).unwrap();
    assert_eq!(tree(lab.root.path()), before);
}

#[test]
fn the_depth_is_restored_even_if_it_cannot_be_seen() {
    let mut lab = Laboratory::new();
    std::fs::remove_dir_all(lab.root.path().join("sys/kernel/debug")).unwrap();
    let before = tree(lab.root.path());
    let mut knobs = KnobSet::new(&devices(&["loop8"]), None);
    let wanted = asked(&[("driver_queue_depth", "4"), ("scheduler", "bfq")]);
    let applied = knobs.apply(&mut lab.machine, &wanted).unwrap();
    assert_eq!(applied.warnings[0].code, "knob_unverified");
    assert_eq!(std::fs::read_to_string(lab.root.path().join("truth/loop8")).unwrap(), "4");
    let outcome = restore::undo(&mut lab.machine, BOOT);
    assert_eq!(outcome.problems, Vec::<String>::new());
    assert_eq!(tree(lab.root.path()), before);
}

#[test]
fn a_value_that_the_kernel_changes_is_told() {
    let mut lab = Laboratory::new();
    let mut knobs = KnobSet::new(&devices(&["sda"]), None);
    let two_ways = asked(&[("bfq.slice_idle", "1"), ("bfq.slice_idle_us", "2")]);
    assert!(knobs.apply(&mut lab.machine, &two_ways).is_err());
    let applied = knobs.apply(&mut lab.machine, &asked(&[("max_sectors_kb", "0")])).unwrap();
    assert_eq!(applied.warnings, []);
}

fn trial() -> impl Strategy<Value = BTreeMap<String, String>> {
    let pairs = [
        ("scheduler", "none"),
        ("scheduler", "mq-deadline"),
        ("scheduler", "bfq"),
        ("driver_queue_depth", "4"),
        ("driver_queue_depth", "128"),
        ("nr_requests", "4"),
        ("nr_requests", "128"),
        ("bfq.slice_idle", "0"),
        ("bfq.low_latency", "0"),
        ("mq-deadline.fifo_batch", "1"),
        ("wbt_lat_usec", "0"),
        ("wbt_lat_usec", "75000"),
        ("read_ahead_kb", "0"),
        ("max_sectors_kb", "64"),
        ("nomerges", "2"),
        ("vm.dirty_ratio", "1"),
        ("vm.dirty_background_bytes", "65536"),
        ("vm.dirty_background_ratio", "3"),
    ];
    prop::collection::vec(prop::sample::select(pairs.to_vec()), 0..6)
        .prop_map(|pairs| asked(&pairs))
}

fn run_until_death(lab: &mut Laboratory, trials: &[BTreeMap<String, String>]) -> Result<()> {
    let mut knobs = KnobSet::new(&devices(&["loop8", "sda"]), None);
    for trial in trials {
        knobs.apply(&mut lab.machine, trial)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn whenever_the_agent_dies_the_machine_can_be_restored(
        trials in prop::collection::vec(trial(), 1..4),
        steps in 1_u32..60,
        steps_of_first_restore in 0_u32..20,
    ) {
        let mut lab = Laboratory::new();
        let before = tree(lab.root.path());
        lab.machine.burn_after(&Fuse::new(steps));
        let _ = run_until_death(&mut lab, &trials);
        drop(lab.machine.detach_journal());

        // A restore that dies itself, then one that does not.
        let path = journal::file_of(lab.state.path(), "run-1");
        for fuse in [Some(Fuse::new(steps_of_first_restore)), None] {
            let Some(journal) = Journal::adopt(&path).unwrap() else { break };
            let mut machine = Machine::reborn(lab.root.path());
            machine.attach_journal(journal);
            let is_last = fuse.is_none();
            if let Some(fuse) = fuse {
                machine.burn_after(&fuse);
            }
            let outcome = restore::undo(&mut machine, BOOT);
            prop_assert!(!is_last || outcome.problems.is_empty(), "{:?}", outcome.problems);
        }
        prop_assert_eq!(tree(lab.root.path()), before);
    }
}

/// Files that were written since the last call.
fn written(machine: &mut Machine) -> BTreeSet<String> {
    let writes = machine.take_actions().into_iter();
    writes.filter(|a| a.kind == ActionKind::WriteKnob).map(|action| action.target).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A dry run must say all that closing would write; what a switch resets is easily forgotten.
    #[test]
    fn a_dry_run_names_every_file_that_restoring_writes(
        trials in prop::collection::vec(trial(), 1..4),
        has_debugfs: bool,
    ) {
        let mut lab = Laboratory::new();
        if !has_debugfs {
            std::fs::remove_dir_all(lab.root.path().join("sys/kernel/debug")).unwrap();
        }
        let before = tree(lab.root.path());
        let mut rehearsing = Machine::rehearsing(lab.root.path());
        rehearsing.attach_journal(Journal::on_paper(lab.state.path(), "run-1", BOOT));
        let mut knobs = KnobSet::new(&devices(&["loop8", "sda"]), None);
        for trial in &trials {
            if knobs.apply(&mut rehearsing, trial).is_err() {
                break;
            }
        }
        written(&mut rehearsing);
        prop_assert_eq!(restore::undo(&mut rehearsing, BOOT).problems, Vec::<String>::new());
        let foreseen_back = written(&mut rehearsing);
        prop_assert_eq!(tree(lab.root.path()), before);

        // Each round has another order, and the dry run has seen only the first.
        let mut reversed = trials.clone();
        reversed.reverse();
        for order in [trials, reversed] {
            if run_until_death(&mut lab, &order).is_err() {
                break;
            }
            let writes = written(&mut lab.machine);
            restore::undo(&mut lab.machine, BOOT);
            let back = written(&mut lab.machine);
            let missed: Vec<&String> = back.difference(&foreseen_back).collect();
            prop_assert_eq!(missed, Vec::<&String>::new(), "of {:?} by restoring", writes);
        }
    }
}

/// The part behind the dot becomes a file name below `iosched`; an absolute or dotted one in a
/// request or a journal would lead root to any file.
#[test]
fn a_tunable_that_is_no_plain_name_is_unknown() {
    for name in ["bfq./etc/passwd", "bfq.../nomerges", "bfq.", "bfq.a.b", "bfq.a/b"] {
        assert!(crate::knob::find(name).is_err(), "{name}");
    }
    assert!(crate::knob::find("bfq.slice_idle").is_ok());
}

#[test]
fn governors_that_differ_are_put_back_one_by_one() {
    let mut lab = Laboratory::new();
    assert_eq!(lab.read(None, "cpu.governor").as_deref(), Some("schedutil,powersave"));
    let before = tree(lab.root.path());
    let mut knobs = KnobSet::new(&[], None);
    let asked_for = asked(&[("cpu.governor", "performance")]);
    let applied = knobs.apply(&mut lab.machine, &asked_for).unwrap();
    assert_eq!(applied.knobs["cpu.governor"], "performance");
    assert_eq!(restore::undo(&mut lab.machine, BOOT).problems, Vec::<String>::new());
    assert_eq!(tree(lab.root.path()), before);
    let error = knobs.apply(&mut lab.machine, &asked(&[("cpu.governor", "ondemand")]));
    let message = error.unwrap_err().to_string();
    assert!(message.contains("offers powersave, schedutil, performance"), "{message}");
}

#[test]
fn a_machine_without_clock_control_says_so() {
    let mut lab = Laboratory::new();
    std::fs::remove_dir_all(lab.root.path().join("sys/devices/system/cpu")).unwrap();
    let before = tree(lab.root.path());
    let cases = [
        ("cpu.governor", "performance", "virtual machines mostly cannot"),
        ("cpu.no_turbo", "1", "have cpu.boost"),
        ("cpu.boost", "0", "has cpu.no_turbo"),
    ];
    for (name, value, reason) in cases {
        let mut knobs = KnobSet::new(&[], None);
        let error = knobs.apply(&mut lab.machine, &asked(&[(name, value)])).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(tree(lab.root.path()), before, "{name}");
    }
}
