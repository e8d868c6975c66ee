//! Values that the store tells of itself, under the names that the real store's have
//! (`iolab-kv`, `rocksdb/facts.rs`), and bytes level by level.

use iolab_model::kv::KvFact;

use crate::stall::Pace;
use crate::store::LsmStore;

/// Counts since the store was made.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub written_bytes: u64,
    pub wal_write_bytes: u64,
    pub wal_syncs: u64,
    pub flush_write_bytes: u64,
    pub flushes: u64,
    pub compaction_read_bytes: u64,
    pub compactions: u64,
    pub memtable_hits: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub filter_saved: u64,
    pub files_opened: u64,
    /// Bytes that flushes and compactions wrote to each level.
    pub level_write_bytes: Vec<u64>,
}

impl Counts {
    pub fn new(levels: usize) -> Self {
        Self { level_write_bytes: vec![0; levels], ..Self::default() }
    }
}

impl LsmStore {
    /// Counts and present sizes.
    pub fn facts(&self) -> Vec<KvFact> {
        let counts = &self.counts;
        let compacted = self.compaction_write_bytes();
        let buffers = self.full.iter().map(|one| one.bytes).sum::<u64>() + self.active.bytes;
        let rate = if self.stall.pace == Pace::Delayed { self.options.delayed_rate() } else { 0 };
        let tables = self.version.total_bytes();
        let whole = [
            ("written_bytes", counts.written_bytes),
            ("wal_write_bytes", counts.wal_write_bytes),
            ("flush_write_bytes", counts.flush_write_bytes),
            ("compaction_read_bytes", counts.compaction_read_bytes),
            ("compaction_write_bytes", compacted),
            ("stall_us", self.stall.lost.0 / 1000),
            ("wal_syncs", counts.wal_syncs),
            ("memtable_hits", counts.memtable_hits),
            ("block_cache_hits", counts.cache_hits),
            ("block_cache_misses", counts.cache_misses),
            ("bloom_filter_saved_reads", counts.filter_saved),
            ("files_opened", counts.files_opened),
            ("compactions", counts.compactions),
            ("flushes", counts.flushes),
            ("level0_files", self.version.levels[0].len() as u64),
            ("sst_files_bytes", tables),
            ("pending_compaction_bytes", self.stall.pending_bytes),
            ("memtables_bytes", buffers),
            ("delayed_write_bytes_per_s", rate),
            ("is_write_stopped", u64::from(self.stall.pace == Pace::Stopped)),
        ];
        let fact = |(name, value): (&str, u64)| KvFact { name: name.into(), value: value as f64 };
        let mut facts: Vec<KvFact> = whole.into_iter().map(fact).collect();
        if counts.written_bytes > 0 {
            let sum = counts.wal_write_bytes + counts.flush_write_bytes + compacted;
            let value = sum as f64 / counts.written_bytes as f64;
            facts.push(KvFact { name: "write_amplification".into(), value });
        }
        for (level, written) in counts.level_write_bytes.iter().enumerate() {
            let bytes = self.version.bytes(level);
            if *written > 0 || bytes > 0 {
                facts.push(fact((&format!("level{level}_write_bytes"), *written)));
                facts.push(fact((&format!("level{level}_bytes"), bytes)));
            }
        }
        facts
    }

    /// Bytes that compactions wrote.
    pub(crate) fn compaction_write_bytes(&self) -> u64 {
        let all: u64 = self.counts.level_write_bytes.iter().sum();
        all - self.counts.flush_write_bytes
    }

    /// A value by its name.
    pub fn fact(&self, name: &str) -> f64 {
        let facts = self.facts();
        facts.iter().find(|fact| fact.name == name).map_or(0.0, |fact| fact.value)
    }
}
