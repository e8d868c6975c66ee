//! The device of the recordings: one head that serves issued requests first come, first served.
//!
//! Its times are those of the service-time model behind the recorded device, see
//! tests/golden/dispatch/README.md: seek `0.8 ms + 9.2 ms * sqrt(distance / size)` (none if the next
//! byte follows), rotational wait from a 120 Hz angle with 1 MiB per track, 120 MB/s, everything
//! multiplied by a scale (which makes the angle turn faster). What is left out: threads of the
//! serving process that overtake each other (2 to 5 % of the recorded completions).

use std::collections::VecDeque;

use iolab_model::{Ns, Sector};
use serde::Deserialize;

use crate::api::bio::{Bio, BioId};
use crate::api::layer::{Info, Layer, WriteCache};

/// Least seek, in ns.
const SEEK_BASE: f64 = 800_000.0;
/// Seek over the whole device beyond the least, in ns.
const SEEK_SPAN: f64 = 9_200_000.0;
/// Duration of a turn (120 Hz), in ns.
const TURN: f64 = 1e9 / 120.0;
/// Sectors of a track (1 MiB).
const TRACK: u64 = 2_048;
/// Transfer time of a sector (120 MB/s), in ns.
const TRANSFER: f64 = 512.0 * 1e9 / 120e6;

/// What the description of a recording says of the device.
#[derive(Clone, Debug, Deserialize)]
pub struct DeviceModel {
    /// Only `hdd` is known.
    pub kind: String,
    /// Factor on all times.
    pub scale: f64,
    /// Size.
    pub size_mib: u64,
}

impl DeviceModel {
    /// Time to move from the end of one request to the beginning of another, in ns.
    pub fn seek(&self, from: Sector, to: Sector) -> f64 {
        let distance = from.0.abs_diff(to.0);
        if distance == 0 {
            return 0.0;
        }
        let share = distance as f64 / self.sectors() as f64;
        self.scale * (SEEK_BASE + SEEK_SPAN * share.sqrt())
    }

    /// Duration of a turn, in ns.
    pub fn turn(&self) -> f64 {
        self.scale * TURN
    }

    /// Time to move the data, in ns.
    pub fn transfer(&self, sectors: u32) -> f64 {
        self.scale * TRANSFER * f64::from(sectors)
    }

    const fn sectors(&self) -> u64 {
        self.size_mib * 2_048
    }
}

/// One head.
#[derive(Debug)]
pub struct OneHead {
    model: DeviceModel,
    overhead: f64,
    depth: u32,
    /// Served first to last, with the instant at which each ends.
    serving: VecDeque<(Ns, BioId)>,
    free_at: Ns,
    head: Sector,
}

impl OneHead {
    /// A device of the recorded model; `overhead` (ns) is added to every request.
    pub fn new(model: DeviceModel, depth: u32, overhead: f64) -> Self {
        let (serving, head) = (VecDeque::new(), Sector(0));
        Self { model, overhead, depth, serving, free_at: Ns(0), head }
    }

    fn service(&self, start: Ns, bio: &Bio) -> Ns {
        let seek = self.model.seek(self.head, bio.sector);
        let mut total = self.overhead + seek + self.model.transfer(bio.sectors);
        if bio.sector != self.head {
            let turn = self.model.turn();
            let turns = (start.0 as f64 + seek) / turn;
            let angle = turns - turns.floor();
            let target = (bio.sector.0 % TRACK) as f64 / TRACK as f64;
            let ahead = target - angle;
            total += turn * (ahead - ahead.floor());
        }
        Ns(total.max(0.0).round() as u64)
    }
}

impl Layer for OneHead {
    fn info(&self) -> Info {
        Info {
            capacity: Sector(self.model.sectors()),
            depth: self.depth,
            is_rotational: true,
            write_cache: WriteCache::Through,
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: false,
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let start = now.max(self.free_at);
        self.free_at = start + self.service(start, bio);
        self.head = bio.end();
        self.serving.push_back((self.free_at, bio.id));
    }

    fn next_event(&self) -> Ns {
        self.serving.front().map_or(Ns::MAX, |&(at, _)| at)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<BioId>) {
        while let Some((_, id)) = self.serving.pop_front_if(|entry| entry.0 <= now) {
            done.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bio::{Flags, Operation, Submitter};

    #[test]
    fn what_follows_costs_its_transfer_and_a_seek_its_root() {
        let model = DeviceModel { kind: "hdd".into(), scale: 0.2, size_mib: 512 };
        // A quarter of the size: 0.2 * (0.8 + 9.2 / 2) ms.
        assert!((model.seek(Sector(0), Sector(262_144)) - 1_080_000.0).abs() < 1e-6);
        let mut device = OneHead::new(model, 4, 0.0);
        let bio = Bio {
            id: BioId(0),
            operation: Operation::Read,
            sector: Sector(0),
            sectors: 256,
            flags: Flags::NONE,
            submitter: Submitter::default(),
        };
        device.submit(Ns(7), &bio);
        // 128 KiB at 120 MB/s, times 0.2, and no wait: the head stands at sector 0.
        assert_eq!(device.next_event(), Ns(7 + 218_453));
    }
}
