//! Checks LSM-1 to LSM-6 of the model; LSM-6 and LSM-8 on a file system are
//! `tests/e2e/test_ycsb_simulated.py` and `benches/lsm.py`.

mod bench;

use bench::{Bench, scattered};
use iolab_lsm::{KeyLookup, LsmOptions};
use iolab_model::Ns;
use iolab_model::kv::{KvDurability, KvOption};

const MIB: u64 = 1 << 20;

fn options(pairs: &[(&str, &str, &str)]) -> LsmOptions {
    let one = |(part, name, value): &(&str, &str, &str)| KvOption {
        part: (*part).into(),
        name: (*name).into(),
        value: (*value).into(),
    };
    LsmOptions::of(&pairs.iter().map(one).collect::<Vec<_>>(), 2).unwrap()
}

/// A store of a tenth of the sizes of YCSB's binding.
fn small(more: &[(&str, &str, &str)]) -> LsmOptions {
    let mut pairs = vec![
        ("base", "defaults", "plain"),
        ("cf", "write_buffer_size", "1M"),
        ("cf", "target_file_size_base", "1M"),
        ("cf", "max_bytes_for_level_base", "4M"),
        ("cf", "compression", "kNoCompression"),
    ];
    pairs.extend(more);
    options(&pairs)
}

fn fast(options: LsmOptions) -> Bench {
    Bench::new(options, KvDurability::Wal, 1e9, Ns(0))
}

#[test]
fn lsm_1_sizes() {
    let mut bench = fast(LsmOptions::of_binding(2));
    bench.load(0..1_000_000);
    bench.settle();
    let fact = |name| bench.store.fact(name);
    let user = 1e6 * (bench::KEY_BYTES + bench::VALUE_BYTES) as f64;
    assert!((user - 1.163e9).abs() < 1e6);
    let log = fact("wal_write_bytes");
    assert!((1.17e9..1.20e9).contains(&log), "log of {log} bytes");
    // What is still in the buffers has not been flushed.
    let flushed = fact("flush_write_bytes") + fact("memtables_bytes");
    assert!((1.16e9..1.21e9).contains(&flushed), "{flushed} bytes of flushes");
    let count = fact("flushes");
    assert!((4.0..=5.0).contains(&count), "{count} flushes");
}

/// Fifty million records on the binding's sizes, scaled by 1/64 in both: 780,000 records.
///
/// The addition expects 8 to 20 of an endless load. `RocksDB` 7.8.3 itself, loaded so (25,000
/// records a second on two processors, in memory), wrote 6.71 bytes for each byte that it was given
/// in 228 flushes, and had 1.15 GB of compactions still to do; the bar is 20 % of that.
#[test]
fn lsm_2_write_amplification() {
    let sizes = [
        ("cf", "write_buffer_size", "2M"),
        ("cf", "target_file_size_base", "1M"),
        ("cf", "max_bytes_for_level_base", "8M"),
        ("cf", "compression_per_level", "kNoCompression"),
    ];
    let mut bench = Bench::new(options(&sizes), KvDurability::Wal, 400e6, Ns(0));
    bench.pause = Ns::from_us(36);
    bench.load(0..780_000);
    let fact = |name: &str| bench.store.fact(name);
    let amplification = fact("write_amplification");
    assert!((amplification / 6.71 - 1.0).abs() < 0.2, "{amplification}");
    let flushes = fact("flushes");
    assert!((flushes / 228.0 - 1.0).abs() < 0.1, "{flushes} flushes");
    let last = (0..7).rev().find(|level| fact(&format!("level{level}_bytes")) > 0.0);
    assert_eq!(last, Some(3));
    bench.settle();
    let settled = bench.store.fact("write_amplification");
    assert!((8.0..20.0).contains(&settled), "{settled} when all levels have their sizes");
}

/// Mean and largest number of blocks of a lookup in a store with data on three levels.
fn reads_per_get(filter: &str) -> (f64, usize) {
    let more = [
        ("table", "no_block_cache", "true"),
        ("table", "filter_policy", filter),
        ("cf", "max_bytes_for_level_multiplier", "4"),
    ];
    let mut bench = fast(small(&more));
    // The second time nothing can be moved without being merged.
    bench.load(0..40_000);
    bench.load(0..40_000);
    bench.settle();
    let has_data = |level: &usize| bench.store.fact(&format!("level{level}_bytes")) > 0.0;
    assert_eq!((0..7).filter(has_data).collect::<Vec<_>>(), [1, 2, 3]);
    let (mut reads, mut most, mut count) = (0, 0, 0.0);
    for number in (0..40_000).step_by(10) {
        let (is_found, blocks) = bench.get(scattered(number));
        assert!(is_found, "{number}");
        reads += blocks;
        most = most.max(blocks);
        count += 1.0;
    }
    (f64::from(reads as u32) / count, most)
}

/// One block of each level with a table whose keys cover the one that is looked for: three for a
/// key of the last level. Levels have gaps, from which tables were merged into the next one, so the
/// mean is lower.
#[test]
fn lsm_3_point_read() {
    let (without, most) = reads_per_get("nullptr");
    assert!(most == 3 && (1.3..3.0).contains(&without), "{without} blocks, at most {most}");
    let (with, _) = reads_per_get("bloomfilter:10:false");
    assert!((with - 1.0).abs() < 0.02, "{with} blocks with ten bits for each key");
}

