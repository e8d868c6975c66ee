//! Writes: clients queue, the first one writes the log for all that wait, and each inserts its own.

use iolab_model::Ns;
use iolab_model::kv::KvDurability;

use crate::action::{FileNo, Key};
use crate::memtable::Memtable;
use crate::stall::Pace;
use crate::store::LsmStore;

/// Header of a batch: sequence number and count (`RocksDB` 7.8 `db/write_batch.cc`).
const BATCH_HEADER_BYTES: u64 = 12;
/// Kind of a record of a batch, and its column family.
const RECORD_HEADER_BYTES: u64 = 2;
/// Blocks of a log, and the header of each part of a record in one (wiki, "Write Ahead Log File
/// Format").
const LOG_BLOCK_BYTES: u64 = 32 << 10;
const LOG_HEADER_BYTES: u64 = 7;
/// Most bytes of writers that go together, and how much the first one may bring along if it is
/// small (`RocksDB` 7.8 `db/write_thread.cc`: 1 MiB and an eighth of it).
const GROUP_BYTES_MAX: u64 = 1 << 20;

/// A writer in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    key: Key,
    key_bytes: u64,
    value_bytes: u64,
}

impl Writer {
    fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES
            + varint_bytes(self.key_bytes)
            + varint_bytes(self.value_bytes)
            + self.key_bytes
            + self.value_bytes
    }
}

const fn varint_bytes(value: u64) -> u64 {
    let bits = 64 - value.leading_zeros() as u64;
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

/// Place of a write in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Next step of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterTurn {
    /// Insertion of the record, which is logged; it costs [`crate::StoreCost::put`].
    Logged,
    /// Nothing: others or a stall come first.
    Wait,
    /// Nothing until then: writers are slowed down.
    Until(Ns),
    /// Writing of the log for its group, then a call of [`LsmStore::commit`].
    Lead(LogWrite),
}

/// Operations on the log for a group of writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogWrite {
    /// The log; absent: nothing is logged.
    pub log: Option<FileNo>,
    /// A log that must be made first, and one that nobody appends to any more.
    pub is_new: bool,
    /// The log before it, which is closed.
    pub old: Option<FileNo>,
    /// Bytes to reserve for it up to this size; 0: none.
    pub reserve_to: u64,
    /// Place and length of the append.
    pub at: u64,
    /// Length.
    pub bytes: u64,
    /// Range whose write-out begins: place and length; 0: none.
    pub write_out: (u64, u64),
    /// True if it is flushed to the device.
    pub is_synced: bool,
}

impl LsmStore {
    /// Takes a write into the queue.
    pub fn put(&mut self, key: Key, key_bytes: u64, value_bytes: u64) -> Ticket {
        self.writers.push_back(Writer { key, key_bytes, value_bytes });
        self.issued += 1;
        Ticket(self.issued - 1)
    }

    /// The turn of a writer.
    pub fn turn(&mut self, ticket: Ticket, now: Ns) -> WriterTurn {
        if ticket.0 < self.committed {
            return WriterTurn::Logged;
        }
        if self.group > 0 || ticket.0 > self.committed {
            return WriterTurn::Wait;
        }
        let mut write = LogWrite::default();
        if self.active.bytes >= self.options.write_buffer_size && self.may_switch() {
            self.switched_from = self.switch();
            self.is_log_new = self.active.log.is_some();
            self.refresh();
        }
        match self.stall.pace {
            Pace::Stopped => {
                self.stall.begin(now);
                return WriterTurn::Wait;
            }
            Pace::Delayed => {
                let bytes = self.writers[0].record_bytes() + BATCH_HEADER_BYTES;
                let until = self.stall.turn(now, bytes, self.options.delayed_rate());
                if now < until {
                    self.stall.begin(now);
                    return WriterTurn::Until(until);
                }
            }
            Pace::Free => {}
        }
        self.stall.end(now);
        (write.old, write.is_new) = (self.switched_from.take(), self.is_log_new);
        self.is_log_new = false;
        let (count, batch) = self.gather();
        self.group = count;
        self.append_log(batch, &mut write);
        WriterTurn::Lead(write)
    }

    /// A full buffer is followed by a new one unless writers are stopped: the number of buffers is
    /// looked at after each change.
    fn may_switch(&self) -> bool {
        self.stall.pace != Pace::Stopped
    }

    /// Writers that go together, and the bytes of their batch.
    fn gather(&self) -> (usize, u64) {
        let first = self.writers[0].record_bytes();
        let small = GROUP_BYTES_MAX / 8;
        let most = if first <= small { first + small } else { GROUP_BYTES_MAX };
        let (mut count, mut bytes) = (0, 0);
        for writer in &self.writers {
            let more = writer.record_bytes();
            if count > 0 && bytes + more > most {
                break;
            }
            (count, bytes) = (count + 1, bytes + more);
        }
        (count, bytes + BATCH_HEADER_BYTES)
    }

    fn append_log(&mut self, batch: u64, write: &mut LogWrite) {
        self.counts.written_bytes += batch;
        let Some(log) = self.active.log else { return };
        let at = self.active.log_bytes;
        let parts = (at % LOG_BLOCK_BYTES + batch).div_ceil(LOG_BLOCK_BYTES).max(1);
        write.log = Some(log);
        (write.at, write.bytes) = (at, batch + parts * LOG_HEADER_BYTES);
        let end = at + write.bytes;
        // Room for a whole buffer and a tenth of it is reserved at once
        // (`DBImpl::GetWalPreallocateBlockSize`).
        let unit = self.options.write_buffer_size / 10 + self.options.write_buffer_size;
        if self.options.allow_fallocate && end > self.active.log_reserved {
            self.active.log_reserved = end.next_multiple_of(unit);
            write.reserve_to = self.active.log_reserved;
        }
        let step = self.options.wal_bytes_per_sync;
        if step > 0 && end - self.active.log_written_out >= step {
            write.write_out = (self.active.log_written_out, end - self.active.log_written_out);
            self.active.log_written_out = end;
        }
        write.is_synced = self.durability == KvDurability::Sync;
        self.active.log_bytes = end;
        self.counts.wal_write_bytes += batch;
        self.counts.wal_syncs += u64::from(write.is_synced);
    }

    /// The log of the group in front is written.
    pub fn commit(&mut self) {
        for _ in 0..self.group {
            let writer = self.writers.pop_front().expect("a group is at the front");
            self.active.insert(writer.key, writer.key_bytes, writer.value_bytes);
        }
        self.committed += self.group as u64;
        self.group = 0;
    }

    /// Puts a new buffer in place of the full one; answers the log that is closed.
    fn switch(&mut self) -> Option<FileNo> {
        let log = (self.durability != KvDurability::None).then(|| self.new_file());
        let full = core::mem::replace(&mut self.active, Memtable::new(log));
        let old = full.log;
        self.full.push(full);
        old
    }
}
