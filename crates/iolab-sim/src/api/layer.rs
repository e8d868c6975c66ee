//! `Layer`: anything that takes bios and finishes them later: a queue, a volume, a device.

use iolab_model::error::Errno;
use iolab_model::{Ns, Sector, TraceEvent};

use super::bio::{Bio, Ended, ProcessId};

/// Promise of a device about data that it has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Acknowledged means durable; flushes are not needed (`write through`).
    Through,
    /// Acknowledged data are lost at a power cut until a flush (`write back`).
    Back {
        /// The device honours [`crate::Flags::FUA`] itself.
        has_fua: bool,
    },
}

/// Facts that the layer above has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Size.
    pub capacity: Sector,
    /// Most bios it takes at once; `u32::MAX` if it queues by itself without limit.
    pub depth: u32,
    /// Has a head that must travel.
    pub is_rotational: bool,
    /// Meaning of an acknowledged write.
    pub write_cache: WriteCache,
    /// Longest bio it takes, in sectors.
    pub max_sectors: u32,
    /// Bios must not cross a multiple of this many sectors; 0 if they may.
    pub chunk_sectors: u32,
    /// Understands [`crate::Operation::Discard`].
    pub can_discard: bool,
}

/// Something that went wrong in a layer and has to stand in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// `snake_case` and stable.
    pub code: &'static str,
    /// Time at which it happened; that of the first, if several are counted.
    pub at: Ns,
    /// Event and its place.
    pub message: String,
    /// Advice to the reader.
    pub hint: &'static str,
}

/// An errno in words, as the kernel's users read it.
pub fn reason(errno: Errno) -> String {
    std::io::Error::from_raw_os_error(errno.0).to_string()
}

/// Takes bios, finishes them later.
///
/// Time is an argument and never goes back. The caller promises to call [`Layer::advance`] with
/// `now` no later than [`Layer::next_event`]; a layer promises that every bio comes out of `done`
/// exactly once. Within an instant the order is: completions (an `advance` that finishes bios does
/// nothing else), then submissions of whoever was waiting for them, then timers and dispatching
/// (the next `advance` at the same instant). So a layer that has more to do at `now` answers
/// `now` from `next_event`.
pub trait Layer {
    /// Facts that the layer above has to know.
    fn info(&self) -> Info;

    /// Takes a bio; the caller respects [`Info::depth`], [`Info::max_sectors`] and the capacity.
    ///
    /// A bio that could end at once still ends in a later `advance` (at the same instant).
    fn submit(&mut self, now: Ns, bio: &Bio);

    /// Time of the next event of the layer itself; [`Ns::MAX`] if never.
    fn next_event(&self) -> Ns;

    /// Does what is due at `now` (not before [`Layer::next_event`]) and appends finished bios.
    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>);

    /// Tell whether it would refuse a command now (`QUEUE FULL`, `BLK_STS_RESOURCE`).
    ///
    /// Only a queue directly above asks. A layer that is busy has commands of that queue in
    /// flight, so a completion comes after which to ask again.
    fn is_busy(&self) -> bool {
        false
    }

    /// A process has ended; whoever waits for its next request need not.
    fn exited(&mut self, now: Ns, process: ProcessId) {
        let _ = (now, process);
    }

    /// Makes every sector hold data, as if they had been written long ago; before any bio.
    ///
    /// Only flash cares: reading what was never written touches no cell.
    fn age(&mut self) {}

    /// Keeps trace events from now on, where there is a queue; each takes the next number.
    fn record_events(&mut self, queues: &mut u16) {
        let _ = queues;
    }

    /// Takes the trace events kept so far; those of several queues are not in order.
    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        let _ = events;
    }

    /// Appends what went wrong here and below since the beginning.
    fn incidents(&self, list: &mut Vec<Incident>) {
        let _ = list;
    }

    /// Flat names and values of what was counted (bytes, seeks, cache hits, ...), for the record.
    fn counters(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}
