//! Power cuts, rules of preallocation, options.

use std::collections::{BTreeMap, BTreeSet};

use iolab_model::seed::{Seed, Stream};
use iolab_model::{Bytes, Ns};

use super::Xfs;
use super::geometry::Geometry;
use super::inodes::Listing;
use super::log::{Part, WORKER_INTERVAL, XfsLog};
use crate::api::block::{FileRun, NodeId, Place};
use crate::api::context::{Caller, Context, Tid};
use crate::api::file_system::{
    ClosedHandle, Entry, FileSystem, JobId, NodeKind, Promise, SyncNeed, Touch, Write,
};
use crate::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use crate::api::options::FsOptions;

fn spec(mib: u64, mkfs: &str, mount: &str) -> MakeSpec {
    let owned = |text: &str| vec![text.to_owned()];
    MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![DeviceFacts {
            bytes: mib << 20,
            is_rotational: false,
            io_min_bytes: 512,
            io_opt_bytes: 0,
            stripe: None,
        }],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs("xfs", super::options::MKFS, &owned(mkfs)).unwrap(),
        mount: FsOptions::mount("xfs", super::options::MOUNT, &owned(mount)).unwrap(),
        cpus: 2,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    }
}

/// A file of the test: what it holds, what of it is on the device, what was promised.
#[derive(Clone, Default)]
struct Written {
    node: Option<NodeId>,
    size: u64,
    dirty: BTreeSet<u64>,
    versions: BTreeMap<u64, u64>,
    /// Versions and length that survive any power cut.
    kept: BTreeMap<u64, u64>,
    kept_size: u64,
    unlinked_in: Option<Tid>,
    is_known: bool,
}

/// Data on their way to the device.
#[derive(Clone)]
struct Flight {
    file: usize,
    node: NodeId,
    blocks: Vec<(u64, u64, u64)>,
    size: u64,
}

/// A promise that waits for a transaction: file, transaction, versions, length.
type Waiting = (usize, Tid, BTreeMap<u64, u64>, u64);

struct Lab {
    fs: Xfs,
    files: Vec<Written>,
    /// Content of each block of the device: file, block of it, version.
    device: BTreeMap<u64, (usize, u64, u64)>,
    flights: Vec<Flight>,
    jobs: Vec<JobId>,
    waiting: Vec<Waiting>,
    now: u64,
    version: u64,
    random: Stream,
}

const FILES_MAX: usize = 10;

impl Lab {
    fn new(seed: u64) -> Self {
        Self {
            fs: Xfs::make(&spec(300, "", "")).unwrap(),
            files: Vec::new(),
            device: BTreeMap::new(),
            flights: Vec::new(),
            jobs: Vec::new(),
            waiting: Vec::new(),
            now: 0,
            version: 0,
            random: Seed(seed).stream("power cuts", 0),
        }
    }

    fn context(&mut self) -> Context {
        self.now += 3_000_000;
        Context::new(Ns(self.now), Caller::default())
    }

    fn some_file(&mut self) -> Option<usize> {
        let live: Vec<usize> =
            (0..self.files.len()).filter(|i| self.files[*i].node.is_some()).collect();
        (!live.is_empty()).then(|| live[self.random.below(live.len() as u64) as usize])
    }

    fn create(&mut self) {
        let mut cx = self.context();
        let name = format!("file-{}", self.files.len());
        let entry = Entry { directory: self.fs.root(), name: &name };
        let node = self.fs.create(&mut cx, entry, NodeKind::File).unwrap();
        self.files.push(Written { node: Some(node), ..Written::default() });
    }

    fn write(&mut self, file: usize) {
        let node = self.files[file].node.unwrap();
        let size = self.files[file].size;
        let first = match self.random.below(3) {
            0 => self.random.below(200),
            _ => size / 4096,
        };
        let count = 1 + self.random.below(20);
        let run = FileRun { node, first, count };
        let end = run.end() * 4096;
        let mut cx = self.context();
        self.fs.touch(&mut cx, node, Touch::Written);
        let (start, size_before) = (Bytes(first * 4096), Bytes(size));
        let write = Write { run, size: size_before, start, end: Bytes(end), is_direct: false };
        if self.fs.prepare(&mut cx, write).is_err() {
            return;
        }
        self.version += 1;
        let held = &mut self.files[file];
        held.size = size.max(end);
        for block in first..run.end() {
            held.dirty.insert(block);
            held.versions.insert(block, self.version);
        }
    }

