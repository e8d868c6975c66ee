//! A store on a device that moves so many bytes a second, whoever asks, with clients that put one
//! record after the other.

use iolab_lsm::{
    Action, JobKind, Key, KeyLookup, LsmOptions, LsmStore, StoreCost, StoreJob, Ticket, WriterTurn,
};
use iolab_model::Ns;
use iolab_model::kv::KvDurability;

pub const KEY_BYTES: u64 = 23;
pub const VALUE_BYTES: u64 = 1140;

/// Merges that keep up with a client that puts a record every 4 us.
const COST: StoreCost = StoreCost {
    get: Ns(1_500),
    table: Ns(600),
    block: Ns(900),
    load: Ns(2_500),
    put: Ns(4_000),
    next: Ns(400),
    merge: Ns(2_000),
    compress_kib: Ns(0),
};

/// A number that looks random.
pub const fn scattered(number: u64) -> Key {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

struct Slot {
    kind: JobKind,
    job: Option<StoreJob>,
    busy_until: Ns,
}

/// The store, its device and its threads.
pub struct Bench {
    pub store: LsmStore,
    pub now: Ns,
    /// Time of a client between two records.
    pub pause: Ns,
    bytes_per_s: f64,
    sync_ns: u64,
    device_free: Ns,
    slots: Vec<Slot>,
    pub syncs: u64,
    /// Bytes that the device moved.
    pub moved_bytes: u64,
}

impl Bench {
    pub fn new(options: LsmOptions, durability: KvDurability, bytes_per_s: f64, sync: Ns) -> Self {
        let (flushes, compactions) = options.jobs();
        let slot = |kind| Slot { kind, job: None, busy_until: Ns(0) };
        let for_buffers = (0..flushes).map(|_| slot(JobKind::Flush));
        let for_tables = (0..compactions).map(|_| slot(JobKind::Compaction));
        Self {
            slots: for_buffers.chain(for_tables).collect(),
            store: LsmStore::new(options, durability, COST),
            now: Ns(0),
            pause: Ns(0),
            bytes_per_s,
            sync_ns: sync.0,
            device_free: Ns(0),
            syncs: 0,
            moved_bytes: 0,
        }
    }

    /// The device is busy with so many bytes; answers until when.
    fn device(&mut self, bytes: u64) -> Ns {
        self.moved_bytes += bytes;
        let cost = Ns((bytes as f64 * 1e9 / self.bytes_per_s) as u64);
        self.device_free = self.device_free.max(self.now) + cost;
        self.device_free
    }

    /// Lets the background threads do what they can now; answers when the next one is done.
    fn background(&mut self) -> Ns {
        let mut next = Ns::MAX;
        for index in 0..self.slots.len() {
            while self.slots[index].busy_until <= self.now {
                let kind = self.slots[index].kind;
                let mut job = match self.slots[index].job.take() {
                    Some(job) => job,
                    None => match self.store.take_job(kind) {
                        Some(job) => job,
                        None => break,
                    },
                };
                let Some(action) = job.next(&mut self.store) else { continue };
                self.slots[index].job = Some(job);
                self.slots[index].busy_until = match action {
                    Action::Read { bytes, .. } | Action::Append { bytes, .. } => self.device(bytes),
                    Action::Burn(time) => self.now + time,
                    _ => self.now,
                };
            }
            let slot = &self.slots[index];
            if slot.job.is_some() {
                next = next.min(slot.busy_until);
            }
        }
        next
    }

    /// Waits for the next thing that happens in the background.
    fn pass(&mut self, until: Ns) {
        let next = self.background().min(until);
        assert!(next < Ns::MAX, "nobody does anything");
        self.now = self.now.max(next);
        self.background();
    }

    /// Several clients put one record each; returns when all are done.
    pub fn put_all(&mut self, keys: &[Key]) {
        let tickets: Vec<Ticket> =
            keys.iter().map(|key| self.store.put(*key, KEY_BYTES, VALUE_BYTES)).collect();
        for ticket in tickets {
            loop {
                self.background();
                match self.store.turn(ticket, self.now) {
                    WriterTurn::Logged => break,
                    WriterTurn::Wait => self.pass(Ns::MAX),
                    WriterTurn::Until(instant) => self.pass(instant),
                    WriterTurn::Lead(write) => {
                        if write.bytes > 0 {
                            // The page cache takes it; the flusher writes it some time.
                            let device = self.device(write.bytes);
                            self.syncs += u64::from(write.is_synced);
                            if write.is_synced {
                                self.now = device + Ns(self.sync_ns);
                            }
                        }
                        self.store.commit();
                    }
                }
            }
        }
        self.now += self.store.cost().put + self.pause;
    }

    /// Puts records with scattered keys.
    pub fn load(&mut self, numbers: core::ops::Range<u64>) {
        for number in numbers {
            self.put_all(&[scattered(number)]);
        }
    }

    /// Lets all background work end.
    pub fn settle(&mut self) {
        loop {
            let next = self.background();
            if next == Ns::MAX {
                return;
            }
            self.now = self.now.max(next);
        }
    }

    /// Reads of a lookup.
    pub fn get(&mut self, key: Key) -> (bool, usize) {
        let mut lookup = KeyLookup::default();
        self.store.get(key, &mut lookup);
        let found = (lookup.records > 0, lookup.reads.len());
        self.store.release(&mut lookup);
        found
    }
}
