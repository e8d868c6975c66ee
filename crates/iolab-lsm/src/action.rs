//! Operations on files that the store asks for, and what its own work costs a processor.

use iolab_model::Ns;

/// A key, as a number that has its place in the order of keys.
pub type Key = u64;

/// A file of the store; none has the number of one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNo(pub u32);

impl FileNo {
    /// Number of names: so many files at once at most.
    pub const NAMES: u32 = 1 << 15;

    /// Its name, as a number below [`FileNo::NAMES`]; used again when the file is gone.
    pub const fn name(self) -> u32 {
        self.0 % Self::NAMES
    }
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// List of the tables, appended to when it changes.
    Manifest,
    /// Log of a write buffer.
    Log,
    /// Sorted table.
    Table,
}

/// Step of a background job, to be carried out before the next one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are described by their types")]
pub enum Action {
    /// Make a file and open it for writing.
    Create { file: FileNo, kind: FileKind },
    /// Reserve blocks for it.
    Allocate { file: FileNo, bytes: u64 },
    /// Read a range, in the order of the file.
    Read { file: FileNo, at: u64, bytes: u64 },
    /// Append.
    Append { file: FileNo, at: u64, bytes: u64 },
    /// Begin to write out a range, without a promise.
    WriteOut { file: FileNo, at: u64, bytes: u64 },
    /// Make durable, and close; blocks that were reserved behind its end are given back.
    Finish { file: FileNo, bytes: u64, is_cut: bool },
    /// Make what was appended durable.
    Sync { file: FileNo },
    /// Remove.
    Remove { file: FileNo, kind: FileKind },
    /// Keep the processor busy.
    Burn(Ns),
}

/// Time of a processor for work of the store itself.
///
/// None is fitted to a result. Merging and compression are times of the processor that `RocksDB`
/// 7.8.3 writes into its own log (`compaction_time_cpu_micros` by `num_input_records`, loads of
/// 80,000 records of YCSB on a processor of 2.5 GHz): 4.6 us a record, and 15.1 us with Zstandard.
/// The others are round numbers for records of about 1 KiB [assume].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreCost {
    /// Lookup of a key in write buffers.
    pub get: Ns,
    /// Lookup in the index of a table, and in its filter.
    pub table: Ns,
    /// Search in a block that is cached.
    pub block: Ns,
    /// Checksum of a block that was read, and its way into the cache.
    pub load: Ns,
    /// Insertion into a write buffer.
    pub put: Ns,
    /// A record of a scan.
    pub next: Ns,
    /// A record that is merged and written by a flush or a compaction.
    pub merge: Ns,
    /// Compression of 1 KiB by its frequent bytes, decompression included.
    pub compress_kib: Ns,
}

impl Default for StoreCost {
    fn default() -> Self {
        Self {
            get: Ns(1_500),
            table: Ns(600),
            block: Ns(900),
            load: Ns(2_500),
            put: Ns(4_000),
            next: Ns(400),
            merge: Ns(4_600),
            compress_kib: Ns(9_200),
        }
    }
}