    fn start_write_back(&mut self, file: usize) {
        let Some(node) = self.files[file].node else { return };
        // A page is not sent again before it has arrived.
        self.land_file(file);
        let dirty: Vec<u64> = core::mem::take(&mut self.files[file].dirty).into_iter().collect();
        let mut blocks = Vec::new();
        for block in dirty {
            let run = FileRun { node, first: block, count: 1 };
            let mut found = self.fs.map(run);
            if !matches!(found.place, Place::Written(..)) {
                let mut cx = self.context();
                found = self.fs.allocate(&mut cx, run).unwrap();
                self.wait_for(cx.effects.wait);
            }
            let at = found.place.block().unwrap().1;
            blocks.push((block, at, self.files[file].versions[&block]));
        }
        let size = self.files[file].size;
        if !blocks.is_empty() {
            self.flights.push(Flight { file, node, blocks, size });
        }
    }

    /// Waits until a transaction is durable, as the machine does before data go out.
    fn wait_for(&mut self, tid: Option<Tid>) {
        while tid.is_some_and(|tid| tid > self.fs.durable()) {
            let mut cx = self.context();
            if let Some(job) = self.fs.poll(&mut cx) {
                self.jobs.push(job.id);
            } else {
                let job = self.jobs.pop().expect("a job leads to what is waited for");
                self.fs.job_done(&mut cx, job);
            }
        }
        self.keep();
    }

    fn land(&mut self, flight: &Flight) {
        for (block, at, version) in &flight.blocks {
            self.device.insert(*at, (flight.file, *block, *version));
            let end = (block + 1) * 4096;
            let mut cx = self.context();
            let run = FileRun { node: flight.node, first: *block, count: 1 };
            self.fs.written(&mut cx, run, Bytes(flight.size.min(end)));
        }
    }

    fn land_file(&mut self, file: usize) {
        let (mine, others) =
            core::mem::take(&mut self.flights).into_iter().partition(|f| f.file == file);
        self.flights = others;
        let mine: Vec<Flight> = mine;
        for flight in &mine {
            self.land(flight);
        }
    }

    fn fsync(&mut self, file: usize, promise: Promise) {
        self.start_write_back(file);
        self.land_file(file);
        let Some(node) = self.files[file].node else { return };
        let mut cx = self.context();
        let (versions, size) = (self.files[file].versions.clone(), self.files[file].size);
        let tid = match self.fs.sync(&mut cx, node, promise) {
            SyncNeed::Commit(tid) => tid,
            SyncNeed::Flush(_) | SyncNeed::Nothing => self.fs.durable(),
        };
        self.waiting.push((file, tid, versions, size));
        self.keep();
    }

    /// Promises whose transaction is durable are kept from now on.
    fn keep(&mut self) {
        let durable = self.fs.durable();
        for (file, tid, versions, size) in core::mem::take(&mut self.waiting) {
            if tid > durable {
                self.waiting.push((file, tid, versions, size));
                continue;
            }
            let held = &mut self.files[file];
            let now = held.size;
            held.kept = versions;
            held.kept.retain(|block, _| *block * 4096 < now);
            held.kept_size = size.min(now);
            held.is_known = true;
        }
    }

    fn truncate(&mut self, file: usize) {
        self.land_file(file);
        let node = self.files[file].node.unwrap();
        let from = self.files[file].size;
        let to = self.random.below(from / 4096 + 30) * 4096;
        let mut cx = self.context();
        if self.fs.truncate(&mut cx, node, Bytes(from), Bytes(to)).is_err() {
            return;
        }
        let held = &mut self.files[file];
        held.size = to;
        held.dirty.retain(|block| block * 4096 < to);
        for versions in [&mut held.versions, &mut held.kept] {
            versions.retain(|block, _| block * 4096 < to);
        }
        held.kept_size = held.kept_size.min(to);
        for (_, _, versions, size) in self.waiting.iter_mut().filter(|entry| entry.0 == file) {
            versions.retain(|block, _| block * 4096 < to);
            *size = (*size).min(to);
        }
    }

    fn unlink(&mut self, file: usize) {
        self.land_file(file);
        let node = self.files[file].node.unwrap();
        let name = format!("file-{file}");
        let entry = Entry { directory: self.fs.root(), name: &name };
        let mut cx = self.context();
        self.fs.unlink(&mut cx, entry, node).unwrap();
        self.fs.evict(&mut cx, node);
        self.files[file].node = None;
        self.files[file].unlinked_in = cx.effects.transaction;
        self.files[file].dirty.clear();
    }

