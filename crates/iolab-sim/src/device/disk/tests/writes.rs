//! Writes of a drive that fills its buffer first (HP C2247A).

use super::*;
use crate::device::disk::parameters::Prefill;

const TURN_MS: f64 = 60e3 / 5_400.0;
/// Time of a sector of the outermost zone under the head.
const SECTOR_MS: f64 = TURN_MS / 96.0;

/// Response in ms to a write that comes `pause` after the end of the one that it continues.
fn continuing(sectors: u32, pause: Ns, changes: &[(&str, Value)]) -> f64 {
    let mut disk = disk("c2247a-1992", changes, 5);
    let mut host = Host::new();
    host.one_at_a_time(&mut disk, |id| {
        let bio = bio(id, Operation::Write, u64::from(id * sectors), sectors);
        (id < 2).then_some((pause, bio))
    });
    host.sent[1].done.since(host.sent[1].sent).0 as f64 * 1e-6
}

/// The pause after which the sector can just be reached: a turn, less the end of the write before,
/// what comes before the data, and so many sectors on the bus.
fn last_chance(filled: f64) -> f64 {
    TURN_MS - 0.212_94 - 0.849_1 - filled * 0.186_861
}

#[test]
fn a_write_waits_for_ten_sectors_in_the_buffer() {
    for (sectors, filled) in [(1, 1.0), (4, 4.0), (10, 10.0), (20, 10.0)] {
        // A single sector is there before the least seek of a write is over.
        let latest = last_chance(filled).min(TURN_MS - 0.212_94 - 0.823_91 - 0.6);
        let response = |pause_ms: f64, changes: &[(&str, Value)]| {
            continuing(sectors, Ns((pause_ms * 1e6) as u64), changes)
        };
        let caught = |pause: f64| TURN_MS - pause + f64::from(sectors) * SECTOR_MS;
        near(response(latest - 0.01, &[]), caught(latest - 0.01), 0.001);
        near(response(latest + 0.01, &[]), caught(latest + 0.01) + TURN_MS, 0.001);
    }
}

#[test]
fn without_that_only_the_last_sector_has_to_come_in_time() {
    let pause = last_chance(10.0) + 0.1;
    let response = |changes: &[(&str, Value)]| continuing(20, Ns((pause * 1e6) as u64), changes);
    let nothing = ("write_prefill", number(0.0));
    near(response(&[]) - response(&[nothing]), TURN_MS, 0.001);
}

#[test]
fn long_writes_need_more_and_short_ones_all() {
    let prefill = Prefill { short: 10, of_long: 15, long: 45 };
    let needed = [1, 9, 10, 44, 45, 200].map(|sectors| prefill.of(sectors));
    assert_eq!(needed, [1, 9, 10, 10, 15, 15]);
    assert_eq!(Prefill::default().of(7), 0);
}
