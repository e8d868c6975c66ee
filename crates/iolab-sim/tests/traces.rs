//! Laws of traces on simulated ones: random stacks under random work, their events written into a
//! file, read back and paired.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use iolab_model::{Ns, Sector, Seed, TraceEvent};
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, ProcessId, Submitter, device};
use iolab_trace::convert::{Output, convert};
use iolab_trace::error::Caveat;
use iolab_trace::event::{Action, Categories};
use iolab_trace::native::Reader;
use iolab_trace::simulated::{self, SimulatedFile};
use iolab_trace::source::{Facts, Window};
use iolab_trace::stages::{By, Pairing, Report, Rules, Stage};
use iolab_trace::{Error, Event, Input, Source, format};
use proptest::prelude::*;

const EPOCH: Ns = Ns::from_seconds(1_000);
/// Longest bio; places that are this far apart never overlap.
const SECTORS_MAX: u64 = 64;

#[derive(Clone, Debug)]
struct Work {
    scheduler: SchedulerKind,
    device: &'static str,
    bios: u32,
    in_flight: u32,
    processes: u32,
    max_sectors_kb: Option<u32>,
    refuse_every: u32,
    seed: u64,
}

fn work() -> impl Strategy<Value = Work> {
    let scheduler = prop::sample::select(SchedulerKind::ALL.to_vec());
    let device = prop::sample::select(vec!["fixed-100us", "sata7200-4tb", "scsi10k-1998-nvram"]);
    let limits = (prop::sample::select(vec![None, Some(4), Some(16)]), 0_u32..8);
    let counts = (20_u32..150, 1_u32..40, 1_u32..5, any::<u64>());
    (scheduler, device, limits, counts).prop_map(|(scheduler, device, limits, counts)| {
        let (max_sectors_kb, refuse_every) = limits;
        let (bios, in_flight, processes, seed) = counts;
        Work { scheduler, device, bios, in_flight, processes, max_sectors_kb, refuse_every, seed }
    })
}

/// Places to which the next bio of a process goes: behind its last one, or to a place of its own
/// that no other bio ever has.
struct Places {
    fresh: u64,
    last_end: BTreeMap<u32, u64>,
    used: BTreeSet<u64>,
}

impl Places {
    fn next(&mut self, process: u32, draw: u64, sectors: u64) -> u64 {
        let behind = self.last_end.get(&process).copied();
        let is_behind = draw & 1 == 0;
        let sector =
            match behind.filter(|end| is_behind && end % SECTORS_MAX + sectors <= SECTORS_MAX) {
                Some(end) if end % SECTORS_MAX != 0 => end,
                _ => loop {
                    self.fresh += 1 + (draw >> 32) % 97;
                    if self.used.insert(self.fresh) {
                        break self.fresh * SECTORS_MAX;
                    }
                },
            };
        self.last_end.insert(process, sector + sectors);
        sector
    }
}

/// Runs all bios; the events, and the bytes that were read and written.
fn run(work: &Work) -> (Vec<TraceEvent>, [u64; 2]) {
    let profile = device::profile(work.device, &BTreeMap::new()).unwrap();
    let below = device::build(&profile, Seed(3), "d0").unwrap();
    let parameters = QueueParameters {
        scheduler: work.scheduler,
        refuse_every: work.refuse_every,
        max_sectors_kb: work.max_sectors_kb,
        cpus: 2,
        ..QueueParameters::default()
    };
    let mut queue = BlockQueue::new(Ns(0), &parameters, below).unwrap();
    queue.record_events(&mut 0);
    let mut random = Seed(work.seed).stream("traces", 0);
    let mut places = Places { fresh: 0, last_end: BTreeMap::new(), used: BTreeSet::new() };
    let (mut next, mut waiting, mut bytes) = (0, 0, [0; 2]);
    let (mut now, mut done, mut events) = (EPOCH, Vec::new(), Vec::new());
    while next < work.bios || waiting > 0 {
        while next < work.bios && waiting < work.in_flight {
            let draw = random.next_u64();
            let sectors = 8 << (draw >> 60 & 3);
            let (process, is_write) = (next % work.processes, draw & 2 != 0);
            let barrier = if is_write && (draw >> 8).is_multiple_of(16) {
                Flags::PREFLUSH.with(Flags::FUA)
            } else {
                Flags::NONE
            };
            let bio = Bio {
                id: BioId(next),
                operation: if is_write { Operation::Write } else { Operation::Read },
                sector: Sector(places.next(process, draw, sectors)),
                sectors: sectors as u32,
                flags: if draw & 4 == 0 { barrier.with(Flags::SYNC) } else { barrier },
                submitter: Submitter {
                    process: ProcessId(process + 1),
                    cpu: (process % 2) as u16,
                    ..Submitter::default()
                },
                segments: 0,
            };
            bytes[usize::from(is_write)] += sectors * 512;
            queue.submit(now, &bio);
            (next, waiting) = (next + 1, waiting + 1);
        }
        now = now.max(queue.next_event());
        assert!(now < EPOCH + Ns::from_seconds(3_600), "no end in sight");
        queue.advance(now, &mut done);
        waiting -= done.drain(..).filter(|Ended { status, .. }| status.is_ok()).count() as u32;
        // Taken piece by piece, as while a trial goes on.
        if now.0.is_multiple_of(3) {
            queue.take_events(&mut events);
        }
    }
    queue.take_events(&mut events);
    (events, bytes)
}