    fn close(&mut self, file: usize) {
        let held = &self.files[file];
        let dirty_blocks = held.dirty.len() as u64;
        let node = held.node.unwrap();
        let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks };
        let mut cx = self.context();
        self.fs.closed(&mut cx, node, closed);
    }

    fn event(&mut self) {
        let live = self.files.iter().filter(|file| file.node.is_some()).count();
        let choice = self.random.below(100);
        let file = self.some_file();
        match (choice, file) {
            (_, None) | (0..8, _) if live < FILES_MAX => self.create(),
            (0..45, Some(file)) => self.write(file),
            (45..60, Some(file)) => self.start_write_back(file),
            (60..70, Some(file)) => self.fsync(file, Promise::Full),
            (70..74, Some(file)) => self.fsync(file, Promise::Data),
            (74..77, Some(file)) => self.truncate(file),
            (77..81, Some(file)) => self.unlink(file),
            (81..84, Some(file)) => self.close(file),
            (84..90, _) if !self.flights.is_empty() => {
                let index = self.random.below(self.flights.len() as u64) as usize;
                let flight = self.flights.swap_remove(index);
                self.land(&flight);
            }
            _ => self.turn_jobs(),
        }
    }

    /// Starts a job, or ends one of those on their way.
    fn turn_jobs(&mut self) {
        let mut cx = self.context();
        if self.random.below(2) == 0
            && let Some(job) = self.fs.poll(&mut cx)
        {
            self.jobs.push(job.id);
        } else if !self.jobs.is_empty() {
            let index = self.random.below(self.jobs.len() as u64) as usize;
            let job = self.jobs.swap_remove(index);
            self.fs.job_done(&mut cx, job);
            self.keep();
        }
    }

    /// A power cut now, on a copy: everything promised is there, and nothing of others.
    fn cut(&self) {
        let mut fs = self.fs.clone();
        let durable = fs.crash();
        fs.check().unwrap_or_else(|problem| panic!("after the cut: {problem}"));
        for (index, file) in self.files.iter().enumerate().filter(|(_, file)| file.is_known) {
            if file.unlinked_in.is_some_and(|tid| tid <= durable) {
                continue;
            }
            let Some(node) = file.node else { continue };
            assert!(fs.size_on_disk(node).0 >= file.kept_size, "file {index} is too short");
            for (block, version) in &file.kept {
                let found = fs.map(FileRun { node, first: *block, count: 1 });
                let Place::Written(_, at) = found.place else {
                    panic!("block {block} of file {index} is {found:?}");
                };
                let (owner, place, there) = self.device[&at];
                assert_eq!((owner, place), (index, *block), "content of block {at}");
                assert!(there >= *version, "block {block} of file {index} is too old");
            }
        }
        for (node, stored) in &fs.stored {
            let mut owners = BTreeSet::new();
            for piece in stored.fork.iter().filter(|_| *node != fs.root()) {
                if piece.state == super::fork::PieceState::Written {
                    owners.extend((0..piece.count).map(|i| self.device[&(piece.at + i)].0));
                }
            }
            assert!(owners.len() <= 1, "{node:?} shows data of files {owners:?}");
        }
    }
}

#[test]
fn every_promise_survives_a_power_cut_at_each_of_10000_events() {
    let mut lab = Lab::new(19);
    for event in 0..10_000 {
        lab.event();
        lab.cut();
        if event % 500 == 0 {
            lab.fs.check().unwrap_or_else(|problem| panic!("event {event}: {problem}"));
        }
    }
    assert!(lab.fs.durable() > Tid(100), "{:?}", lab.fs.durable());
    assert!(lab.files.iter().filter(|file| file.is_known).count() > 100);
}

#[test]
fn xfs_7_a_stream_is_given_up_to_twice_its_size_until_it_is_closed() {
    let mut fs = Xfs::make(&spec(64 << 10, "", "")).unwrap();
    let mut cx = Context::default();
    let entry = Entry { directory: fs.root(), name: "stream" };
    let node = fs.create(&mut cx, entry, NodeKind::File).unwrap();
    let gib = 1u64 << 30;
    for mib in 0..4 * 1024u64 {
        let run = FileRun { node, first: mib * 256, count: 256 };
        let (size, end) = (Bytes(mib << 20), Bytes((mib + 1) << 20));
        let write = Write { run, size, start: size, end, is_direct: false };
        fs.prepare(&mut cx, write).unwrap();
    }
    let promised = fs.space().delayed * 4096;
    assert!((4 * gib..=12 * gib).contains(&promised), "{promised}");
    assert!(promised > 5 * gib, "{promised}");
    let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks: 4 << 18 };
    fs.closed(&mut cx, node, closed);
    assert_eq!(fs.space().delayed * 4096, 4 * gib);
    fs.check().unwrap();
}

