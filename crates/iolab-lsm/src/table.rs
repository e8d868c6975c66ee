//! Sorted tables: blocks of entries, an index, perhaps a filter.

use std::rc::Rc;

use crate::action::{FileNo, Key};
use crate::cache::NONE;
use crate::memtable::SEQUENCE_BYTES;
use crate::options::LsmOptions;

/// Lengths of an entry: shared and own part of the key, value (`RocksDB` 7.8
/// `table/block_based/block_builder.cc`).
const ENTRY_LENGTH_BYTES: u64 = 4;
/// Kind of compression and checksum behind each block (wiki, "Rocksdb `BlockBasedTable` Format").
const TRAILER_BYTES: u64 = 5;
/// A place where keys are written whole, and the number of such places.
const RESTART_BYTES: u64 = 4;
/// Entry of the index beside its key: length and place of the block [assume].
const INDEX_BYTES: u64 = 20;
/// Properties, list of the parts and footer of a table [assume].
const REST_BYTES: u64 = 1_100;

/// Shape of the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Bytes of a key.
    pub key_bytes: f64,
    /// Mean bytes of a value.
    pub value_bytes: f64,
}

impl Shape {
    /// The same of several parts with so many entries each.
    pub fn mean(parts: impl Iterator<Item = (u64, Self)>) -> Self {
        let (mut entries, mut keys, mut values) = (0.0, 0.0, 0.0);
        for (count, shape) in parts {
            entries += count as f64;
            keys += count as f64 * shape.key_bytes;
            values += count as f64 * shape.value_bytes;
        }
        let entries = f64::max(entries, 1.0);
        Self { key_bytes: keys / entries, value_bytes: values / entries }
    }
}

/// Sizes inside a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Entries of a block.
    pub per_block: u64,
    /// Bytes of a block in the file.
    pub block_bytes: u64,
    /// Bytes of a block in memory.
    pub plain_bytes: u64,
    /// Bytes of index and filter for each block.
    beside_bytes: f64,
}

impl Layout {
    /// That of entries of a shape, in a table of a level; keys share what so many neighbours have
    /// in common.
    pub fn of(options: &LsmOptions, shape: Shape, (level, entries): (usize, u64)) -> Self {
        let shared = shared_bytes(shape, entries);
        let interval = f64::from(options.block_restart_interval.max(1));
        // At each restart the whole key stands.
        let own = shape.key_bytes - shared * (1.0 - 1.0 / interval);
        let entry = own + (SEQUENCE_BYTES + ENTRY_LENGTH_BYTES) as f64 + shape.value_bytes;
        let (size, limit) = (options.block_size as f64, options.almost_full_bytes() as f64);
        let mut per_block = 1.0;
        // A block closes when it is full, or nearly so and the next entry would not fit.
        while per_block * entry < size
            && !(per_block * entry > limit && (per_block + 1.0) * entry > size)
        {
            per_block += 1.0;
        }
        let restarts = (per_block / interval).ceil() + 1.0;
        let plain = per_block * entry + restarts * RESTART_BYTES as f64;
        let ratio = options.compression_of(level).ratio();
        let beside = INDEX_BYTES as f64
            + shape.key_bytes
            + per_block * f64::from(options.bloom_bits_per_key) / 8.0;
        Self {
            per_block: per_block as u64,
            block_bytes: (plain * ratio).round() as u64 + TRAILER_BYTES,
            plain_bytes: plain.round() as u64,
            beside_bytes: beside,
        }
    }

    /// Blocks of so many entries.
    pub const fn blocks(&self, entries: u64) -> u64 {
        entries.div_ceil(self.per_block)
    }

    /// Bytes of the blocks of so many entries.
    pub fn data_bytes(&self, entries: u64) -> u64 {
        let (whole, rest) = (entries / self.per_block, entries % self.per_block);
        whole * self.block_bytes + rest * self.block_bytes / self.per_block
    }

    /// Bytes of a file of so many entries.
    pub fn file_bytes(&self, entries: u64) -> u64 {
        let beside = self.blocks(entries) as f64 * self.beside_bytes;
        self.data_bytes(entries) + beside as u64 + REST_BYTES
    }
}

/// Bytes at the beginning that neighbouring keys have in common: keys of `entries` records are
/// spread over decimal digits behind a common word of four letters, as YCSB's.
fn shared_bytes(shape: Shape, entries: u64) -> f64 {
    (4.0 + (entries.max(1) as f64).log10().floor()).min(shape.key_bytes)
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    pub no: FileNo,
    /// Sorted, each once.
    pub keys: Rc<[Key]>,
    pub shape: Shape,
    pub layout: Layout,
    pub file_bytes: u64,
    /// Place in the cache of each block, or [`NONE`].
    pub cached: Vec<u32>,
    /// True while a compaction reads it.
    pub is_compacted: bool,
    /// True if it belongs to no level any more.
    pub is_obsolete: bool,
    /// Lookups that still read it.
    pub pins: u32,
}

impl Table {
    /// A table of these keys.
    pub fn new(no: FileNo, keys: Rc<[Key]>, (shape, layout): (Shape, Layout)) -> Self {
        let entries = keys.len() as u64;
        Self {
            no,
            shape,
            layout,
            file_bytes: layout.file_bytes(entries),
            cached: vec![NONE; layout.blocks(entries) as usize],
            keys,
            is_compacted: false,
            is_obsolete: false,
            pins: 0,
        }
    }

    /// First key.
    pub fn first(&self) -> Key {
        self.keys[0]
    }

    /// Last key.
    pub fn last(&self) -> Key {
        self.keys[self.keys.len() - 1]
    }

    /// Tell whether a key lies between its first and its last one.
    pub fn covers(&self, key: Key) -> bool {
        self.first() <= key && key <= self.last()
    }

    /// Tell whether its keys and a range have something in common.
    pub fn overlaps(&self, (from, to): (Key, Key)) -> bool {
        self.first() <= to && from <= self.last()
    }

    /// Place of the first key that is not before `key`.
    pub fn place(&self, key: Key) -> usize {
        self.keys.partition_point(|other| *other < key)
    }

    /// Range of a block in the file.
    pub fn block(&self, block: u32) -> (u64, u64) {
        let at = u64::from(block) * self.layout.block_bytes;
        let end = self.layout.data_bytes(self.keys.len() as u64);
        (at, self.layout.block_bytes.min(end - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of YCSB have 1140 bytes and keys of about 23; `RocksDB` 7.8 puts four into a block.
    #[test]
    fn four_records_of_ycsb_make_a_block() {
        let shape = Shape { key_bytes: 23.0, value_bytes: 1140.0 };
        let layout = Layout::of(&LsmOptions::default(), shape, (1, 100_000));
        assert_eq!(layout.per_block, 4);
        let per_record = layout.file_bytes(100_000) as f64 / 100_000.0;
        assert!((1165.0..1200.0).contains(&per_record), "{per_record}");
        let table = Table::new(FileNo(1), (0..6).collect(), (shape, layout));
        let (second, length) = table.block(1);
        assert_eq!(second, layout.block_bytes);
        assert_eq!(length, layout.data_bytes(6) - second);
    }
}
