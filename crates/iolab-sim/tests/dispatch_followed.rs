//! bfq on the recordings whose closed-loop twins miss (docs/reference/sim.md).
//!
//! Here nothing but the scheduler is simulated: bios come when the recording says, and the k-th
//! request that is issued ends when the k-th recorded one did. What is compared is the order. So a
//! difference is one of the scheduler (or of the clock ticks and of the few microseconds of a
//! processor, which a recording does not tell), not of the device or of the processes.

use std::cell::RefCell;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use iolab_model::trace_event::Action;
use iolab_model::{Ns, Sector};
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::replay::{ByPlace, Recording, Row, direction_of};
use iolab_sim::{Bio, BioId, Ended, Info, Layer, WriteCache};

const EPOCH: Ns = Ns::from_seconds(1_000);

/// Linux include/linux/blkdev.h: `BLK_MAX_SEGMENTS`, which the loop driver does not change.
const SEGMENTS_MAX: u32 = 128;

fn recording(name: &str) -> Recording {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let packed = std::fs::File::open(golden.join(format!("{name}.csv.gz"))).unwrap();
    let mut csv = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut csv).unwrap();
    let setup = std::fs::read_to_string(golden.join(format!("{name}.json"))).unwrap();
    Recording::parse(name, &csv, &setup).unwrap()
}

/// A device whose k-th request ends at the k-th of the given instants.
#[derive(Debug)]
struct Scripted {
    ends: Vec<Ns>,
    serving: Vec<(Ns, BioId)>,
    issued: Rc<RefCell<Vec<Sector>>>,
    depth: u32,
}

