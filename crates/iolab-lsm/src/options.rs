//! Options under `RocksDB`'s own names, with the defaults of 7.8.
//!
//! An option that the model does not know is refused, with the nearest name: one that did nothing
//! would be compared for nothing.

use iolab_model::Error;
use iolab_model::kv::KvOption;
use iolab_model::nearest::did_you_mean;

/// Rule by which tables are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionStyle {
    /// Each level is several times as large as the one above it, and sorted as a whole.
    Level,
    /// Sorted runs of similar size are merged.
    Universal,
}

/// Compression of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// One that finds repetitions only: Snappy, LZ4.
    Repetitions,
    /// One that shortens frequent bytes as well: zlib, Zstandard.
    Entropy,
}

impl Compression {
    /// Bytes of a block of YCSB's values after it, for each byte before.
    ///
    /// Its values are drawn from some 90 printable bytes and repeat nothing, so that the first kind
    /// saves less than an eighth, and `RocksDB` then keeps the block as it is (`format.cc`,
    /// `GoodCompressionRatio`). The second one leaves 0.74: flushes of 80,000 records by `RocksDB`
    /// 7.8.3 with kZSTD, in bytes, beside those with kNoCompression.
    pub const fn ratio(self) -> f64 {
        match self {
            Self::None | Self::Repetitions => 1.0,
            Self::Entropy => 0.74,
        }
    }

    fn of(text: &str) -> Option<Self> {
        Some(match text {
            "kNoCompression" | "kDisableCompressionOption" => Self::None,
            "kSnappyCompression" | "kLZ4Compression" | "kLZ4HCCompression" => Self::Repetitions,
            "kZSTD" | "kZlibCompression" | "kBZip2Compression" => Self::Entropy,
            _ => return None,
        })
    }
}

/// Options of universal compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "RocksDB's names")]
pub struct Universal {
    pub size_ratio: u64,
    pub min_merge_width: u64,
    pub max_merge_width: u64,
    pub max_size_amplification_percent: u64,
}

/// Options of a store.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "RocksDB's names")]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct LsmOptions {
    pub write_buffer_size: u64,
    pub max_write_buffer_number: u64,
    pub min_write_buffer_number_to_merge: u64,
    pub level0_file_num_compaction_trigger: u64,
    pub level0_slowdown_writes_trigger: u64,
    pub level0_stop_writes_trigger: u64,
    pub target_file_size_base: u64,
    pub target_file_size_multiplier: u64,
    pub max_bytes_for_level_base: u64,
    pub max_bytes_for_level_multiplier: f64,
    pub num_levels: u64,
    pub level_compaction_dynamic_level_bytes: bool,
    pub level_compaction_dynamic_file_size: bool,
    pub compaction_style: CompactionStyle,
    pub universal: Universal,
    /// 0: 25 times `target_file_size_base`.
    pub max_compaction_bytes: u64,
    pub soft_pending_compaction_bytes_limit: u64,
    pub hard_pending_compaction_bytes_limit: u64,
    pub disable_auto_compactions: bool,
    /// Of all levels, unless they have their own.
    pub compression: Compression,
    /// The last one is that of all further levels.
    pub compression_per_level: Vec<Compression>,
    pub max_background_jobs: u64,
    /// 0: 16 MiB/s.
    pub delayed_write_rate: u64,
    pub bytes_per_sync: u64,
    pub wal_bytes_per_sync: u64,
    pub compaction_readahead_size: u64,
    pub writable_file_max_buffer_size: u64,
    pub allow_fallocate: bool,
    pub block_size: u64,
    pub block_size_deviation: u64,
    pub block_restart_interval: u32,
    pub no_block_cache: bool,
    pub block_cache: u64,
    /// 0: no filter.
    pub bloom_bits_per_key: f32,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Default for LsmOptions {
    fn default() -> Self {
        Self {
            write_buffer_size: 64 * MIB,
            max_write_buffer_number: 2,
            min_write_buffer_number_to_merge: 1,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 20,
            level0_stop_writes_trigger: 36,
            target_file_size_base: 64 * MIB,
            target_file_size_multiplier: 1,
            max_bytes_for_level_base: 256 * MIB,
            max_bytes_for_level_multiplier: 10.0,
            num_levels: 7,
            level_compaction_dynamic_level_bytes: false,
            level_compaction_dynamic_file_size: true,
            compaction_style: CompactionStyle::Level,
            universal: Universal {
                size_ratio: 1,
                min_merge_width: 2,
                max_merge_width: u64::MAX,
                max_size_amplification_percent: 200,
            },
            max_compaction_bytes: 0,
            soft_pending_compaction_bytes_limit: 64 * GIB,
            hard_pending_compaction_bytes_limit: 256 * GIB,
            disable_auto_compactions: false,
            compression: Compression::Repetitions,
            compression_per_level: Vec::new(),
            max_background_jobs: 2,
            delayed_write_rate: 0,
            bytes_per_sync: 0,
            wal_bytes_per_sync: 0,
            compaction_readahead_size: 0,
            writable_file_max_buffer_size: MIB,
            allow_fallocate: true,
            block_size: 4096,
            block_size_deviation: 10,
            block_restart_interval: 16,
            no_block_cache: false,
            block_cache: 8 * MIB,
            bloom_bits_per_key: 0.0,
        }
    }
}

