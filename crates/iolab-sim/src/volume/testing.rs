//! Members that write down what they are asked, and a host that drives a volume: for tests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed};

use super::{VolumeKind, VolumeParameters, build};
use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::{Info, Layer, WriteCache};

/// One line of the log: a command reached a member or ended there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) at: Ns,
    pub(super) member: u16,
    pub(super) bio: Bio,
    pub(super) is_end: bool,
}

pub(super) type Log = Rc<RefCell<Vec<Line>>>;

/// A member with random service times that logs.
pub(super) struct Recorder {
    pub(super) info: Info,
    member: u16,
    log: Log,
    latency: Stream,
    latency_max: u64,
    in_flight: u32,
    running: Calendar<Bio>,
}

impl Recorder {
    pub(super) fn new(member: u16, capacity: u64, log: &Log) -> Self {
        let info = Info {
            capacity: Sector(capacity),
            depth: 4,
            is_rotational: true,
            write_cache: WriteCache::Through,
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: true,
        };
        let latency = Seed(5).stream("recorder", u64::from(member));
        let (log, running) = (Rc::clone(log), Calendar::default());
        Self { info, member, log, latency, latency_max: 100_000, in_flight: 0, running }
    }

    fn note(&self, at: Ns, bio: Bio, is_end: bool) {
        self.log.borrow_mut().push(Line { at, member: self.member, bio, is_end });
    }
}

impl Layer for Recorder {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        assert!(self.in_flight < self.info.depth, "the depth of member {}", self.member);
        assert!(bio.sectors <= self.info.max_sectors, "{bio:?} is too long");
        assert!(bio.end() <= self.info.capacity, "{bio:?} is beyond the end");
        assert!(bio.sectors > 0 || bio.operation == Operation::Flush, "{bio:?} is empty");
        let chunk = u64::from(self.info.chunk_sectors);
        if chunk > 0 && bio.sectors > 0 {
            assert_eq!(bio.sector.0 / chunk, (bio.end().0 - 1) / chunk, "{bio:?} crosses");
        }
        self.in_flight += 1;
        self.note(now, *bio, false);
        let latency = Ns(1_000 + self.latency.below(self.latency_max));
        self.running.plan(now + latency, *bio);
    }

    fn next_event(&self) -> Ns {
        self.running.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        while let Some((_, bio)) = self.running.take_due(now) {
            self.note(now, bio, true);
            self.in_flight -= 1;
            done.push(Ended::ok(bio.id));
        }
    }
}

/// Parameters with a unit given in sectors, the rest default.
pub(super) fn parameters(layout: VolumeKind, unit: u64) -> VolumeParameters {
    let unit_bytes = match layout {
        VolumeKind::Single | VolumeKind::Raid1 => None,
        _ => Some(unit * 512),
    };
    VolumeParameters { unit_bytes, ..VolumeParameters::new(layout) }
}

/// A volume over recorders, and their log.
pub(super) fn recorded(
    parameters: &VolumeParameters,
    members: u16,
    capacity: u64,
    adjust: impl Fn(u16, &mut Info),
) -> (Box<dyn Layer>, Log) {
    let log = Log::default();
    let recorder = |member| {
        let mut recorder = Recorder::new(member, capacity, &log);
        adjust(member, &mut recorder.info);
        Box::new(recorder) as Box<dyn Layer>
    };
    let layers = (0..members).map(recorder).collect();
    (build(layers, parameters).expect("the volume can be built"), log)
}

/// A bio from the test's only process.
pub(super) fn bio(id: u32, operation: Operation, sector: u64, sectors: u32) -> Bio {
    let (flags, submitter) = (Flags::NONE, Submitter::default());
    Bio { id: BioId(id), operation, sector: Sector(sector), sectors, flags, submitter, segments: 0 }
}

/// Runs until nothing is left; answers with the instant at which each bio was done, and checks
/// that each was done exactly once.
pub(super) fn run(volume: &mut dyn Layer, arrivals: &[(Ns, Bio)]) -> BTreeMap<u32, Ns> {
    let mut finished = BTreeMap::new();
    let mut arrivals = arrivals.iter().peekable();
    let mut expected = 0;
    let mut done = Vec::new();
    loop {
        let arrival = arrivals.peek().map_or(Ns::MAX, |(at, _)| *at);
        let event = volume.next_event();
        let now = arrival.min(event);
        if now == Ns::MAX {
            break;
        }
        if event <= now {
            volume.advance(now, &mut done);
            for Ended { id, .. } in done.drain(..) {
                assert!(finished.insert(id.0, now).is_none(), "{id:?} was done twice");
            }
        }
        while let Some((_, bio)) = arrivals.next_if(|(at, _)| *at <= now) {
            volume.submit(now, bio);
            expected += 1;
        }
    }
    assert_eq!(finished.len(), expected, "some bios were never done");
    finished
}

/// The value of a counter.
pub(super) fn counter(volume: &dyn Layer, name: &str) -> u64 {
    let counters = volume.counters();
    let found = counters.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no counter {name} in {counters:?}")).1 as u64
}

/// (reads, writes) of all members.
pub(super) fn commands(log: &Log) -> (usize, usize) {
    let log = log.borrow();
    let count = |operation| {
        log.iter().filter(|line| !line.is_end && line.bio.operation == operation).count()
    };
    (count(Operation::Read), count(Operation::Write))
}
