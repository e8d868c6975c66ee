//! Lookups and scans: which blocks are read.
//!
//! A lookup asks the write buffers, then level 0 from its newest table on, then one table of each
//! level. Index and filter lie in memory. A block that is planned counts as cached from then on.

use iolab_model::Ns;

use crate::action::{FileNo, Key};
use crate::cache::NONE;
use crate::store::LsmStore;
use crate::table::Table;

/// Reads of a scan in sequence before it reads ahead, and the first and the largest amount
/// (`RocksDB` 7.8 `table.h`: `num_file_reads_for_auto_readahead`, `initial_auto_readahead_size`,
/// `max_auto_readahead_size`).
const SEQUENTIAL_READS: u32 = 2;
const READ_AHEAD_FIRST: u64 = 8 << 10;
const READ_AHEAD_MAX: u64 = 256 << 10;

/// A range of a table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRead {
    /// The table.
    pub file: FileNo,
    /// First byte.
    pub at: u64,
    /// Length.
    pub bytes: u64,
}

/// Reads and time of a lookup or a scan. Used again and again: it keeps its memory.
#[derive(Debug, Default)]
pub struct KeyLookup {
    /// Records that were found.
    pub records: u32,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Time of the processor.
    pub work: Ns,
    /// Reads, one after the other. Their tables are kept until [`LsmStore::release`].
    pub reads: Vec<BlockRead>,
}

impl KeyLookup {
    fn clear(&mut self) {
        (self.records, self.value_bytes, self.work) = (0, 0, Ns(0));
        debug_assert!(self.reads.is_empty(), "the reads before were not released");
    }

    fn found(&mut self, value_bytes: f64) {
        self.records += 1;
        self.value_bytes += value_bytes.round() as u64;
    }
}

/// Place in a sorted run that is scanned.
struct Cursor {
    /// Tables from the present one on, the next one last.
    tables: Vec<FileNo>,
    place: usize,
    block: u32,
    /// Blocks in sequence that were read.
    sequential: u32,
    read_ahead: u64,
    /// End of what was read ahead.
    ahead: u64,
}

impl LsmStore {
    /// Looks a key up.
    pub fn get(&mut self, key: Key, lookup: &mut KeyLookup) {
        lookup.clear();
        lookup.work = self.cost.get;
        if let Some(value) = self.buffered(key) {
            self.counts.memtable_hits += 1;
            return lookup.found(value);
        }
        for place in 0..self.version.levels[0].len() {
            let no = self.version.levels[0][place];
            if self.version.table(no).covers(key) && self.in_table(no, key, lookup) {
                return;
            }
        }
        for level in 1..self.version.levels.len() {
            let list = &self.version.levels[level];
            let place = list.partition_point(|no| self.version.table(*no).last() < key);
            let Some(&no) = list.get(place) else { continue };
            if self.version.table(no).covers(key) && self.in_table(no, key, lookup) {
                return;
            }
        }
    }

    /// Mean bytes of the values of a buffer that has the key.
    fn buffered(&self, key: Key) -> Option<f64> {
        let buffers = core::iter::once(&self.active).chain(self.full.iter().rev());
        let mut holding = buffers.filter(|buffer| buffer.keys.contains(&key));
        holding.next().map(|one| one.value_bytes as f64 / one.entries.max(1) as f64)
    }

    /// Asks a table; true: the key is there.
    fn in_table(&mut self, no: FileNo, key: Key, lookup: &mut KeyLookup) -> bool {
        lookup.work += self.cost.table;
        let table = self.version.table(no);
        let place = table.place(key);
        let is_there = table.keys.get(place) == Some(&key);
        let bits = self.options.bloom_bits_per_key;
        if bits > 0.0 && !is_there && !passes_filter(no, key, bits) {
            self.counts.filter_saved += 1;
            return false;
        }
        let block = (place as u64 / table.layout.per_block) as u32;
        let value = table.shape.value_bytes;
        if let Some((at, bytes)) = self.load(no, block, lookup) {
            self.read(BlockRead { file: no, at, bytes }, lookup);
        }
        if is_there {
            lookup.found(value);
        }
        is_there
    }

    /// Takes a block from the cache, or into it; answers its range if it must be read.
    fn load(&mut self, no: FileNo, block: u32, lookup: &mut KeyLookup) -> Option<(u64, u64)> {
        let table = self.version.table(no);
        let block = block.min(table.cached.len() as u32 - 1);
        let (place, bytes) = (table.cached[block as usize], table.layout.plain_bytes);
        let range = table.block(block);
        lookup.work += self.cost.block;
        if place != NONE {
            self.counts.cache_hits += 1;
            self.cache.touch(place);
            return None;
        }
        self.counts.cache_misses += 1;
        lookup.work += self.cost.load;
        let version = &mut self.version;
        let gone = |no, block: u32| {
            version.table_mut(no).cached[block as usize] = NONE;
        };
        let place = self.cache.insert((no, block), bytes as u32, gone);
        self.version.table_mut(no).cached[block as usize] = place;
        Some(range)
    }