/// Number of every so many events behind which one of another layer stands.
const POINT_EVERY: usize = 5;

/// The events of a file with some of other layers between them.
fn with_points(file: &[u8]) -> Vec<Event> {
    let (mut source, mut event, mut events) = (reader(file), Event::default(), Vec::new());
    while source.next(&mut event).unwrap() {
        events.push(event.clone());
        if events.len() % POINT_EVERY == 0 {
            let mut point = Event {
                action: Action::Point,
                categories: Categories::of_action(Action::Point),
                time_ns: event.time_ns,
                pid: event.pid,
                cpu: event.cpu,
                ..Event::default()
            };
            let text = format!("syscalls:sys_enter_pwrite64 fd=3 count={}", events.len());
            point.payload.extend_from_slice(text.as_bytes());
            events.push(point);
        }
    }
    events
}

/// Events that are there already.
struct Given(std::vec::IntoIter<Event>);

impl Source for Given {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        let next = self.0.next();
        Ok(next.map(|next| *event = next).is_some())
    }

    fn caveats(&self) -> &[Caveat] {
        &[]
    }
}

/// The events in a format and back.
fn there_and_back(events: Vec<Event>, output: Output) -> Box<dyn Source> {
    let mut bytes = Vec::new();
    let mut sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    convert(&mut Given(events.into_iter()), output, &Facts::new(), &mut sink).unwrap();
    format::open(vec![Input::new("t", Cursor::new(bytes))]).unwrap().1
}

/// Texts of the events of other layers.
fn points(source: &mut dyn Source) -> Vec<Vec<u8>> {
    let (mut event, mut found) = (Event::default(), Vec::new());
    while source.next(&mut event).unwrap() {
        if event.action == Action::Point {
            found.push(event.payload.clone());
        }
    }
    found
}

/// The events as a file.
fn filed(events: &[TraceEvent]) -> Vec<u8> {
    let mut recording = SimulatedFile::begin(&Facts::new(), 1, false).unwrap();
    let mut file = Vec::new();
    for piece in events.chunks(100) {
        recording.add(piece).unwrap();
        file.append(recording.buffer());
    }
    file.extend(recording.finish().unwrap());
    file
}