/// Memory for write buffers in YCSB's binding.
const BINDING_BUDGET: u64 = 512 * MIB;

/// Place of an option, by the kind of its value.
enum Place {
    Size(fn(&mut LsmOptions) -> &mut u64),
    Small(fn(&mut LsmOptions) -> &mut u32),
    Number(fn(&mut LsmOptions) -> &mut f64),
    Flag(fn(&mut LsmOptions) -> &mut bool),
    Other(fn(&mut LsmOptions, &str) -> Option<()>),
}

use Place::{Flag, Number, Other, Size, Small};

/// Options of the database and of its column family.
const OF_STORE: [(&str, Place); 26] = [
    ("write_buffer_size", Size(|o| &mut o.write_buffer_size)),
    ("max_write_buffer_number", Size(|o| &mut o.max_write_buffer_number)),
    ("min_write_buffer_number_to_merge", Size(|o| &mut o.min_write_buffer_number_to_merge)),
    ("level0_file_num_compaction_trigger", Size(|o| &mut o.level0_file_num_compaction_trigger)),
    ("level0_slowdown_writes_trigger", Size(|o| &mut o.level0_slowdown_writes_trigger)),
    ("level0_stop_writes_trigger", Size(|o| &mut o.level0_stop_writes_trigger)),
    ("target_file_size_base", Size(|o| &mut o.target_file_size_base)),
    ("target_file_size_multiplier", Size(|o| &mut o.target_file_size_multiplier)),
    ("max_bytes_for_level_base", Size(|o| &mut o.max_bytes_for_level_base)),
    ("max_bytes_for_level_multiplier", Number(|o| &mut o.max_bytes_for_level_multiplier)),
    ("num_levels", Size(|o| &mut o.num_levels)),
    ("level_compaction_dynamic_level_bytes", Flag(|o| &mut o.level_compaction_dynamic_level_bytes)),
    ("level_compaction_dynamic_file_size", Flag(|o| &mut o.level_compaction_dynamic_file_size)),
    ("compaction_style", Other(set_style)),
    ("compaction_options_universal", Other(set_universal)),
    ("max_compaction_bytes", Size(|o| &mut o.max_compaction_bytes)),
    ("soft_pending_compaction_bytes_limit", Size(|o| &mut o.soft_pending_compaction_bytes_limit)),
    ("hard_pending_compaction_bytes_limit", Size(|o| &mut o.hard_pending_compaction_bytes_limit)),
    ("disable_auto_compactions", Flag(|o| &mut o.disable_auto_compactions)),
    ("compression", Other(set_compression)),
    ("compression_per_level", Other(set_compression_per_level)),
    ("max_background_jobs", Size(|o| &mut o.max_background_jobs)),
    ("delayed_write_rate", Size(|o| &mut o.delayed_write_rate)),
    ("bytes_per_sync", Size(|o| &mut o.bytes_per_sync)),
    ("wal_bytes_per_sync", Size(|o| &mut o.wal_bytes_per_sync)),
    ("compaction_readahead_size", Size(|o| &mut o.compaction_readahead_size)),
];
/// Further options of the database.
const OF_FILES: [(&str, Place); 2] = [
    ("writable_file_max_buffer_size", Size(|o| &mut o.writable_file_max_buffer_size)),
    ("allow_fallocate", Flag(|o| &mut o.allow_fallocate)),
];
/// Options of its tables.
const OF_TABLES: [(&str, Place); 6] = [
    ("block_size", Size(|o| &mut o.block_size)),
    ("block_size_deviation", Size(|o| &mut o.block_size_deviation)),
    ("block_restart_interval", Small(|o| &mut o.block_restart_interval)),
    ("no_block_cache", Flag(|o| &mut o.no_block_cache)),
    ("block_cache", Size(|o| &mut o.block_cache)),
    ("filter_policy", Other(set_filter)),
];
const TABLE: &str = "table";
const BASE: &str = "base";

