//! Values that the library tells of itself, from its texts.

use iolab_model::kv::KvFact;

/// Counters of the statistics that are kept, and their names here.
const COUNTERS: [(&str, &str); 12] = [
    ("rocksdb.bytes.written", "written_bytes"),
    ("rocksdb.wal.bytes", "wal_write_bytes"),
    ("rocksdb.flush.write.bytes", "flush_write_bytes"),
    ("rocksdb.compact.read.bytes", "compaction_read_bytes"),
    ("rocksdb.compact.write.bytes", "compaction_write_bytes"),
    ("rocksdb.stall.micros", "stall_us"),
    ("rocksdb.wal.synced", "wal_syncs"),
    ("rocksdb.memtable.hit", "memtable_hits"),
    ("rocksdb.block.cache.hit", "block_cache_hits"),
    ("rocksdb.block.cache.miss", "block_cache_misses"),
    ("rocksdb.bloom.filter.useful", "bloom_filter_saved_reads"),
    ("rocksdb.no.file.opens", "files_opened"),
];
/// Histograms of the statistics whose counts are kept.
const COUNTED: [(&str, &str); 2] =
    [("rocksdb.compaction.times.micros", "compactions"), ("rocksdb.db.flush.micros", "flushes")];

/// Properties of a column family that are numbers, and their names here.
pub const PROPERTIES: [(&str, &str); 7] = [
    ("rocksdb.num-files-at-level0", "level0_files"),
    ("rocksdb.estimate-live-data-size", "live_data_bytes"),
    ("rocksdb.total-sst-files-size", "sst_files_bytes"),
    ("rocksdb.estimate-pending-compaction-bytes", "pending_compaction_bytes"),
    ("rocksdb.cur-size-all-mem-tables", "memtables_bytes"),
    ("rocksdb.actual-delayed-write-rate", "delayed_write_bytes_per_s"),
    ("rocksdb.is-write-stopped", "is_write_stopped"),
];

/// Facts in the text of the statistics: `NAME COUNT : N`, and histograms with more before it.
pub fn of_statistics(text: &str) -> Vec<KvFact> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let rows = COUNTERS.iter().chain(&COUNTED);
        let Some((_, ours)) = rows.clone().find(|(theirs, _)| *theirs == name) else { continue };
        let value = rest.split("COUNT : ").nth(1).and_then(|rest| rest.split(' ').next());
        if let Some(value) = value.and_then(|text| text.trim().parse().ok()) {
            found.push(KvFact { name: (*ours).to_owned(), value });
        }
    }
    found.extend(amplification(&found));
    found
}

/// Bytes that the store wrote to its files for each byte that it was given.
fn amplification(facts: &[KvFact]) -> Option<KvFact> {
    let of = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.value);
    let given = of("written_bytes").filter(|bytes| *bytes > 0.0)?;
    let files = ["wal_write_bytes", "flush_write_bytes", "compaction_write_bytes"];
    let written: f64 = files.iter().filter_map(|name| of(name)).sum();
    Some(KvFact { name: "write_amplification".into(), value: written / given })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `RocksDB` 7.8.3.
    #[test]
    fn counters_and_histograms_are_read() {
        let text = "rocksdb.block.cache.miss COUNT : 17\n\
                    rocksdb.bytes.written COUNT : 1000\n\
                    rocksdb.wal.bytes COUNT : 1010\n\
                    rocksdb.flush.write.bytes COUNT : 990\n\
                    rocksdb.compact.write.bytes COUNT : 2000\n\
                    rocksdb.number.keys.written COUNT : 5\n\
                    rocksdb.compaction.times.micros P50 : 1.0 P95 : 2.0 P99 : 2.0 P100 : 2.0 \
                    COUNT : 3 SUM : 5\n";
        let facts = of_statistics(text);
        let value = |name: &str| facts.iter().find(|fact| fact.name == name).unwrap().value;
        assert!((value("write_amplification") - 4.0).abs() < 1e-9);
        assert!((value("compactions") - 3.0).abs() < 1e-9);
        assert!((value("block_cache_misses") - 17.0).abs() < 1e-9);
        assert_eq!(facts.len(), 7);
    }
}
