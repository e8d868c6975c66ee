//! The device of the recordings: one head that serves issued requests first come, first served.
//!
//! Its times are those of the service-time model behind the recorded device, see
//! tests/golden/dispatch/README.md: seek `0.8 ms + 9.2 ms * sqrt(distance / size)` (none if the
//! next byte follows), rotational wait from a 120 Hz angle with 1 MiB per track, 120 MB/s,
//! everything multiplied by a scale (which makes the angle turn faster). What is left out: threads
//! of the serving process that overtake each other (0.6 to 11 % of the recorded completions).

use std::collections::{BTreeMap, VecDeque};

use iolab_model::trace_event::Action;
use iolab_model::{Ns, Sector};
use serde::{Deserialize, Serialize};

use super::recording::Row;
use crate::api::bio::{Bio, BioId, Ended, Operation};
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

/// Device in the description of a recording.
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

/// Parameters of the device of a recording that the model does not give: where its angle stood, and
/// what a request costs beyond the model (hand-over to the serving process, and its stalls).
#[derive(Clone, Copy, Debug, Default, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ReplayFit")]
pub struct Fit {
    /// Angle at time 0, in turns.
    pub phase: f64,
    /// Mean time beyond the model, in ns.
    pub overhead_ns: f64,
    /// Mean time of a flush, in ns; 0 if the recording has none.
    pub flush_ns: f64,
}

/// A recorded service: from where to where, when, how long.
#[derive(Clone, Copy, Debug)]
struct Service {
    from: Sector,
    to: Sector,
    sectors: u32,
    start: Ns,
    duration: Ns,
}

/// Angles that are tried.
const PHASES: u32 = 400;

impl Fit {
    /// Measures both: the angle at which the typical error is least, and the mean error there.
    pub fn of(rows: &[Row], model: &DeviceModel) -> Self {
        let services = services(rows);
        let errors = |phase: f64| -> Vec<f64> {
            let fit = Self { phase, ..Self::default() };
            services.iter().map(|s| s.duration.0 as f64 - fit.service(model, s)).collect()
        };
        let typical = |phase: f64| {
            let mut sizes: Vec<f64> = errors(phase).iter().map(|error| error.abs()).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
        };
        let phases = (0..PHASES).map(|step| f64::from(step) / f64::from(PHASES));
        let tried = phases.map(|phase| (typical(phase), phase));
        let (_, phase) = tried.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
        let errors = errors(phase);
        let mean = errors.iter().sum::<f64>() / (errors.len() as f64).max(1.0);
        Self { phase, overhead_ns: mean.max(0.0), flush_ns: flush_time(rows) }
    }

    /// The same device on a clock that shows `epoch` where the recording's shows 0.
    #[must_use]
    pub fn shifted(&self, epoch: Ns, turn: f64) -> Self {
        Self { phase: self.phase - epoch.0 as f64 / turn, ..*self }
    }

    fn service(&self, model: &DeviceModel, service: &Service) -> f64 {
        let seek = model.seek(service.from, service.to);
        let mut total = self.overhead_ns + seek + model.transfer(service.sectors);
        if service.from != service.to {
            let turn = model.turn();
            let angle = (service.start.0 as f64 + seek) / turn + self.phase;
            let target = (service.to.0 % TRACK) as f64 / TRACK as f64;
            let ahead = target - angle;
            total += turn * (ahead - ahead.floor());
        }
        total
    }
}

/// Mean time from the issue of a flush to its end; 0 without flushes.
fn flush_time(rows: &[Row]) -> f64 {
    let (mut begun, mut sum, mut count) = (VecDeque::new(), 0, 0_u32);
    for row in rows.iter().filter(|row| row.bio.operation == Operation::Flush) {
        if row.action == Action::Issued {
            begun.push_back(row.at);
        } else if row.action == Action::Completed
            && let Some(at) = begun.pop_front()
        {
            sum += row.at.since(at).0;
            count += 1;
        }
    }
    sum as f64 / f64::from(count.max(1))
}