impl LsmOptions {
    /// Those of YCSB's binding on so many processors: level style with 512 MiB of write buffers
    /// (`ColumnFamilyOptions::OptimizeLevelStyleCompaction`), and two jobs for each processor.
    pub fn of_binding(cpus: u64) -> Self {
        Self {
            write_buffer_size: BINDING_BUDGET / 4,
            min_write_buffer_number_to_merge: 2,
            max_write_buffer_number: 6,
            level0_file_num_compaction_trigger: 2,
            target_file_size_base: BINDING_BUDGET / 8,
            max_bytes_for_level_base: BINDING_BUDGET,
            compression_per_level: vec![
                Compression::None,
                Compression::None,
                Compression::Repetitions,
            ],
            max_background_jobs: 2 * cpus.max(1),
            ..Self::default()
        }
    }

    /// Options as a workload has them: the binding's, or plain ones, with its own over them.
    ///
    /// # Errors
    ///
    /// One is unknown, or its value does not fit.
    pub fn of(wanted: &[KvOption], cpus: u64) -> Result<Self, Error> {
        let is_plain = wanted.iter().any(|one| one.part == BASE && one.value == "plain");
        let mut made = if is_plain { Self::default() } else { Self::of_binding(cpus) };
        for option in wanted.iter().filter(|one| one.part != BASE) {
            made.set(option)?;
        }
        made.check()?;
        Ok(made)
    }

    fn set(&mut self, option: &KvOption) -> Result<(), Error> {
        let KvOption { part, name, value } = option;
        let found = if part == TABLE {
            OF_TABLES.iter().find(|(known, _)| known == name)
        } else {
            OF_STORE.iter().chain(&OF_FILES).find(|(known, _)| known == name)
        };
        let Some((_, place)) = found else { return Err(unknown(part, name)) };
        let set = match place {
            Size(at) => size(value).map(|value| *at(self) = value),
            Small(at) => value.parse().ok().map(|value| *at(self) = value),
            Number(at) => value.parse().ok().map(|value| *at(self) = value),
            Flag(at) => flag(value).map(|value| *at(self) = value),
            Other(set) => set(self, value),
        };
        set.ok_or_else(|| Error::BadWorkload {
            problem: format!("{name}={value} is no value that the simulated store takes"),
            remedy: "values are those of RocksDB's options.h; sizes may end with K, M or G".into(),
        })
    }