/// A file with one written block that is durable, and a write that changes it in place.
fn overwritten(mount: &str, is_later: bool) -> SyncNeed {
    let mut fs = Xfs::make(&spec(2_304, "", mount)).unwrap();
    let mut cx = Context::default();
    let entry = Entry { directory: fs.root(), name: "a" };
    let node = fs.create(&mut cx, entry, NodeKind::File).unwrap();
    let run = FileRun { node, first: 0, count: 1 };
    let (start, end) = (Bytes(0), Bytes(4096));
    let write = |size| Write { run, size: Bytes(size), start, end, is_direct: false };
    fs.touch(&mut cx, node, Touch::Written);
    fs.prepare(&mut cx, write(0)).unwrap();
    fs.allocate(&mut cx, run).unwrap();
    fs.written(&mut cx, run, Bytes(4096));
    assert!(matches!(fs.sync(&mut cx, node, Promise::Full), SyncNeed::Commit(_)));
    while let Some(job) = fs.poll(&mut cx) {
        fs.job_done(&mut cx, job.id);
    }
    if is_later {
        cx.now = Ns::from_ms(50);
    }
    fs.touch(&mut cx, node, Touch::Written);
    fs.prepare(&mut cx, write(4096)).unwrap();
    fs.written(&mut cx, run, Bytes(4096));
    fs.sync(&mut cx, node, Promise::Full)
}

#[test]
fn xfs_8_an_overwrite_in_the_same_tick_or_with_lazytime_needs_no_log() {
    assert!(matches!(overwritten("", false), SyncNeed::Flush(_)));
    assert!(matches!(overwritten("lazytime", true), SyncNeed::Flush(_)));
    assert!(matches!(overwritten("", true), SyncNeed::Commit(_)));
}

#[test]
fn what_mkfs_prints_is_the_shape() {
    // mkfs.xfs 6.1 -N: size in MiB, options; groups, their blocks, blocks of the log.
    let cases = [
        (300, "", 4, 19_200, 16_384),
        (2_304, "", 4, 147_456, 16_384),
        (200_000, "", 4, 12_800_000, 25_000),
        (1_048_576, "", 4, 67_108_864, 131_072),
        (8_388_608, "", 8, 268_435_455, 521_728),
        (2_304, "-d su=64k,sw=4", 8, 73_712, 16_384),
        (131_072, "-d su=64k,sw=4", 16, 2_097_136, 16_384),
        (200_000, "-d su=64k,sw=4", 16, 3_199_984, 25_008),
        (1_048_576, "-d su=64k,sw=4", 32, 8_388_592, 131_072),
    ];
    for (mib, mkfs, groups, group_blocks, log_blocks) in cases {
        let shape = super::geometry::Geometry::new(&spec(mib, mkfs, "")).unwrap();
        let got = (shape.groups, shape.group_blocks, shape.log_blocks);
        assert_eq!(got, (groups, group_blocks, log_blocks), "{mib} MiB, {mkfs}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let tiny = Xfs::make(&spec(100, "", "")).unwrap_err().to_string();
    assert!(tiny.contains("100 MiB is too small"), "{tiny}");
    let odd = Xfs::make(&spec(2_304, "", "allocsize=3m")).unwrap_err().to_string();
    assert!(odd.contains("allocsize") && odd.contains("power of two"), "{odd}");
    let half = Xfs::make(&spec(2_304, "-d su=64k", "")).unwrap_err().to_string();
    assert!(half.contains("su and sw belong together"), "{half}");
    let words = vec!["alocsize=1m".to_owned()];
    let unknown = FsOptions::mount("xfs", super::options::MOUNT, &words).unwrap_err().to_string();
    assert!(unknown.contains("did you mean") && unknown.contains("allocsize"), "{unknown}");
}

#[test]
fn a_block_that_changes_while_its_checkpoint_is_written_stays_in_the_log() {
    let geometry = Geometry::new(&spec(512, "", "")).unwrap();
    let mut log = XfsLog::new(geometry, 32 << 10);
    log.note_block(7, Part::More(2000));
    log.tick(WORKER_INTERVAL);
    let (checkpoint, _) = log.poll().unwrap();
    log.note_block(7, Part::More(64));
    log.done(checkpoint.id);
    assert!(log.poll().is_none(), "nothing is written in place of what the log holds");
    let before = log.log_bytes;
    log.note_block(7, Part::More(64));
    log.tick(Ns(2 * WORKER_INTERVAL.0));
    let (checkpoint, _) = log.poll().unwrap();
    assert!(log.log_bytes - before > 2000, "all that was logged of it is logged again");
    log.done(checkpoint.id);
    let (in_place, is_checkpoint) = log.poll().unwrap();
    assert!(!is_checkpoint && in_place.steps.len() == 1);
    log.done(in_place.id);
    let before = log.log_bytes;
    log.note_block(7, Part::Record);
    log.force(log.current());
    log.poll().unwrap();
    assert!(log.log_bytes - before <= 1024, "it was written in place: {}", log.log_bytes - before);
}

#[test]
fn names_that_go_in_their_order_leave_the_blocks_one_after_the_other() {
    let mut listing = Listing::default();
    (0..2000).for_each(|_| listing.add(20));
    let (blocks, _) = listing.blocks();
    let places: Vec<u32> = (0..2000).map(|_| listing.remove(20, blocks)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!((places[0], places[1999]), (0, blocks - 1));
}
