//! Yes-or-no facts about a queue, as bits.

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Mark {
    /// Serves reads and synchronous writes of processes (otherwise a shared queue of async writes).
    Sync = 1,
    /// Has never become busy.
    JustCreated = 2,
    /// Scheduled or in service, possibly empty.
    Busy = 4,
    /// In service, empty, and waited for.
    Awaited = 8,
    /// Expired empty; if a request comes soon it goes on as if it had not.
    Resumable = 16,
    /// The age of the oldest request was examined in this slot.
    AgeExamined = 32,
    /// Its process thinks briefly.
    ShortThink = 64,
    /// Its process is busy with I/O most of the time.
    IoBound = 128,
    /// Created in a large burst of queues.
    InLargeBurst = 256,
    /// Listed in the current burst.
    InBurstList = 512,
    /// Serves several processes.
    Shared = 1024,
    /// Shared but seeky: processes get queues of their own again.
    MustSplit = 2048,
    /// The start of the next soft real-time period is computed once nothing is in flight.
    SoftStartPending = 4096,
    /// The slot holds a queue.
    Live = 8192,
}

/// A set of facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    pub(super) const fn has(self, mark: Mark) -> bool {
        self.0 & mark as u16 != 0
    }

    pub(super) const fn add(&mut self, mark: Mark) {
        self.0 |= mark as u16;
    }

    pub(super) const fn remove(&mut self, mark: Mark) {
        self.0 &= !(mark as u16);
    }

    pub(super) const fn set(&mut self, mark: Mark, is_so: bool) {
        if is_so {
            self.add(mark);
        } else {
            self.remove(mark);
        }
    }
}