    /// Refuses values with which no store works.
    fn check(&self) -> Result<(), Error> {
        let wrong = |problem: String| {
            Err(Error::BadWorkload { problem, remedy: "use a value that RocksDB takes".into() })
        };
        let sizes = [
            ("write_buffer_size", self.write_buffer_size, 1 << 16),
            ("target_file_size_base", self.target_file_size_base, 1 << 16),
            ("max_bytes_for_level_base", self.max_bytes_for_level_base, 1 << 16),
            ("block_size", self.block_size, 64),
            ("writable_file_max_buffer_size", self.writable_file_max_buffer_size, 4096),
            ("max_write_buffer_number", self.max_write_buffer_number, 1),
            ("min_write_buffer_number_to_merge", self.min_write_buffer_number_to_merge, 1),
            ("level0_file_num_compaction_trigger", self.level0_file_num_compaction_trigger, 1),
            ("target_file_size_multiplier", self.target_file_size_multiplier, 1),
            ("max_background_jobs", self.max_background_jobs, 1),
            ("num_levels", self.num_levels, 2),
        ];
        if let Some((name, value, least)) = sizes.iter().find(|(_, value, least)| value < least) {
            return wrong(format!("{name}={value} is below {least}"));
        }
        if self.num_levels > 64 {
            return wrong(format!("num_levels={} is above 64", self.num_levels));
        }
        let multiplier = self.max_bytes_for_level_multiplier;
        if !(multiplier.is_finite() && multiplier > 1.0) {
            return wrong(format!("max_bytes_for_level_multiplier={multiplier} is not above 1"));
        }
        Ok(())
    }

    /// Memory of the cache of blocks.
    pub const fn block_cache_bytes(&self) -> u64 {
        if self.no_block_cache { 0 } else { self.block_cache }
    }

    /// Bytes from which on a block may close before it is full.
    pub const fn almost_full_bytes(&self) -> u64 {
        (self.block_size * (100 - min(self.block_size_deviation, 100))).div_ceil(100)
    }

    /// Compression of the tables of a level.
    pub fn compression_of(&self, level: usize) -> Compression {
        let own = self.compression_per_level.get(level).or(self.compression_per_level.last());
        own.copied().unwrap_or(self.compression)
    }

    /// Size at which a table of a level ends.
    pub fn target_bytes(&self, level: usize) -> u64 {
        let steps = u32::try_from(level.saturating_sub(1)).unwrap_or(0);
        let factor = self.target_file_size_multiplier.saturating_pow(steps);
        self.target_file_size_base.saturating_mul(factor)
    }

    /// Most bytes of one compaction (`max_compaction_bytes`).
    pub const fn compaction_bytes_max(&self) -> u64 {
        match self.max_compaction_bytes {
            0 => self.target_file_size_base.saturating_mul(25),
            bytes => bytes,
        }
    }

    /// Flushes and compactions at once (`RocksDB` 7.8 `DBImpl::GetBGJobLimits`: a quarter of the
    /// jobs flush, the others compact, at least one each).
    pub fn jobs(&self) -> (u32, u32) {
        let flushes = (self.max_background_jobs / 4).max(1);
        let compactions = self.max_background_jobs.saturating_sub(flushes).max(1);
        (flushes.min(64) as u32, compactions.min(64) as u32)
    }

    /// Bytes per second of delayed writers.
    pub const fn delayed_rate(&self) -> u64 {
        match self.delayed_write_rate {
            0 => 16 * MIB,
            rate => rate,
        }
    }
}