    fn read(&mut self, read: BlockRead, lookup: &mut KeyLookup) {
        self.version.table_mut(read.file).pins += 1;
        lookup.reads.push(read);
    }

    /// The reads of a lookup have ended.
    pub fn release(&mut self, lookup: &mut KeyLookup) {
        for read in lookup.reads.drain(..) {
            let table = self.version.table_mut(read.file);
            table.pins -= 1;
            if table.is_obsolete && table.pins == 0 {
                self.discard(read.file);
            }
        }
    }

    /// Reads up to `count` records from a key on.
    pub fn scan(&mut self, from: Key, count: u32, lookup: &mut KeyLookup) {
        lookup.clear();
        lookup.work = self.cost.get;
        let mut cursors = self.cursors(from);
        for cursor in &mut cursors {
            lookup.work += self.cost.table;
            self.visit(cursor, lookup);
        }
        let mut key = from;
        while lookup.records < count {
            let of_tables = cursors.iter().filter_map(|cursor| self.key_at(cursor)).min();
            let Some(next) = self.next_buffered(key).into_iter().chain(of_tables).min() else {
                break;
            };
            let mut value = self.buffered(next);
            for cursor in &mut cursors {
                if self.key_at(cursor) == Some(next) {
                    let table = self.version.table(cursor.tables[cursor.tables.len() - 1]);
                    value.get_or_insert(table.shape.value_bytes);
                    self.step(cursor, lookup);
                }
            }
            lookup.found(value.unwrap_or(0.0));
            lookup.work += self.cost.next;
            let Some(after) = next.checked_add(1) else { break };
            key = after;
        }
    }

    fn next_buffered(&self, from: Key) -> Option<Key> {
        let buffers = core::iter::once(&self.active).chain(&self.full);
        buffers.filter_map(|buffer| buffer.keys.range(from..).next().copied()).min()
    }

    /// A place in each sorted run at the first key that is not before `from`.
    fn cursors(&self, from: Key) -> Vec<Cursor> {
        let version = &self.version;
        let runs = version.levels[0].iter().map(|no| vec![*no]);
        let levels = version.levels[1..].iter().map(|level| {
            let first = level.partition_point(|no| version.table(*no).last() < from);
            level[first..].iter().rev().copied().collect::<Vec<_>>()
        });
        let cursor = |tables: Vec<FileNo>| {
            let table: &Table = version.table(*tables.last()?);
            let place = table.place(from);
            (place < table.keys.len()).then_some(Cursor {
                tables,
                place,
                block: NONE,
                sequential: 0,
                read_ahead: READ_AHEAD_FIRST,
                ahead: 0,
            })
        };
        runs.chain(levels).filter_map(cursor).collect()
    }

    fn key_at(&self, cursor: &Cursor) -> Option<Key> {
        let no = cursor.tables.last()?;
        self.version.table(*no).keys.get(cursor.place).copied()
    }

    fn step(&mut self, cursor: &mut Cursor, lookup: &mut KeyLookup) {
        cursor.place += 1;
        let Some(no) = cursor.tables.last() else { return };
        if cursor.place == self.version.table(*no).keys.len() {
            cursor.tables.pop();
            (cursor.place, cursor.block, cursor.sequential) = (0, NONE, 0);
            (cursor.read_ahead, cursor.ahead) = (READ_AHEAD_FIRST, 0);
        }
        self.visit(cursor, lookup);
    }

    /// Makes sure that the block of a cursor is in memory.
    fn visit(&mut self, cursor: &mut Cursor, lookup: &mut KeyLookup) {
        let Some(&no) = cursor.tables.last() else { return };
        let per_block = self.version.table(no).layout.per_block;
        let block = (cursor.place as u64 / per_block) as u32;
        if block == cursor.block {
            return;
        }
        cursor.block = block;
        let Some((at, bytes)) = self.load(no, block, lookup) else { return };
        cursor.sequential += 1;
        if at + bytes <= cursor.ahead {
            return;
        }
        let mut read = BlockRead { file: no, at, bytes };
        if cursor.sequential > SEQUENTIAL_READS {
            let table = self.version.table(no);
            let end = table.layout.data_bytes(table.keys.len() as u64);
            read.bytes = (bytes + cursor.read_ahead).min(end - at);
            cursor.ahead = at + read.bytes;
            cursor.read_ahead = (2 * cursor.read_ahead).min(READ_AHEAD_MAX);
        }
        self.read(read, lookup);
    }
}

/// Tell whether a filter lets a key pass that is not in its table: with b bits for each key, one in
/// about 1.62^b does (wiki, "`RocksDB` Bloom Filter": 10 bits, 1 %).
fn passes_filter(no: FileNo, key: Key, bits: f32) -> bool {
    const PER_BIT: f64 = 0.618_5;
    // A mixer of 64 bits (Steele, Lea, Flood: SplitMix).
    let mut hash = key ^ (u64::from(no.0) << 32 | 0x9e37_79b9);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / (1_u64 << 53) as f64 <= PER_BIT.powf(f64::from(bits))
}
