//! Recordings of the real kernel (6.18) against the simulated schedulers.
//!
//! The gates are those that a plain prototype reached; the remainder is mostly a race: the kernel
//! decides slightly before the issue is stamped.

use std::io::Read;
use std::path::Path;

use iolab_sim::replay::{Recording, Twin, predict, simulate};
use iolab_sim::sched::SchedulerKind;

fn recording(name: &str) -> Recording {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dispatch");
    let packed = std::fs::File::open(folder.join(format!("{name}.csv.gz"))).unwrap();
    let mut csv = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut csv).unwrap();
    let setup = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    Recording::parse(name, &csv, &setup).unwrap()
}

fn share(workload: &str, scheduler: SchedulerKind) -> f64 {
    let prediction = {
        let recording = recording(&format!("{workload}-{scheduler}"));
        predict(&recording, scheduler, &std::collections::BTreeMap::new()).unwrap()
    };
    println!("{workload}-{scheduler}: {} of {}", prediction.predicted, prediction.issues);
    for miss in &prediction.misses {
        println!("  {miss:?}");
    }
    prediction.share()
}

#[test]
fn none_issues_in_the_order_of_allocation() {
    for workload in ["deep", "mixed", "sync"] {
        let share = share(workload, SchedulerKind::None);
        assert!(share >= 0.999, "{workload}: {share}");
    }
}

#[test]
fn mq_deadline_is_predicted() {
    for (workload, gate) in [("deep", 0.98), ("mixed", 0.95), ("sync", 0.88)] {
        let share = share(workload, SchedulerKind::MqDeadline);
        assert!(share >= gate, "{workload}: {share} < {gate}");
    }
}

/// The closed-loop twin of a recording.
fn twin(workload: &str, scheduler: SchedulerKind, turned: f64) -> Twin {
    let recording = recording(&format!("{workload}-{scheduler}"));
    simulate(&recording, scheduler, &std::collections::BTreeMap::new(), turned).unwrap()
}

fn print(twin: &Twin) {
    println!("{:?}", twin.fit);
    for (name, figures) in [("real", &twin.real), ("simulated", &twin.simulated)] {
        println!(
            "  {name}: {} requests, ascending {:.3}, merges {}, joined {}",
            figures.requests, figures.ascending, figures.merges, figures.joined
        );
        for p in &figures.processes {
            println!(
                "    {} {} x{}: {} requests, wait {:.3} ms, share {:.3}",
                p.process,
                p.direction,
                p.outstanding,
                p.requests,
                p.wait_ns / 1e6,
                p.share
            );
        }
    }
}

/// What lies outside the bars: ascending share 0.03, waits 15 %, shares 5 points.
fn misses(twin: &Twin) -> Vec<String> {
    let (real, simulated) = (&twin.real, &twin.simulated);
    let mut misses = Vec::new();
    if (real.ascending - simulated.ascending).abs() > 0.03 {
        misses.push(format!("ascending {:.3}, {:.3}", real.ascending, simulated.ascending));
    }
    assert_eq!(real.processes.len(), simulated.processes.len());
    for (a, b) in real.processes.iter().zip(&simulated.processes) {
        assert_eq!((a.process, a.direction), (b.process, b.direction));
        if (b.wait_ns / a.wait_ns - 1.0).abs() > 0.15 {
            let (a_ms, b_ms) = (a.wait_ns / 1e6, b.wait_ns / 1e6);
            misses.push(format!("{} {}: waits {a_ms:.2}, {b_ms:.2} ms", a.process, a.direction));
        }
        if (a.share - b.share).abs() > 0.05 {
            misses.push(format!("{} {}: share {:.3}, {:.3}", a.process, a.direction, a.share, b.share));
        }
    }
    misses
}

fn check(workload: &str, scheduler: SchedulerKind) {
    let twin = twin(workload, scheduler, 0.0);
    print(&twin);
    assert_eq!(misses(&twin), Vec::<String>::new(), "{workload}-{scheduler}");
}

#[test]
fn kyber_deep_has_a_twin() {
    check("deep", SchedulerKind::Kyber);
}

#[test]
fn kyber_mixed_has_a_twin() {
    check("mixed", SchedulerKind::Kyber);
}

#[test]
fn kyber_sync_has_a_twin() {
    check("sync", SchedulerKind::Kyber);
}

#[test]
fn bfq_deep_has_a_twin() {
    check("deep", SchedulerKind::Bfq);
}

#[test]
fn bfq_mixed_has_a_twin() {
    check("mixed", SchedulerKind::Bfq);
}

#[test]
fn bfq_sync_has_a_twin() {
    check("sync", SchedulerKind::Bfq);
}

#[test]
fn mq_deadline_has_twins() {
    check("deep", SchedulerKind::MqDeadline);
    check("mixed", SchedulerKind::MqDeadline);
    check("sync", SchedulerKind::MqDeadline);
}

#[test]
fn ensemble() {
    for (workload, kind) in [("sync", SchedulerKind::Bfq), ("mixed", SchedulerKind::Bfq), ("sync", SchedulerKind::Kyber), ("sync", SchedulerKind::MqDeadline)] {
        for step in 0..16 {
            let twin = twin(workload, kind, f64::from(step) / 16.0);
            let waits: Vec<String> = twin.simulated.processes.iter().map(|p| format!("{:.1}", p.wait_ns / 1e6)).collect();
            println!("{workload} {kind} {step}: {} ascending {:.3} merges {} waits {waits:?}", twin.simulated.requests, twin.simulated.ascending, twin.simulated.merges);
        }
    }
}