impl Layer for Scripted {
    fn info(&self) -> Info {
        Info {
            capacity: Sector(1 << 20),
            depth: self.depth,
            is_rotational: true,
            write_cache: WriteCache::Through,
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: false,
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let mut issued = self.issued.borrow_mut();
        let end = self.ends.get(issued.len()).map_or(now, |&end| end.max(now));
        issued.push(bio.sector);
        self.serving.push((end, bio.id));
    }

    fn next_event(&self) -> Ns {
        self.serving.iter().map(|&(at, _)| at).min().unwrap_or(Ns::MAX)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        done.extend(
            self.serving.iter().filter(|&&(at, _)| at <= now).map(|&(_, id)| Ended::ok(id)),
        );
        self.serving.retain(|&(at, _)| at > now);
    }
}

/// First sectors in the order of issue, and when each ended.
fn issues(rows: &[Row]) -> (Vec<Sector>, Vec<Ns>) {
    let (mut sectors, mut ends, mut open) = (Vec::new(), Vec::new(), ByPlace::default());
    for row in rows {
        if row.action == Action::Issued {
            open.add((direction_of(&row.bio), row.bio.sector), ends.len());
            sectors.push(row.bio.sector);
            ends.push(Ns(0));
        } else if row.action == Action::Completed
            && let Some(index) = open.take_oldest((direction_of(&row.bio), row.bio.sector))
        {
            ends[index] = EPOCH + row.at;
        }
    }
    (sectors, ends)
}

/// Bios with the instants at which they came to the scheduler, or were submitted if that took long.
fn arrivals(rows: &[Row]) -> Vec<(Ns, Bio)> {
    let at = |index: usize| {
        let row = &rows[index];
        let enters = |later: &&Row| {
            let action = later.action;
            let is_entry = action == Action::Inserted || action == Action::BackMerged;
            is_entry && later.bio.sector == row.bio.sector
        };
        let entry = rows[index..].iter().take(40).find(enters).map(|later| later.at);
        EPOCH + entry.filter(|at| at.since(row.at) < Ns::from_us(100)).unwrap_or(row.at)
    };
    let queued = (0..rows.len()).filter(|&index| rows[index].action == Action::Queued);
    let mut all: Vec<(Ns, Bio)> = queued.map(|index| (at(index), rows[index].bio)).collect();
    all.sort_by_key(|&(at, _)| at);
    all
}

/// Recorded and simulated order of issue.
fn follow(name: &str) -> (Vec<Sector>, Vec<Sector>) {
    let recording = recording(name);
    let setup = &recording.setup;
    let (recorded, ends) = issues(&recording.rows);
    let issued = Rc::new(RefCell::new(Vec::new()));
    let depth = setup.driver_queue_depth;
    let device = Scripted { ends, serving: Vec::new(), issued: Rc::clone(&issued), depth };
    let tunables = setup.tunables.iter();
    let parameters = QueueParameters {
        scheduler: setup.scheduler,
        tunables: tunables.filter_map(|(name, v)| Some((name.clone(), v.parse().ok()?))).collect(),
        nr_requests: Some(setup.nr_requests),
        max_sectors_kb: setup.max_sectors_kb,
        max_segments: Some(SEGMENTS_MAX),
        hz: setup.hz,
        cpus: setup.cpus,
        rotational: Some(setup.rotational != 0),
        ..QueueParameters::default()
    };
    let attached = Ns(EPOCH.0 - 1_000_000_000);
    let mut queue = BlockQueue::new(attached, &parameters, Box::new(device)).unwrap();
    let (mut done, mut ids) = (Vec::new(), 0..);
    let mut bios = arrivals(&recording.rows).into_iter().peekable();
    loop {
        let now = bios.peek().map_or(Ns::MAX, |&(at, _)| at).min(queue.next_event());
        if now == Ns::MAX {
            break;
        }
        while let Some((_, bio)) = bios.next_if(|&(at, _)| at <= now) {
            queue.submit(now, &Bio { id: BioId(ids.next().unwrap()), ..bio });
        }
        if queue.next_event() <= now {
            queue.advance(now, &mut done);
        }
        done.clear();
    }
    drop(queue);
    let simulated = issued.take();
    (recorded, simulated)
}

/// Share of the issues that the simulation makes at most so many places away.
fn agreement(orders: &(Vec<Sector>, Vec<Sector>), places: usize) -> f64 {
    let (recorded, simulated) = orders;
    let is_near = |&index: &usize| {
        let until = (index + places + 1).min(simulated.len());
        simulated[index.saturating_sub(places).min(until)..until].contains(&recorded[index])
    };
    (0..recorded.len()).filter(is_near).count() as f64 / recorded.len() as f64
}

/// The twins of both recordings miss (see `dispatch_recordings.rs`), bfq itself does not: once the
/// queues of the readers are merged for good, not one issue differs; before, nearly all of them
/// come at most eight places away (one queue serves a reader before the writer, not after it).
#[test]
fn bfq_issues_as_recorded_once_the_queues_of_sync_are_merged() {
    // The last issue that differs, and the shares at the same place and up to eight places away.
    for (name, last, same, near) in [
        ("dispatch/sync-bfq", 1_536, 0.655, 0.969),
        ("dispatch-own/again-sync-bfq", 340, 0.914, 0.977),
    ] {
        let orders = follow(name);
        assert_eq!(orders.0.len(), orders.1.len());
        let differs = |index: &usize| orders.0[*index] != orders.1[*index];
        let found = (0..orders.0.len()).rfind(differs);
        let shares = (agreement(&orders, 0), agreement(&orders, 8));
        println!("{name}: {} issues, last difference {found:?}, {shares:.3?}", orders.0.len());
        assert_eq!(found, Some(last), "{name}");
        assert!((shares.0 - same).abs() < 0.001 && (shares.1 - near).abs() < 0.001, "{name}");
    }
}

/// Not explained: where processes with several bios at once compete, the orders part within a dozen
/// issues, when the device stands still and several raised queues are equally urgent, and hardly
/// meet again. Figures (`dispatch_recordings.rs`) agree for the first of these recordings, not for
/// the second.
#[test]
fn bfq_takes_another_way_on_the_recordings_of_mixed() {
    for (name, first) in [("dispatch/mixed-bfq", 7), ("dispatch-own/again-mixed-bfq", 11)] {
        let orders = follow(name);
        let found = orders.0.iter().zip(&orders.1).position(|(recorded, ours)| recorded != ours);
        println!("{name}: first difference {found:?}, {:.3}", agreement(&orders, 0));
        assert_eq!(found, Some(first), "{name}");
        assert!(agreement(&orders, 0) < 0.05, "{name}");
    }
}
