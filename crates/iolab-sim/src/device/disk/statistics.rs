//! Counters of a drive: bytes by kind, time by phase.
//!
//! Two sums hold exactly and are tested. Bytes: what the host read is what came from the media for
//! it plus what the caches held; what it wrote is on the media, dirty, or was overwritten in the
//! cache. Time: the mechanism's busy time is overhead, seek, rotation, transfer and bus.

use iolab_model::Ns;

/// The phases of one use of the mechanism.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    /// Command overhead.
    pub overhead: u64,
    /// Seek, head switch, settling.
    pub seek: u64,
    /// Wait for the angle.
    pub rotation: u64,
    /// Media transfer, changes of track included.
    pub transfer: u64,
    /// Rest of the bus transfer.
    pub bus: u64,
    /// The arm moved.
    pub has_moved: bool,
}

impl Service {
    /// The sum of the phases.
    pub const fn total(&self) -> Ns {
        Ns(self.overhead + self.seek + self.rotation + self.transfer + self.bus)
    }
}

/// Running totals; sectors are media sectors.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Sums over phases.
    pub phases: Service,
    /// Time of the mechanism in use.
    pub busy: u64,
    /// Time of the electronics in use.
    pub electronics_busy: u64,
    /// Movements of the arm.
    pub seeks: u64,
    /// Commands of each kind: reads, writes, flushes.
    pub commands: [u64; 3],
    /// Sectors that the host read.
    pub read: u64,
    /// Sectors that the host wrote.
    pub written: u64,
    /// Sectors read from the media for commands.
    pub media_read: u64,
    /// Sectors read ahead.
    pub read_ahead: u64,
    /// Sectors written to the media.
    pub media_written: u64,
    /// Sectors that a cache answered (read ahead or dirty).
    pub hit: u64,
    /// Sectors overwritten in the write cache.
    pub absorbed: u64,
    /// Reads answered by a cache alone.
    pub full_hits: u64,
    /// Reads of which a part was there or was passing under the head.
    pub partial_hits: u64,
    /// Writes of dirty extents to the media.
    pub destages: u64,
    /// Writes that had to wait for room in the cache.
    pub held_writes: u64,
}

impl Statistics {
    /// Adds one use of the mechanism.
    pub fn add(&mut self, service: &Service) {
        self.phases.overhead += service.overhead;
        self.phases.seek += service.seek;
        self.phases.rotation += service.rotation;
        self.phases.transfer += service.transfer;
        self.phases.bus += service.bus;
        self.busy += service.total().0;
        self.seeks += u64::from(service.has_moved);
    }

    /// Flat names and values; `media_sector` is its size in bytes.
    pub fn list(&self, media_sector: u64, dirty: u64) -> Vec<(String, f64)> {
        let bytes = |sectors: u64| (sectors * media_sector) as f64;
        let row = |name: &str, value: f64| (name.to_owned(), value);
        vec![
            row("reads", self.commands[0] as f64),
            row("writes", self.commands[1] as f64),
            row("flushes", self.commands[2] as f64),
            row("read_bytes", bytes(self.read)),
            row("written_bytes", bytes(self.written)),
            row("media_read_bytes", bytes(self.media_read)),
            row("read_ahead_bytes", bytes(self.read_ahead)),
            row("media_written_bytes", bytes(self.media_written)),
            row("cache_hit_bytes", bytes(self.hit)),
            row("absorbed_bytes", bytes(self.absorbed)),
            row("dirty_bytes", bytes(dirty)),
            row("cache_hits", self.full_hits as f64),
            row("cache_partial_hits", self.partial_hits as f64),
            row("destages", self.destages as f64),
            row("held_writes", self.held_writes as f64),
            row("seeks", self.seeks as f64),
            row("busy_ns", self.busy as f64),
            row("electronics_busy_ns", self.electronics_busy as f64),
            row("overhead_ns", self.phases.overhead as f64),
            row("seek_ns", self.phases.seek as f64),
            row("rotation_ns", self.phases.rotation as f64),
            row("transfer_ns", self.phases.transfer as f64),
            row("bus_ns", self.phases.bus as f64),
        ]
    }
}
