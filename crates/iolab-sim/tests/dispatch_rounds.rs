//! Reason why the twins of `sync-kyber` and `again-sync-kyber` miss (docs/reference/sim.md).
//!
//! kyber serves five synchronous readers in rounds: five reads, then the writes. What a reader
//! waits is a matter of its place in the round, and places change by single chance events.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use iolab_model::Sector;
use iolab_model::trace_event::Action;
use iolab_sim::Operation;
use iolab_sim::replay::{Recording, Row, Twin, simulate};
use iolab_sim::sched::SchedulerKind;

fn recording(name: &str) -> Recording {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let packed = std::fs::File::open(golden.join(format!("{name}.csv.gz"))).unwrap();
    let mut csv = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut csv).unwrap();
    let setup = std::fs::read_to_string(golden.join(format!("{name}.json"))).unwrap();
    Recording::parse(name, &csv, &setup).unwrap()
}

fn twin(recording: &Recording) -> Twin {
    simulate(recording, SchedulerKind::Kyber, &BTreeMap::new(), 0.0).unwrap()
}

/// The rounds of a stream.
#[derive(Debug, Default)]
struct Rounds {
    /// By place in the round, from 0: reads and their waits in ms, summed.
    places: [(f64, f64); 5],
    /// By process: reads, waits in ms summed, and how often it had each place.
    readers: BTreeMap<u32, (f64, f64, [f64; 5])>,
    count: u32,
    writes: u32,
}

impl Rounds {
    fn of(rows: &[Row]) -> Self {
        let mut rounds = Self::default();
        let mut inserted: BTreeMap<(bool, Sector), (f64, u32)> = BTreeMap::new();
        let mut place = 0;
        for row in rows {
            let is_read = row.bio.operation == Operation::Read;
            let at_ms = row.at.0 as f64 / 1e6;
            let key = (is_read, row.bio.sector);
            if row.action == Action::Inserted {
                inserted.insert(key, (at_ms, row.bio.submitter.process.0));
            }
            if row.action != Action::Issued {
                continue;
            }
            let Some((since_ms, process)) = inserted.remove(&key) else { continue };
            if !is_read {
                rounds.writes += 1;
                rounds.count += u32::from(place > 0);
                place = 0;
                continue;
            }
            if let Some((reads, waits)) = rounds.places.get_mut(place) {
                (*reads, *waits) = (*reads + 1.0, *waits + at_ms - since_ms);
                let reader = rounds.readers.entry(process).or_default();
                reader.0 += 1.0;
                reader.1 += at_ms - since_ms;
                reader.2[place] += 1.0;
            }
            place += 1;
        }
        rounds
    }

    fn waits(&self) -> [f64; 5] {
        self.places.map(|(reads, waits)| waits / reads)
    }

    fn writes_per_round(&self) -> f64 {
        f64::from(self.writes) / f64::from(self.count)
    }
}

/// The twin agrees place by place; which reader has which place is chance. That a reader's wait is
/// explained by its places alone is checked in both streams.
#[test]
fn what_a_reader_waits_under_kyber_is_a_matter_of_its_place_in_the_round() {
    let recording = recording("dispatch/sync-kyber");
    let streams = [Rounds::of(&recording.rows), Rounds::of(&twin(&recording).rows)];
    for rounds in &streams {
        println!("{:.2?} ms by place, {:.2} writes", rounds.waits(), rounds.writes_per_round());
        for (process, (reads, waits, places)) in &rounds.readers {
            let by_place = rounds.waits();
            let explained: f64 = places.iter().zip(by_place).map(|(n, wait)| n * wait).sum();
            println!(
                "  {process}: {:.2} ms, {:.2} by places {places:?}",
                waits / reads,
                explained / reads
            );
            assert!((explained / waits - 1.0).abs() < 0.05, "{process}");
        }
    }
    for (real, simulated) in streams[0].waits().iter().zip(streams[1].waits()) {
        assert!((simulated / real - 1.0).abs() < 0.15, "{real} and {simulated} ms");
    }
    assert!((streams[0].writes_per_round() - streams[1].writes_per_round()).abs() < 0.1);
}

/// In `again-sync` the writer's sixteen bios go in four requests of 4, 6, 4 and 2 in every round. A
/// limit on the length of a request, which is all that the twin has, gives 6, 6 and 4. With at most
/// 512 KiB (128 segments of a page each, the kernel's limit for such a device) the rounds agree,
/// and so do the number and the order of requests; waits do not, since the device of the twin is
/// too slow for short requests and too quick for long ones.
#[test]
fn the_limit_of_segments_shapes_the_rounds_of_again_sync() {
    let mut recording = recording("dispatch-own/again-sync-kyber");
    let real = Rounds::of(&recording.rows).writes_per_round();
    let by_length = Rounds::of(&twin(&recording).rows).writes_per_round();
    recording.setup.max_sectors_kb = Some(512);
    let by_segments = twin(&recording);
    let rounds = Rounds::of(&by_segments.rows);
    println!("writes per round: {real:.2}, {by_length:.2}, {:.2}", rounds.writes_per_round());
    assert!((real - 4.0).abs() < 0.05 && (by_length - 3.0).abs() < 0.05, "{real} {by_length}");
    assert!((rounds.writes_per_round() - 4.0).abs() < 0.05);
    let (kernel, simulated) = (&by_segments.real, &by_segments.simulated);
    for (real, simulated) in kernel.processes.iter().zip(&simulated.processes) {
        let ratio = simulated.wait_ns / real.wait_ns;
        println!("  {} {}: waits {ratio:.2} times the recorded", real.process, real.direction);
        assert!((ratio - 1.0).abs() < 0.18, "{}", real.process);
    }
    println!("{} and {} requests", kernel.requests, simulated.requests);
    println!("ascending {:.3} and {:.3}", kernel.ascending, simulated.ascending);
    assert!((kernel.requests as f64 / simulated.requests as f64 - 1.0).abs() < 0.01);
    assert!((kernel.ascending - simulated.ascending).abs() < 0.03);
}
