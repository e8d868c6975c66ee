//! Closed forms: mean seek, half a turn, sustained rates, and the M/G/1 queue.

use super::*;
use crate::error::SimError;

/// Mean seek between uniform cylinders, as the models specification lists it (from the tables,
/// 6.2; set S1, 6.3), and the longest seek that was measured.
#[test]
fn mean_and_full_seek_times() {
    let cases = [
        ("c3323a-1994", 9.52, 2_976, 18.1),
        ("barracuda4lp-1996", 9.32, 4_986, 16.7),
        ("cheetah4lp-1997", 7.95, 6_580, 16.1),
        ("atlas3-1997", 8.31, 7_998, 15.4),
        ("dnes9es-1998", 7.19, 11_377, 12.9),
        ("cheetah9lp-1998", 5.46, 6_894, 10.6),
        ("atlas10k-1999", 5.59, 10_021, 10.8),
        ("maxtor300gb-2004", 4.82, 80_511, 9.4),
        ("sata7200-4tb", 7.45, 310_193, 14.25),
        ("scsi7200-1995", 8.7, 3_710, 18.0),
    ];
    for (name, mean, longest, full) in cases {
        let mechanism = mechanism(name);
        let curve = &mechanism.curve;
        let actual = curve.mean().0 as f64 * 1e-6;
        assert!((actual - mean).abs() < 0.012 * mean, "{name}: mean {actual}, not {mean}");
        let actual = curve.time(longest) as f64 * 1e-6;
        assert!((actual - full).abs() < 0.01 * full, "{name}: full {actual}, not {full}");
    }
}

/// Uniform sectors favour the outer zones: the specification says 8.24, 5.43 and 8.69 ms.
#[test]
fn uniform_sectors_seek_a_little_less_than_uniform_cylinders() {
    let cases = [("atlas3", 8.24), ("scsi10k-1998", 5.43), ("scsi7200-1995", 8.69)];
    for (name, expected) in cases {
        let mut disk = disk(name, &[("read_segments", number(0.0))], 3);
        let next = random(&disk, Operation::Read, 1, 30_000);
        Host::new().closed(&mut disk, 1, next);
        let actual = counter(&disk, "seek_ns") / 30_000.0 * 1e-6;
        near(actual, expected, 0.01 * expected);
    }
}

/// Capacities and outer sustained rates as the specification states them.
#[test]
fn capacities_and_sustained_rates() {
    assert_eq!(disk("scsi7200-1995", &[], 1).info().capacity, Sector(8_377_866));
    let rate = |name: &str| {
        let mechanism = mechanism(name);
        let zone = mechanism.geometry.zone(0);
        let (track, skew) = (f64::from(zone.track_sectors), f64::from(zone.track_skew));
        let period = mechanism.geometry.period().as_seconds();
        track / 2.0 / (period * (1.0 + skew / track))
    };
    near(rate("scsi7200-1995"), 6_353.0, 1.0);
    near(rate("atlas3"), 11_880.0, 1.5);
    near(rate("scsi10k-1998"), 15_386.0, 10.0);
    let sata = mechanism("sata7200-4tb");
    let tracks = f64::from(sata.geometry.cylinders()) * 10.0;
    let mean = sata.geometry.sectors() as f64 / tracks;
    near(mean, 2_491.0, 1.0);
    near(mean * 512.0 * 120.0 / 1_048_576.0, 146.0, 0.1);
}

/// A long sequential read, one command after the other, runs at the sustained rate: the
/// read-ahead never loses the track.
#[test]
fn sequential_reads_run_at_the_sustained_rate() {
    for (name, kib) in [("scsi7200-1995", 6_345.0), ("scsi10k-1998", 15_300.0)] {
        for sectors in [16_u32, 128] {
            let mut disk = disk(name, &[], 3);
            let count = 16_000 / sectors;
            let mut host = Host::new();
            host.closed(&mut disk, 1, |id| {
                let at = u64::from(id) * u64::from(sectors);
                (id < count).then(|| bio(id, Operation::Read, at, sectors))
            });
            let rate = f64::from(count * sectors) / 2.0 / (host.now.0 as f64 * 1e-9);
            near(rate, kib, 0.02 * kib);
        }
    }
}