/// The cache holds blocks, of about four records each: a popular record brings three others along.
#[test]
fn lsm_4_cache_of_blocks() {
    let records = 40_000_u64;
    let data = records * 1170;
    let cache = format!("{}", data / 10);
    let more = [("table", "block_cache", cache.as_str())];
    let mut bench = fast(small(&more));
    bench.load(0..records);
    bench.settle();
    // Popularity by rank, as one over it (exponent 0.99), from a fixed stream.
    let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-0.99)).collect();
    let total: f64 = weights.iter().sum();
    let sums: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        })
        .collect();
    let share_of = |count: u64| sums[count as usize - 1];
    let draw = |step: u64| {
        let unit = (scattered(step ^ 0x5555) >> 11) as f64 / (1_u64 << 53) as f64;
        sums.partition_point(|sum| *sum < unit) as u64
    };
    let mut lookup = KeyLookup::default();
    let (mut hits, mut asked) = (0.0, 0.0);
    for step in 0..150_000 {
        let before = (bench.store.fact("block_cache_hits"), bench.store.fact("memtable_hits"));
        if step >= 50_000 && step % 10 == 0 {
            bench.store.get(scattered(draw(step)), &mut lookup);
            bench.store.release(&mut lookup);
            if bench.store.fact("memtable_hits") > before.1 {
                continue;
            }
            asked += 1.0;
            hits += f64::from(
                lookup.reads.is_empty() && bench.store.fact("block_cache_hits") > before.0,
            );
            continue;
        }
        bench.store.get(scattered(draw(step)), &mut lookup);
        bench.store.release(&mut lookup);
    }
    let share = hits / asked;
    // A tenth of the records would be 0.78 of the draws; a tenth of the blocks holds fewer popular
    // ones, but more than a fortieth of the records, one for each block.
    assert!(share < share_of(records / 10), "{share}");
    assert!(share > share_of(records / 40) * 0.85, "{share}");
}

#[test]
fn lsm_5_stop() {
    let mut wanted = LsmOptions::of_binding(1);
    wanted.max_background_jobs = 1;
    wanted.compression_per_level.clear();
    let mut bench = Bench::new(wanted, KvDurability::None, 10e6, Ns(0));
    let (mut put, mut most) = (0_u64, 0.0);
    while put < 1_000_000 {
        bench.load(put..put + 1000);
        put += 1000;
        most = f64::max(most, bench.store.fact("memtables_bytes"));
    }
    // Six full buffers of 128 MiB, and not one more.
    let (least, limit) = ((760 * MIB) as f64, (790 * MIB) as f64);
    assert!((least..limit).contains(&most), "{most} bytes in buffers");
    let (from, began) = (bench.moved_bytes, bench.now);
    bench.load(put..put + 2_000_000);
    let rate = 2e6 * 1163.0 / (bench.now - began).as_seconds();
    // The device moves 10 MB/s, each byte of a user more than once.
    let each = (bench.moved_bytes - from) as f64 / (2e6 * 1163.0);
    assert!(each > 1.1 && (rate * each / 10e6 - 1.0).abs() < 0.05, "{each} {rate}");
}

#[test]
fn lsm_6_sync() {
    let slow = |clients: usize| {
        let mut bench =
            Bench::new(LsmOptions::of_binding(2), KvDurability::Sync, 1e9, Ns::from_ms(2));
        for round in 0..500 {
            let keys: Vec<u64> =
                (0..clients).map(|client| scattered(round * 8 + client as u64)).collect();
            bench.put_all(&keys);
        }
        let syncs = bench.syncs;
        assert_eq!(syncs, bench.store.fact("wal_syncs") as u64);
        ((500 * clients) as f64 / syncs as f64, 500.0 * clients as f64 / bench.now.as_seconds())
    };
    let (alone, rate) = slow(1);
    assert!((alone - 1.0).abs() < 1e-9 && rate <= 500.0, "{alone} {rate}");
    let (together, _) = slow(4);
    assert!((together - 4.0).abs() < 1e-9, "{together}");
}

/// Each key is found, however tables were merged, and space is given back.
#[test]
fn nothing_is_lost_under_either_style() {
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
        let mut bench = fast(small(&[("cf", "compaction_style", style)]));
        for turn in 0..3 {
            bench.load(turn * 5_000..20_000);
        }
        bench.settle();
        for number in 0..20_000 {
            assert!(bench.get(scattered(number)).0, "{style}: {number}");
        }
        assert!(!bench.get(scattered(20_001)).0);
        let mut lookup = KeyLookup::default();
        bench.store.scan(0, 30_000, &mut lookup);
        assert_eq!(lookup.records, 20_000, "{style}");
        bench.store.release(&mut lookup);
        let space = bench.store.fact("sst_files_bytes");
        assert!(space < 3.2 * 20_000.0 * 1180.0, "{style}: {space}");
        assert!(bench.store.fact("compactions") > 3.0);
    }
}

/// The same input gives the same state.
#[test]
fn it_is_a_function_of_its_input() {
    let facts = || {
        let mut bench = fast(small(&[]));
        bench.load(0..20_000);
        (bench.store.facts(), bench.now)
    };
    assert_eq!(facts(), facts());
}