fn reader(file: &[u8]) -> Reader {
    Reader::open(Window::new(Input::new("t.iotrace", Cursor::new(file.to_vec())))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every byte that a stack was asked for comes out of its queue once, and the integral of the
    /// number of bios over time is the sum of their times (Little's law).
    #[test]
    fn simulated_traces_conserve_bytes_and_obey_littles_law(
        work in work(),
        by in prop::sample::select(By::ALL),
    ) {
        let (events, bytes) = run(&work);
        let mut source = reader(&filed(&events));
        let pairing = Pairing::of(&mut source, Rules::Own, by).unwrap();
        prop_assert!(source.caveats().is_empty());
        let report = Report::of(&pairing);
        prop_assert_eq!(report.devices.len(), 1);
        let device = &report.devices[0];
        prop_assert_eq!([0, 1].map(|it| device.counts.queued[it].bytes), bytes);
        prop_assert_eq!(device.counts.completed.bytes, bytes[0] + bytes[1]);
        prop_assert_eq!(device.counts.issued.bytes, bytes[0] + bytes[1]);
        prop_assert_eq!((device.counts.completed_unknown, device.counts.forgotten), (0, 0));
        let row = |stage| report.stages.iter().find(|row| row.stage == stage).unwrap();
        prop_assert_eq!(row(Stage::Q2C).count, u64::from(work.bios) + device.counts.splits);
        let activity = &pairing.devices[0].activity;
        prop_assert_eq!(activity.outstanding.integral, u128::from(row(Stage::Q2C).sum_ns));
        prop_assert_eq!((activity.outstanding.now, activity.in_flight.now), (0, 0));
        prop_assert!(activity.outstanding.max <= u64::from(work.in_flight) + device.counts.splits);
    }

    /// The same laws, read back from every format that has all steps; events of other layers change
    /// nothing, and are all there where the format has a place for them.
    #[test]
    fn the_laws_hold_in_every_format(
        work in work(),
        output in prop::sample::select(vec![
            Output::Iolab, Output::Csv, Output::Blkparse, Output::Blktrace,
        ]),
    ) {
        let (events, bytes) = run(&work);
        let events = with_points(&filed(&events));
        let wanted = points(&mut Given(events.clone().into_iter()));
        let mut source = there_and_back(events.clone(), output);
        let pairing = Pairing::of(&mut *source, Rules::Own, By::Device).unwrap();
        prop_assert!(source.caveats().is_empty(), "{:?}", source.caveats());
        let report = Report::of(&pairing);
        prop_assert_eq!(report.devices.len(), 1);
        let device = &report.devices[0];
        prop_assert_eq!([0, 1].map(|it| device.counts.queued[it].bytes), bytes);
        prop_assert_eq!(device.counts.completed.bytes, bytes[0] + bytes[1]);
        let row = report.stages.iter().find(|row| row.stage == Stage::Q2C).unwrap();
        let activity = &pairing.devices[0].activity;
        prop_assert_eq!(activity.outstanding.integral, u128::from(row.sum_ns));
        let found = points(&mut *there_and_back(events, output));
        prop_assert_eq!(found, if output == Output::Blktrace { Vec::new() } else { wanted });
    }

    /// fio's iolog has what was asked for: every bio with data, in order, and its bytes.
    #[test]
    fn an_iolog_has_what_was_asked_for(work in work()) {
        let (events, bytes) = run(&work);
        let events = with_points(&filed(&events));
        let asked = |source: &mut dyn Source| {
            let (mut event, mut found) = (Event::default(), Vec::new());
            while source.next(&mut event).unwrap() {
                if event.action == Action::Queued && event.bytes > 0 {
                    found.push((event.sector, event.bytes, event.is_write()));
                }
            }
            found
        };
        let wanted = asked(&mut Given(events.clone().into_iter()));
        let found = asked(&mut *there_and_back(events, Output::Iolog));
        let sum: u64 = found.iter().map(|(_, bytes, _)| u64::from(*bytes)).sum();
        prop_assert_eq!(sum, bytes[0] + bytes[1]);
        prop_assert_eq!(found, wanted);
    }

    /// Events that are read from the file are those of the simulator, one by one.
    #[test]
    fn decoding_after_encoding_is_the_identity(work in work()) {
        let (events, _) = run(&work);
        let mut source = reader(&filed(&events));
        let (mut event, mut wanted) = (Event::default(), Event::default());
        let mut names = BTreeSet::new();
        let mut rest = events.iter();
        while source.next(&mut event).unwrap() {
            if event.action.is_note() {
                prop_assert!(names.insert(event.pid), "named twice");
                continue;
            }
            simulated::read(rest.next().unwrap(), &mut wanted);
            prop_assert_eq!(&event, &wanted);
        }
        prop_assert_eq!(rest.len(), 0);
        names.remove(&0); // Flushes are nobody's.
        prop_assert_eq!(names.len() as u32, work.processes.min(work.bios));
        prop_assert_eq!(source.devices(), vec![(simulated::device_of(0), "sim0".to_owned())]);
    }
}