/// Open arrivals: the mean wait in an M/G/1 queue is `l * E[S^2] / (2 (1 - l E[S]))`
/// (Pollaczek and Khinchine). Reads at depth 1 with the cache off are served first come first
/// served; their service times depend a little on each other through the arm, hence the 2 %.
#[test]
fn mean_response_of_poisson_arrivals_follows_pollaczek_and_khinchine() {
    let off = [("read_segments", number(0.0)), ("queue_policy", text("fcfs"))];
    for load in [0.3, 0.6] {
        // Service moments from a closed run.
        let mut closed = disk("atlas3", &off, 3);
        let count = 60_000;
        let next = random(&closed, Operation::Read, 8, count);
        let mut host = Host::new();
        host.closed(&mut closed, 1, next);
        let times: Vec<f64> = host.sent.iter().map(|r| (r.done - r.sent).as_seconds()).collect();
        let first = times.iter().sum::<f64>() / f64::from(count);
        let second = times.iter().map(|s| s * s).sum::<f64>() / f64::from(count);
        let rate = load / first;
        let expected = first + rate * second / (2.0 * (1.0 - load));

        let mut open =
            disk("atlas3", &[off.as_slice(), &[("depth", number(65_536.0))]].concat(), 4);
        let mut next = random(&open, Operation::Read, 8, count);
        let mut gaps = Seed(21).stream("arrivals", 0);
        let mut host = Host::new();
        let mut at = 0.0;
        for id in 0..count {
            at += -(1.0 - gaps.unit()).ln() / rate;
            host.idle_until(&mut open, Ns((at * 1e9) as u64));
            open.submit(host.now, &next(id).unwrap());
            host.sent.push(Response { sent: host.now, done: Ns::MAX });
        }
        let end = host.now + Ns::from_seconds(1_000);
        host.idle_until(&mut open, end);
        let mean = host.mean_ms(0) * 1e-3;
        near(mean, expected, 0.02 * expected);
    }
}

/// Fault of a profile after one parameter was changed.
fn refused(name: &str, parameter: &str, value: Value) -> String {
    let mut profile = Profile::built_in(name).unwrap();
    profile.override_with(&BTreeMap::from([(parameter.to_owned(), value)])).unwrap();
    let error: SimError = Disk::from_profile(&profile, Seed(1), "disk").unwrap_err();
    error.to_string()
}

#[test]
fn contradictions_in_a_profile_are_named() {
    let cases = [
        (
            refused("scsi7200-1995", "cylinders", number(3_712.0)),
            "profile scsi7200-1995: the zones have 3711 cylinders, `cylinders` says 3712; make \
             the zones add up to `cylinders`",
        ),
        (
            refused("scsi7200-1995", "seek_boundary", number(3_711.0)),
            "profile scsi7200-1995: `seek_boundary` = 3711 is beyond the 3711 cylinders; the \
             long piece must begin on the disk",
        ),
        (
            refused("scsi7200-1995", "zones", Value::Table(vec![vec![3_711.0, 94.0, 94.0, 20.0]])),
            "profile scsi7200-1995: zone 0 has skews 94 and 20 on tracks of 94 sectors; a skew \
             is less than one revolution",
        ),
        (
            refused("scsi7200-1995", "seek_short", Value::List(vec![1.0])),
            "profile scsi7200-1995: `seek_short` has 1 numbers; give constant and factor",
        ),
        (
            refused("atlas3-1997", "seek_table", Value::Table(vec![vec![1.0, 1.0]])),
            "profile atlas3-1997: `seek_table` has fewer than two rows; list distances from 1 \
             upwards, each once, with times above 0",
        ),
        (
            refused("scsi7200-1995", "queued_write_loss", text("unifrom")),
            "unknown value of a parameter `unifrom` (did you mean `uniform`?); known: none, \
             uniform, exact",
        ),
        (
            refused("scsi7200-1995", "heads", number(2.5)),
            "profile scsi7200-1995: parameter heads: = 2.5 must be a whole number",
        ),
    ];
    for (actual, expected) in cases {
        assert_eq!(actual, expected);
    }
}

#[test]
fn every_drive_that_comes_along_can_be_made() {
    let mut disks = 0;
    for name in Profile::names() {
        let profile = Profile::built_in(name).unwrap();
        if profile.kind == "disk" {
            let disk = Disk::from_profile(&profile, Seed(1), "disk").unwrap();
            let last = Sector(disk.info().capacity.0 - 8);
            let mut disk = disk;
            let mut host = Host::new();
            host.closed(&mut disk, 1, |id| (id < 2).then(|| bio(id, Operation::Read, last.0, 8)));
            assert!(host.mean_ms(0) < 60.0, "{name}");
            disks += 1;
        }
    }
    assert_eq!(disks, 18);
}

/// 256-byte sectors: 113 of them pass in one turn, a 512-byte sector is two.
#[test]
fn small_media_sectors_count_twice() {
    let mut disk = disk("c2200a-1990", &[("read_segments", number(0.0))], 3);
    assert_eq!(disk.info().capacity, Sector(1_449 * 8 * 113 / 2));
    let mut host = Host::new();
    host.closed(&mut disk, 1, |id| (id < 1).then(|| bio(id, Operation::Read, 0, 4)));
    near(counter(&disk, "transfer_ns"), 60e9 / 4_002.0 * 8.0 / 113.0, 2.0);
}
