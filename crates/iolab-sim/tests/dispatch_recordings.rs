//! Recordings of the real kernel (6.18) against the simulated schedulers.
//!
//! The gates of predictions are what the model reaches: what is left are pairs of neighbours that
//! two processors issued in the other order. Those of twins are what a plain prototype reached.

use std::io::Read;
use std::path::Path;

use iolab_model::trace_event::Action;
use iolab_sim::replay::{Figures, Recording, Twin, predict, simulate};
use iolab_sim::sched::SchedulerKind;

fn recording(name: &str) -> Recording {
    // Our own recordings have a folder of their own.
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let own = golden.join("dispatch-own");
    let is_own = own.join(format!("{name}.json")).exists();
    let folder = if is_own { own } else { golden.join("dispatch") };
    let packed = std::fs::File::open(folder.join(format!("{name}.csv.gz"))).unwrap();
    let mut csv = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut csv).unwrap();
    let setup = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    Recording::parse(name, &csv, &setup).unwrap()
}

fn share(workload: &str, scheduler: SchedulerKind) -> f64 {
    let prediction = {
        let recording = recording(&format!("{workload}-{scheduler}"));
        let tunables = std::collections::BTreeMap::new();
        predict(&recording, scheduler, &tunables, None).unwrap().unwrap()
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
    for (workload, gate) in [("deep", 0.999), ("mixed", 0.997), ("sync", 0.997)] {
        let share = share(workload, SchedulerKind::MqDeadline);
        assert!(share >= gate, "{workload}: {share} < {gate}");
    }
}

/// Hot blocks, priorities, flushes and few slots: a request of a hot block was lost once; data
/// that follow a flush go to the head.
#[test]
fn mq_deadline_is_predicted_where_other_rules_are_asked() {
    for (workload, gate) in [("hot", 0.999), ("prio", 0.999), ("flush", 0.99), ("slots", 0.99)] {
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

/// Values outside the bars: ascending share 0.03, waits 15 %, shares 5 points.
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
            misses.push(format!(
                "{} {}: share {:.3}, {:.3}",
                a.process, a.direction, a.share, b.share
            ));
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

/// Order, shares, and the waits of all readers and of all writers together; and the waits of single
/// processes that are missed, which are no others than these.
fn check_together(workload: &str, scheduler: SchedulerKind, missed: &[u32]) {
    let twin = twin(workload, scheduler, 0.0);
    print(&twin);
    for miss in misses(&twin) {
        let process: u32 = miss.split(' ').next().unwrap().parse().unwrap_or(0);
        assert!(miss.contains("waits") && missed.contains(&process), "{miss}");
    }
    let readers = |figures: &Figures| {
        let all = figures.processes.iter().filter(|p| p.direction == "read");
        let (n, wait) = all.fold((0.0, 0.0), |(n, wait), p| {
            let requests = p.requests as f64;
            (n + requests, wait + requests * p.wait_ns)
        });
        wait / n
    };
    let ratio = readers(&twin.simulated) / readers(&twin.real);
    assert!((ratio - 1.0).abs() < 0.15, "readers wait {ratio} times as long");
}

/// Expected to fail. All readers together wait 7.15 ms in the recording and 6.96 ms in the twin,
/// but two of the five have changed places (17549 waits 7.96 and 6.31 ms, the sequential 17551
/// waits 6.23 and 8.07 ms). Places in kyber's round are chance: see `dispatch_rounds.rs`.
#[test]
#[should_panic(expected = "17549 read")]
fn kyber_sync_has_a_twin() {
    check("sync", SchedulerKind::Kyber);
}

#[test]
fn kyber_sync_agrees_in_all_but_the_places_of_two_readers() {
    check_together("sync", SchedulerKind::Kyber, &[17549, 17551]);
}

#[test]
fn bfq_deep_has_a_twin() {
    check("deep", SchedulerKind::Bfq);
}

#[test]
fn bfq_mixed_has_a_twin() {
    check("mixed", SchedulerKind::Bfq);
}

/// Expected to fail, by far: bfq itself takes another way on this recording, and the readers that
/// it waits for too long keep the writer waiting (`dispatch_followed.rs`: from issue 340 on).
#[test]
#[should_panic(expected = "ascending")]
fn bfq_sync_has_a_twin() {
    check("sync", SchedulerKind::Bfq);
}

/// Number of sixteen starting angles, the recorded one first, at which the twin is within all bars.
fn angles_within_bars(workload: &str, scheduler: SchedulerKind) -> usize {
    let is_within =
        |step: &u32| misses(&twin(workload, scheduler, f64::from(*step) / 16.0)).is_empty();
    (0..16).filter(is_within).count()
}

/// Dependence of the agreement on the angle, that is, on chance.
#[test]
fn the_agreement_of_some_twins_depends_on_the_angle() {
    for (workload, kind, expected) in [
        ("deep", SchedulerKind::Kyber, 16),
        ("mixed", SchedulerKind::Kyber, 16),
        ("sync", SchedulerKind::Kyber, 0),
        ("three", SchedulerKind::Kyber, 16),
        ("deep", SchedulerKind::Bfq, 16),
        ("mixed", SchedulerKind::Bfq, 10),
        ("sync", SchedulerKind::Bfq, 0),
        ("three", SchedulerKind::Bfq, 16),
    ] {
        let found = angles_within_bars(workload, kind);
        println!("{workload}-{kind}: {found} of 16");
        assert_eq!(found, expected, "{workload}-{kind}");
    }
}

/// Effects that the model of the device leaves out: completions before one that was issued earlier.
#[test]
fn completions_of_the_recorded_device_overtake_each_other() {
    let mut shares = Vec::new();
    for workload in ["deep", "mixed", "sync"] {
        for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
            let (mut under_way, mut overtaking, mut all) = (Vec::new(), 0.0, 0.0);
            for row in recording(&format!("{workload}-{scheduler}")).rows {
                match row.action {
                    Action::Issued => under_way.push(row.bio.sector),
                    Action::Completed => {
                        let place = under_way.iter().position(|&s| s == row.bio.sector);
                        under_way.remove(place.unwrap());
                        all += 1.0;
                        overtaking += f64::from(u8::from(place != Some(0)));
                    }
                    _ => {}
                }
            }
            shares.push(overtaking / all);
        }
    }
    let (least, most) = shares.iter().fold((1.0_f64, 0.0_f64), |(l, m), &s| (l.min(s), m.max(s)));
    assert!((least - 0.006).abs() < 0.001 && (most - 0.107).abs() < 0.003, "{least} {most}");
}

#[test]
fn mq_deadline_has_twins() {
    check("deep", SchedulerKind::MqDeadline);
    check("mixed", SchedulerKind::MqDeadline);
    check("sync", SchedulerKind::MqDeadline);
}

/// Flushes take the time that they took; without it everybody got on 1.6 to 1.9 times as fast.
#[test]
fn twins_with_flushes_get_on_as_fast() {
    for kind in [SchedulerKind::MqDeadline, SchedulerKind::Bfq] {
        let twin = twin("flush", kind, 0.0);
        print(&twin);
        let ratio = twin.simulated.requests as f64 / twin.real.requests as f64;
        assert!((ratio - 1.0).abs() < 0.15, "{kind}: {ratio}");
    }
}

#[test]
fn our_own_recordings_give_the_same() {
    let predicted = share("three", SchedulerKind::MqDeadline);
    assert!(predicted >= 0.999, "{predicted}");
    check("three", SchedulerKind::MqDeadline);
    check("three", SchedulerKind::Kyber);
    check("three", SchedulerKind::Bfq);
}

#[test]
fn kyber_mixed_has_a_twin_again() {
    check("again-mixed", SchedulerKind::Kyber);
}

/// Expected to fail: the sequential reader waits 3.1 and 4.7 ms, the sequential writer 14.5 and
/// 6.2 ms, and shares differ by up to 16 points; order and the waits of the random processes agree.
#[test]
#[should_panic(expected = "32161 write")]
fn bfq_mixed_has_a_twin_again() {
    check("again-mixed", SchedulerKind::Bfq);
}

/// Expected to fail. The twin adds the same mean overhead to every request, here 1.5 ms; in the
/// recording it grows with the length (0.6 ms at 4 KiB, 2.6 ms at 512 KiB on average). A linear
/// overhead alone does not repair it; what else differs is in `dispatch_rounds.rs`.
#[test]
#[should_panic(expected = "ascending")]
fn kyber_sync_has_a_twin_again() {
    check("again-sync", SchedulerKind::Kyber);
}

/// A scheduler without work was asked all the same, and nobody asked again after 3 ms: readers
/// waited up to 39 times as long.
#[test]
fn bfq_sync_has_a_twin_again() {
    check("again-sync", SchedulerKind::Bfq);
}

/// Found in simulation, then on the kernel: two sequential readers that bfq has served in long
/// turns (`low_latency` 0) rest for 3 s together, and are served in strict alternation afterwards.
/// After the pause neither counts as I/O bound, so each is left when it is empty; from then on each
/// comes back in time, with budget left, and takes the device from the other.
#[test]
fn readers_that_pause_together_take_the_device_from_each_other_ever_after() {
    let recording = recording("pause-bfq");
    let tunables = std::collections::BTreeMap::new();
    let twin = simulate(&recording, SchedulerKind::Bfq, &tunables, 0.0).unwrap();
    print(&twin);
    // Half of the issues after the pause go down; before it nearly none do.
    for figures in [&twin.real, &twin.simulated] {
        assert!((0.72..0.78).contains(&figures.ascending), "{}", figures.ascending);
    }
    assert!((twin.real.ascending - twin.simulated.ascending).abs() < 0.03);
}