const fn min(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

fn unknown(part: &str, name: &str) -> Error {
    let of_store = || OF_STORE.iter().chain(&OF_FILES);
    let (list, other, of): (Vec<&str>, Vec<&str>, _) = if part == TABLE {
        (names(&OF_TABLES), of_store().map(|(name, _)| *name).collect(), "of its tables")
    } else {
        (of_store().map(|(name, _)| *name).collect(), names(&OF_TABLES), "")
    };
    let near = did_you_mean(name, list.iter().copied());
    let remedy = if other.contains(&name) {
        let prefix = if part == TABLE { "rocksdb.option" } else { "rocksdb.table" };
        format!("write {prefix}.{name}")
    } else {
        format!("it has {}", list.join(", "))
    };
    let gap = if of.is_empty() { "" } else { " " };
    Error::BadWorkload {
        problem: format!("the simulated store has no option {name}{gap}{of}{near}"),
        remedy,
    }
}

fn names(list: &[(&'static str, Place)]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).collect()
}

/// A whole number, perhaps with a unit.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => MIB,
        "G" => GIB,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn set_style(options: &mut LsmOptions, text: &str) -> Option<()> {
    options.compaction_style = match text {
        "kCompactionStyleLevel" => CompactionStyle::Level,
        "kCompactionStyleUniversal" => CompactionStyle::Universal,
        _ => return None,
    };
    Some(())
}

fn set_universal(options: &mut LsmOptions, text: &str) -> Option<()> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    for pair in inner.split(';').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let universal = &mut options.universal;
        let place = match name.trim() {
            "size_ratio" => &mut universal.size_ratio,
            "min_merge_width" => &mut universal.min_merge_width,
            "max_merge_width" => &mut universal.max_merge_width,
            "max_size_amplification_percent" => &mut universal.max_size_amplification_percent,
            _ => return None,
        };
        *place = size(value.trim())?;
    }
    Some(())
}

fn set_compression(options: &mut LsmOptions, text: &str) -> Option<()> {
    options.compression = Compression::of(text)?;
    Some(())
}

fn set_compression_per_level(options: &mut LsmOptions, text: &str) -> Option<()> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    let levels = inner.split(':').filter(|one| !one.is_empty()).map(Compression::of);
    options.compression_per_level = levels.collect::<Option<_>>()?;
    Some(())
}

/// `bloomfilter:BITS`, perhaps with a mode behind it, or `nullptr`.
fn set_filter(options: &mut LsmOptions, text: &str) -> Option<()> {
    options.bloom_bits_per_key = match text.split(':').collect::<Vec<_>>()[..] {
        ["nullptr"] => 0.0,
        ["bloomfilter" | "rocksdb.BloomFilter", bits, ..] => bits.parse().ok()?,
        _ => return None,
    };
    (0.0..=100.0).contains(&options.bloom_bits_per_key).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(part: &str, name: &str, value: &str) -> KvOption {
        KvOption { part: part.into(), name: name.into(), value: value.into() }
    }

    #[test]
    fn options_have_rocksdbs_names_and_the_bindings_values() {
        let plain = LsmOptions::of(&[option("base", "defaults", "plain")], 2).unwrap();
        assert_eq!(plain, LsmOptions::default());
        let wanted = [
            option("cf", "write_buffer_size", "4M"),
            option("cf", "compaction_style", "kCompactionStyleUniversal"),
            option("cf", "compaction_options_universal", "{size_ratio=5;min_merge_width=3}"),
            option("table", "filter_policy", "bloomfilter:10:false"),
            option("cf", "compression_per_level", "kNoCompression:kZSTD"),
        ];
        let made = LsmOptions::of(&wanted, 2).unwrap();
        assert_eq!(made.write_buffer_size, 4 << 20);
        assert_eq!((made.universal.size_ratio, made.universal.min_merge_width), (5, 3));
        assert!((made.bloom_bits_per_key - 10.0).abs() < 1e-6);
        assert_eq!(made.compression_of(5), Compression::Entropy);
        assert_eq!((made.max_background_jobs, made.jobs()), (4, (1, 3)));
        assert_eq!(made.level0_file_num_compaction_trigger, 2);
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_nearest_name() {
        let told = |part: &str, name: &str, value: &str| {
            LsmOptions::of(&[option(part, name, value)], 1).unwrap_err().to_string()
        };
        let near = told("cf", "write_bufer_size", "1");
        assert!(near.contains("did you mean `write_buffer_size`?"), "{near}");
        let moved = told("cf", "block_size", "4096");
        assert!(moved.contains("rocksdb.table.block_size"), "{moved}");
        let value = told("cf", "compaction_style", "kCompactionStyleFIFO");
        assert!(value.contains("is no value"), "{value}");
        let small = told("cf", "num_levels", "1");
        assert!(small.contains("num_levels=1 is below 2"), "{small}");
    }
}
