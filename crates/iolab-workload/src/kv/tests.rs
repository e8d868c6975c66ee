//! Draws of clients, on a stage of their own.

use std::collections::BTreeMap;

use iolab_model::Seed;
use iolab_model::kv::{KvDurability, KvOptions};

use super::*;

/// A core workload of 1000 records.
pub(crate) fn work() -> KvWork {
    KvWork {
        action: KvAction::Run,
        store: KvOptions {
            durability: KvDurability::Wal,
            table: "usertable".into(),
            options: Vec::new(),
            has_statistics: false,
        },
        record_count: 1000,
        operation_count: 1000,
        insert_start: 0,
        insert_count: 1000,
        field_count: 10,
        field_prefix: "field".into(),
        field_length: KvLength::Constant { length: 100 },
        reads_all_fields: true,
        writes_all_fields: false,
        is_verified: false,
        mix: KvMix { read: 0.5, update: 0.5, ..KvMix::default() },
        order: KvOrder::Zipfian,
        zero_padding: 1,
        is_hashed: true,
        scan_length: KvLength::Uniform { from: 1, to: 100 },
        target_per_s: 0.0,
        is_spinning: false,
        time_limit_s: 0,
        insert_retries: 0,
        retry_interval_s: 3.0,
        goes_on_after_errors: false,
        loads_new_store: false,
        measured: KvMeasured {
            interval: KvInterval::Operation,
            ms_parts: 0,
            window_ms: 0,
            status_s: 0.0,
            label: String::new(),
        },
    }
}

/// Counts of each key number in so many operations, all acknowledged at once.
fn drawn(work: &KvWork, operations: u32) -> BTreeMap<u64, u32> {
    let stage = KvStage::new(work);
    let mut client = KvClient::new(work, Seed(5), 0);
    let mut counts = BTreeMap::new();
    for _ in 0..operations {
        let (request, number) = client.next(&stage);
        if request == KvRequest::Insert {
            stage.acknowledge(number);
        } else {
            *counts.entry(number).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn zipfian_keys_have_the_references_shares() {
    let counts = drawn(&work(), 200_000);
    let share = |key: u64| f64::from(counts[&key]) / 2e5;
    for (key, expected) in [(144, 0.0382), (610, 0.02), (213, 0.0161), (679, 0.0117)] {
        assert!((share(key) - expected).abs() < 0.002, "{key}: {}", share(key));
    }
    assert!(counts.keys().all(|key| *key < 1000));
}

#[test]
fn latest_keys_follow_the_inserts() {
    let mix = KvMix { read: 0.95, insert: 0.05, ..KvMix::default() };
    let counts = drawn(&KvWork { order: KvOrder::Latest, mix, ..work() }, 100_000);
    let newest = *counts.keys().last().unwrap();
    assert!((5800..6200).contains(&newest), "{newest}");
    let still = KvMix { read: 1.0, ..KvMix::default() };
    let counts = drawn(&KvWork { order: KvOrder::Latest, mix: still, ..work() }, 200_000);
    let share = |key: u64| f64::from(counts[&key]) / 2e5;
    assert!((share(999) - 0.1293).abs() < 0.003 && (share(998) - 0.0651).abs() < 0.002);
    assert!(!counts.contains_key(&0), "the reference never draws it");
}

#[test]
fn other_orders() {
    let hot = KvOrder::Hotspot { data_fraction: 0.2, ops_fraction: 0.8 };
    let counts = drawn(&KvWork { order: hot, ..work() }, 100_000);
    let inside: u32 = counts.range(..200).map(|(_, count)| count).sum();
    assert!((f64::from(inside) / 1e5 - 0.8).abs() < 0.01);
    let order = KvOrder::Exponential { percentile: 95.0, fraction: 0.857_142_857_1 };
    let counts = drawn(&KvWork { order, ..work() }, 100_000);
    let mean: f64 = counts.iter().map(|(key, n)| (999 - key) as f64 * f64::from(*n)).sum::<f64>();
    // The mean of 286.1 is that of draws which are not cut off at the first record.
    assert!((230.0..260.0).contains(&(mean / 1e5)), "{}", mean / 1e5);
    let parts = KvWork { insert_start: 40, insert_count: 5, order: KvOrder::Uniform, ..work() };
    assert!(drawn(&parts, 1000).keys().eq(&[40, 41, 42, 43, 44]));
    let sequential =
        KvWork { insert_count: 10, record_count: 10, order: KvOrder::Sequential, ..work() };
    let stage = KvStage::new(&sequential);
    let mut client = KvClient::new(&sequential, Seed(1), 0);
    let numbers: Vec<u64> = (0..14).map(|_| client.next(&stage).1).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3]);
}

#[test]
fn operations_have_their_shares_and_scans_their_lengths() {
    let mix = KvMix { scan: 0.95, insert: 0.05, ..KvMix::default() };
    let work = KvWork { mix, ..work() };
    let (stage, mut client) = (KvStage::new(&work), KvClient::new(&work, Seed(2), 0));
    let (mut scans, mut lengths) = (0, [u32::MAX, 0]);
    for _ in 0..20_000 {
        match client.next(&stage).0 {
            KvRequest::Scan(count, FieldChoice::All) => {
                scans += 1;
                lengths = [lengths[0].min(count), lengths[1].max(count)];
            }
            KvRequest::Insert => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((f64::from(scans) / 2e4 - 0.95).abs() < 0.006);
    assert_eq!(lengths, [1, 100]);
}

#[test]
fn contradictions_are_refused() {
    let of = |change: fn(&mut KvWork)| {
        let mut work = work();
        change(&mut work);
        work.problem().map(|(problem, _)| problem)
    };
    assert_eq!(of(|_| {}), None);
    for (change, expected) in [
        ((|w| w.mix = KvMix::default()) as fn(&mut KvWork), "no operation"),
        (|w| w.mix.read = -1.0, "a proportion of -1"),
        (|w| w.field_count = 0, "without fields"),
        (|w| w.scan_length = KvLength::Uniform { from: 5, to: 4 }, "from 5 to 4"),
        (|w| w.operation_count = 0, "no number of operations"),
        (|w| w.target_per_s = -5.0, "a target of -5"),
    ] {
        let problem = of(change).unwrap_or_default();
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}

#[test]
fn counts_are_told_by_series() {
    let measured = KvMeasured { ms_parts: 5, window_ms: 1, ..work().measured };
    let mut counts = KvCounts::new(&measured);
    let end = |status, us: u64| KvEnd {
        status,
        intended: iolab_model::Ns(0),
        began: iolab_model::Ns(0),
        ended: iolab_model::Ns(us * 1000 + 999),
    };
    counts.record(KvSeries::Read, &end(KvStatus::Ok, 10), 7);
    counts.record(KvSeries::Read, &end(KvStatus::NotFound, 7000), 0);
    let mut both = KvCounts::new(&measured);
    both.merge(&counts);
    both.merge(&counts);
    let records = both.records();
    assert_eq!(
        records.iter().map(|one| &one.name[..]).collect::<Vec<_>>(),
        ["READ", "READ-FAILED"]
    );
    let returned: Vec<_> = records[0].returned.iter().map(|r| (&r.status[..], r.count)).collect();
    assert_eq!(returned, [("OK", 2), ("NOT_FOUND", 2)]);
    assert_eq!((records[0].latency.sum_us, &records[0].latency.ms_counts[..]), (20, &[2][..]));
    assert_eq!(records[1].latency.ms_counts, [0, 0, 0, 0, 0, 2]);
    assert_eq!(records[1].latency.window_ops[7], 2);
}