/// Services of the recorded device, one after the other; flushes are none of them.
fn services(rows: &[Row]) -> Vec<Service> {
    let mut issued: BTreeMap<Sector, Ns> = BTreeMap::new();
    let mut last: Option<&Row> = None;
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.bio.operation != Operation::Flush) {
        if row.action == Action::Issued {
            issued.insert(row.bio.sector, row.at);
        }
        if row.action != Action::Completed {
            continue;
        }
        if let (Some(before), Some(&at)) = (last, issued.get(&row.bio.sector)) {
            let start = at.max(before.at);
            all.push(Service {
                from: before.bio.end(),
                to: row.bio.sector,
                sectors: row.bio.sectors,
                start,
                duration: row.at.since(start),
            });
        }
        last = Some(row);
    }
    all
}

/// One head.
#[derive(Debug)]
pub struct OneHead {
    model: DeviceModel,
    fit: Fit,
    depth: u32,
    /// Served first to last, with the instant at which each ends.
    serving: VecDeque<(Ns, BioId)>,
    /// Flushes, which the head does not take part in.
    flushing: VecDeque<(Ns, BioId)>,
    free_at: Ns,
    head: Sector,
}

impl OneHead {
    /// A device of the recorded model.
    pub const fn new(model: DeviceModel, depth: u32, fit: Fit) -> Self {
        Self {
            model,
            fit,
            depth,
            serving: VecDeque::new(),
            flushing: VecDeque::new(),
            free_at: Ns(0),
            head: Sector(0),
        }
    }
}

impl Layer for OneHead {
    fn info(&self) -> Info {
        Info {
            capacity: Sector(self.model.sectors()),
            depth: self.depth,
            is_rotational: true,
            write_cache: if self.fit.flush_ns > 0.0 {
                WriteCache::Back { has_fua: false }
            } else {
                WriteCache::Through
            },
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: false,
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        if bio.operation == Operation::Flush {
            let end = now + Ns(self.fit.flush_ns.round() as u64);
            self.flushing.push_back((end, bio.id));
            return;
        }
        let start = now.max(self.free_at);
        let (from, to, sectors) = (self.head, bio.sector, bio.sectors);
        let service = Service { from, to, sectors, start, duration: Ns(0) };
        let duration = self.fit.service(&self.model, &service);
        self.free_at = start + Ns(duration.max(0.0).round() as u64);
        self.head = bio.end();
        self.serving.push_back((self.free_at, bio.id));
    }

    fn next_event(&self) -> Ns {
        let first = |list: &VecDeque<(Ns, BioId)>| list.front().map_or(Ns::MAX, |&(at, _)| at);
        first(&self.serving).min(first(&self.flushing))
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        for list in [&mut self.serving, &mut self.flushing] {
            while let Some(&(at, id)) = list.front()
                && at <= now
            {
                list.pop_front();
                done.push(Ended::ok(id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bio::{Flags, Submitter};

    #[test]
    fn what_follows_costs_its_transfer_and_a_seek_its_root() {
        let model = DeviceModel { kind: "hdd".into(), scale: 0.2, size_mib: 512 };
        // A quarter of the size: 0.2 * (0.8 + 9.2 / 2) ms.
        assert!((model.seek(Sector(0), Sector(262_144)) - 1_080_000.0).abs() < 1e-6);
        let mut device = OneHead::new(model, 4, Fit::default());
        let bio = Bio {
            id: BioId(0),
            operation: Operation::Read,
            sector: Sector(0),
            sectors: 256,
            flags: Flags::NONE,
            submitter: Submitter::default(),
            segments: 0,
        };
        device.submit(Ns(7), &bio);
        // 128 KiB at 120 MB/s, times 0.2, and no wait: the head stands at sector 0.
        assert_eq!(device.next_event(), Ns(7 + 218_453));
    }
}
