//! kyber and bfq on every recording: arrivals and ends from the kernel, all choices by the model
//! (`replay/follow.rs`).
//!
//! The twins of some of these recordings miss (`dispatch_recordings.rs`); what is compared here is
//! the scheduler alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use iolab_sim::replay::{Method, Prediction, Recording, predict};
use iolab_sim::sched::SchedulerKind;

fn recording(name: &str) -> Recording {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let packed = std::fs::File::open(golden.join(format!("{name}.csv.gz"))).unwrap();
    let mut csv = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut csv).unwrap();
    let setup = std::fs::read_to_string(golden.join(format!("{name}.json"))).unwrap();
    Recording::parse(name, &csv, &setup).unwrap()
}

fn followed(name: &str, explain: Option<u64>) -> Prediction {
    let recording = recording(name);
    let kind = recording.setup.scheduler;
    let found = predict(&recording, kind, &BTreeMap::new(), explain).unwrap().unwrap();
    println!(
        "{name}: {:.4} at the very place, {:.4} nearly, {} of {} without another history, {:?}",
        found.share(),
        found.share_nearly(),
        found.unexplained,
        found.issues,
        found.tick_phase_ns
    );
    assert_eq!(found.method, Method::Followed);
    found
}

#[test]
fn kyber_issues_as_recorded() {
    for (name, gate) in [
        ("dispatch/deep-kyber", 0.9990),
        ("dispatch/mixed-kyber", 0.9980),
        ("dispatch/sync-kyber", 1.0),
        ("dispatch-own/three-kyber", 1.0),
        ("dispatch-own/again-mixed-kyber", 1.0),
        ("dispatch-own/again-sync-kyber", 1.0),
        ("dispatch-own/prio-kyber", 1.0),
        ("dispatch-own/lat-kyber", 1.0),
    ] {
        let found = followed(name, None);
        assert!(found.share() >= gate, "{name}");
        assert_eq!(found.unexplained, 0, "{name}: a miss is two requests that were exchanged");
    }
}

#[test]
fn bfq_issues_as_recorded() {
    for (name, gate, unexplained) in [
        ("dispatch/deep-bfq", 0.998, 0),
        ("dispatch/mixed-bfq", 0.99, 6),
        ("dispatch/pause-bfq", 1.0, 0),
        ("dispatch-own/three-bfq", 1.0, 0),
        ("dispatch-own/again-sync-bfq", 1.0, 0),
        ("dispatch-own/again-mixed-bfq", 0.99, 5),
        ("dispatch-own/hot-bfq", 0.99, 0),
        ("dispatch-own/prio-bfq", 1.0, 0),
        ("dispatch-own/flush-bfq", 0.97, 0),
        ("dispatch-own/slots-bfq", 0.99, 0),
    ] {
        let found = followed(name, None);
        assert!(found.share() >= gate, "{name}");
        assert!(found.unexplained <= unexplained, "{name}");
    }
}

/// Not explained: 4 ms into the wait for a raised reader the model injects a request of another
/// queue where the kernel goes on waiting.
#[test]
fn bfq_takes_another_way_on_sync() {
    let sync = followed("dispatch/sync-bfq", Some(340));
    assert!((0.83..0.90).contains(&sync.share()));
    let told = sync.explanation.unwrap();
    assert_eq!((told.recorded, told.chosen, told.is_race), (131_832, Some(500_904), Some(false)));
    assert!(told.state.iter().any(|line| line.contains("waited for")), "{:?}", told.state);
    assert_eq!(sync.first_unexplained.unwrap().issue, 340);
}

/// Not explained: from issue 111 on the model has taken over staged requests a round earlier than
/// the kernel, which no history of the last 64 issues changes.
#[test]
fn kyber_loses_its_round_once_on_hot_blocks() {
    let hot = followed("dispatch-own/hot-kyber", None);
    assert!(hot.share() >= 0.97 && hot.unexplained <= 24, "{}", hot.share());
}

/// Not explained: while a raised reader is waited for, the kernel injects requests of another
/// raised queue at instants that the model does not find. (The first difference was issue 80
/// before blk-mq asked again a tick later.)
#[test]
fn bfq_injects_at_other_instants_beside_readers_with_pauses() {
    let found = followed("dispatch-own/think-bfq", None);
    assert!(found.share() >= 0.55, "{}", found.share());
    assert!(found.share_nearly() >= 0.9, "{}", found.share_nearly());
}

/// bfq counts in clock ticks. With those of a kernel that was booted on a full second of the
/// recording, the eleventh issue is another one already (0.78 of all at the very place).
#[test]
fn the_phase_of_the_ticks_is_found() {
    let found = followed("dispatch-own/again-mixed-bfq", None);
    assert_ne!(found.tick_phase_ns, Some(0));
}

#[test]
fn every_scheduler_tells_its_state() {
    for name in ["dispatch/deep-kyber", "dispatch/deep-mq-deadline", "dispatch/deep-bfq"] {
        let recording = recording(name);
        let kind = recording.setup.scheduler;
        let found = predict(&recording, kind, &BTreeMap::new(), Some(100)).unwrap().unwrap();
        let told = found.explanation.unwrap();
        println!("{name}: {told:#?}");
        assert_eq!((told.issue, told.chosen), (100, Some(told.recorded)), "{name}");
        assert!(!told.state.is_empty() && told.decided_at_ns.is_some(), "{name}");
        assert!(told.decided_at_ns <= Some(told.at_ns), "{name}");
    }
}

/// Another scheduler than the recorded one has another history: there is nothing to compare.
#[test]
fn nothing_is_predicted_by_a_scheduler_that_was_not_there() {
    let recording = recording("dispatch/deep-kyber");
    let found = predict(&recording, SchedulerKind::Bfq, &BTreeMap::new(), None).unwrap();
    assert!(found.is_none());
}
