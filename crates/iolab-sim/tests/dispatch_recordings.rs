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

/// The closed-loop twin of a recording, printed side by side.
fn twin(workload: &str, scheduler: SchedulerKind) -> Twin {
    let recording = recording(&format!("{workload}-{scheduler}"));
    let twin = simulate(&recording, scheduler, &std::collections::BTreeMap::new()).unwrap();
    println!("{workload}-{scheduler}: overhead {:.0} ns", twin.overhead_ns);
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
    twin
}

#[test]
fn all_twins() {
    for workload in ["deep", "mixed", "sync"] {
        for kind in [
            SchedulerKind::None,
            SchedulerKind::MqDeadline,
            SchedulerKind::Kyber,
            SchedulerKind::Bfq,
        ] {
            twin(workload, kind);
        }
    }
}
