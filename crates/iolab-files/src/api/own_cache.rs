//! Caches and queues of file systems that bring their own: records instead of pages, data that
//! leave by the file system's jobs alone, and a queue in front of each device.

use iolab_model::Ns;

use crate::readahead::zfetch::FetchRules;

/// Meaning of a direct read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// Opening a file so is refused.
    Refused,
    /// None: it goes through the cache like any other.
    Cached,
    /// Reads go past the cache, writes through it.
    Reads,
}

/// A cache of a file system's own. Its unit is [`super::file_system::Facts::cache_unit_bytes`]: it
/// is read and written whole. Dirty data leave by jobs of the file system alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCache {
    /// Most bytes that it holds.
    pub bytes: u64,
    /// Data stay in it after they were read.
    pub keeps_data: bool,
    /// Meaning of direct transfers.
    pub direct: DirectIo,
    /// Reading of records before they are asked for; none: switched off.
    pub fetch: Option<FetchRules>,
}

/// Answer to a writer that asks for room in the transaction that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Go,
    /// Sleep once, then go on.
    Sleep(Ns),
    /// Ask again when a job has begun or ended, or data were written.
    Wait,
}

/// Class of a request in the queue in front of a device. The order is that of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueClass {
    /// Read that somebody waits for.
    SyncRead,
    /// Write that somebody waits for (log, labels).
    SyncWrite,
    /// Read before it is asked for.
    AsyncRead,
    /// Written by a transaction.
    AsyncWrite,
}

/// Order in which a queue in front of a device lets requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// One list by time and priority, with limits of its own (`ZFS` before 0.6.3).
    Deadline {
        /// A request goes at once while fewer are active.
        min_pending: u32,
        /// Most that are active.
        max_pending: u32,
        /// Requests that the end of one lets go.
        ramp_rate: u32,
        /// A tick of the clock.
        tick: Ns,
        /// Ticks, as a power of two, that count as one step of priority.
        time_shift: u32,
    },
    /// A list for each class, with limits for each.
    Classes {
        /// Least and most active requests, in the order of [`QueueClass`].
        active: [(u32, u32); 4],
        /// Share of dirty data at which writes of transactions rise from the least to the most,
        /// in percent.
        ramp: (u64, u64),
        /// Dirty data at which writers stop.
        dirty_max: u64,
    },
}

/// A queue of the file system's own in front of each device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceQueue {
    /// Order of requests.
    pub order: QueueOrder,
    /// Longest aggregated request.
    pub aggregation_bytes: u64,
    /// Holes that an aggregated read bridges.
    pub read_gap_bytes: u64,
}
