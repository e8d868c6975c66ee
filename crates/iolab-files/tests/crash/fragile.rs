//! A machine that can lose power at any event: its device has a cache that forgets.
//!
//! Content is one number per block. A write is in the device's cache first; a flush, or FUA, makes
//! it last. At a power cut each write that does not last yet is kept or lost by chance. Every call
//! of the file system and every step of a job is an event.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, BTreeSet};

use iolab_files::api::block::{FileRun, NodeId, Place};
use iolab_files::api::context::{Caller, Context, Tid};
use iolab_files::api::file_system::{
    ClosedHandle, Entry, FileSystem, FsJob, NodeKind, Promise, Reshape, Step, SyncNeed, Touch,
    Write, WriteFlags,
};
use iolab_model::{Bytes, Ns};

use super::chance::Chance;

/// Knowledge of a block of a file.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Content in the cache.
    now: u64,
    is_dirty: bool,
    /// Contents that a power cut may leave, once something was acknowledged: that one or later.
    acknowledged: Option<BTreeSet<u64>>,
}

/// A file with everything that was said about it.
#[derive(Clone, Debug)]
struct KnownFile {
    name: String,
    blocks: BTreeMap<u64, Known>,
    size: u64,
    is_acknowledged: bool,
    created: Tid,
}

/// The machine.
pub struct Fragile {
    /// The file system.
    pub fs: Box<dyn FileSystem>,
    chance: Chance,
    now: u64,
    block: u64,
    files: BTreeMap<NodeId, KnownFile>,
    lasting: BTreeMap<u64, u64>,
    cached: Vec<(u64, u64)>,
    /// Content in the log that a commit makes last: places of the file, and content.
    copied: Vec<(NodeId, u64, u64)>,
    replayed: BTreeMap<(NodeId, u64), u64>,
    next: u64,
    events_left: u64,
    /// Removed files with the transaction of their removal: before it is durable they come back.
    removed: Vec<(NodeId, KnownFile, Tid)>,
    /// Stale content may show up (`data=writeback`, no journal).
    pub may_be_stale: bool,
    /// Blocks that were never written show zeros.
    pub clears: bool,
    /// Blocks of files that showed something else than their own content after the power cut.
    pub stale: u64,
    /// The device forgets at a power cut what was not flushed.
    pub forgets: bool,
    /// File and block that each content was written to.
    origins: BTreeMap<u64, (NodeId, u64)>,
}

/// Power is gone.
#[derive(Debug)]
pub struct PowerCut;

type Going = Result<(), PowerCut>;

const BLOCKS: u64 = 24;

impl Fragile {
    /// A machine around a fresh file system that loses power after so many events.
    pub fn new(fs: Box<dyn FileSystem>, seed: u64, events: u64) -> Self {
        let block = u64::from(fs.facts().block_bytes);
        Self {
            fs,
            chance: Chance(seed),
            now: 0,
            block,
            files: BTreeMap::new(),
            lasting: BTreeMap::new(),
            cached: Vec::new(),
            copied: Vec::new(),
            replayed: BTreeMap::new(),
            next: 1,
            events_left: events,
            removed: Vec::new(),
            may_be_stale: false,
            clears: false,
            stale: 0,
            forgets: true,
            origins: BTreeMap::new(),
        }
    }

    fn event(&mut self) -> Going {
        self.events_left = self.events_left.checked_sub(1).ok_or(PowerCut)?;
        Ok(())
    }

    fn context(&mut self) -> Context {
        self.now += 1_000_000 * (1 + self.chance.below(40));
        Context::new(Ns(self.now), Caller { pid: 0, cpu: (self.now % 2) as u16 })
    }

    /// Works until the power is cut.
    pub fn run(&mut self) {
        loop {
            if self.step().is_err() {
                return;
            }
        }
    }

    fn step(&mut self) -> Going {
        self.event()?;
        match self.chance.below(20) {
            0..2 => self.create(),
            2..9 => self.write(),
            9..12 => self.fsync(),
            12 => self.truncate(),
            13 => self.unlink(),
            14..16 => self.write_back_one(),
            16 => self.punch_or_reserve(),
            17 => self.sync(),
            _ => self.jobs(false),
        }
    }

    fn after(&mut self, cx: &Context) -> Going {
        for run in cx.effects.push.clone() {
            self.write_back(run.node)?;
        }
        if cx.effects.wait.is_some() {
            self.jobs(true)?;
        }
        Ok(())
    }

    fn any_file(&mut self) -> Option<NodeId> {
        let count = self.files.len() as u64;
        (count > 0).then(|| *self.files.keys().nth(self.chance.below(count) as usize).unwrap())
    }

    fn create(&mut self) -> Going {
        let mut cx = self.context();
        let name = format!("file{}", self.next);
        self.next += 1;
        let directory = self.fs.root();
        let entry = Entry { directory, name: &name };
        let node = self.fs.create(&mut cx, entry, NodeKind::File).unwrap();
        self.fs.opened(&mut cx, node, true);
        let created = cx.effects.transaction.unwrap();
        let file =
            KnownFile { name, blocks: BTreeMap::new(), size: 0, is_acknowledged: false, created };
        self.files.insert(node, file);
        self.after(&cx)
    }

    fn write(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        let first = self.chance.below(BLOCKS);
        let count = 1 + self.chance.below(BLOCKS - first);
        let run = FileRun { node, first, count };
        let size = self.files[&node].size;
        let end = (first + count) * self.block;
        let mut cx = self.context();
        self.fs.touch(&mut cx, node, Touch::Written);
        let start = Bytes(first * self.block);
        let write = Write { run, size: Bytes(size), start, end: Bytes(end), is_direct: false };
        self.fs.prepare(&mut cx, write).unwrap();
        for block in first..first + count {
            let content = self.next;
            self.next += 1;
            self.origins.insert(content, (node, block));
            let file = self.files.get_mut(&node).unwrap();
            let known = file.blocks.entry(block).or_default();
            known.now = content;
            known.is_dirty = true;
            if let Some(allowed) = &mut known.acknowledged {
                allowed.insert(content);
            }
        }
        let file = self.files.get_mut(&node).unwrap();
        file.size = size.max(end);
        self.after(&cx)
    }

    fn send(&mut self, block: u64, content: u64, flags: WriteFlags) {
        if flags.is_preflush {
            self.flush();
        }
        if flags.is_fua {
            self.lasting.insert(block, content);
        } else {
            self.cached.push((block, content));
        }
    }

    fn flush(&mut self) {
        for (block, content) in core::mem::take(&mut self.cached) {
            self.lasting.insert(block, content);
        }
    }

    fn write_back(&mut self, node: NodeId) -> Going {
        self.write_back_range(node, 0, u64::MAX)
    }

    fn write_back_range(&mut self, node: NodeId, from: u64, to: u64) -> Going {
        let Some(file) = self.files.get(&node) else { return Ok(()) };
        let dirty: Vec<u64> = file
            .blocks
            .range(from..to)
            .filter(|(_, known)| known.is_dirty)
            .map(|(&block, _)| block)
            .collect();
        for block in dirty {
            self.event()?;
            let run = FileRun { node, first: block, count: 1 };
            let mut mapped = self.fs.map(run);
            if !matches!(mapped.place, Place::Written(..)) {
                let mut cx = self.context();
                mapped = self.fs.allocate(&mut cx, run).unwrap();
            }
            let (_, place) = mapped.place.block().unwrap();
            let file = self.files.get_mut(&node).unwrap();
            let known = file.blocks.get_mut(&block).unwrap();
            known.is_dirty = false;
            let (content, size) = (known.now, file.size);
            self.send(place, content, WriteFlags::default());
            let mut cx = self.context();
            self.fs.written(&mut cx, run, Bytes(size.min((block + 1) * self.block)));
        }
        Ok(())
    }

    fn write_back_one(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        self.write_back(node)
    }

    fn jobs(&mut self, all: bool) -> Going {
        loop {
            let mut cx = self.context();
            let Some(job) = self.fs.poll(&mut cx) else { return Ok(()) };
            self.job(&job)?;
            if !all {
                return Ok(());
            }
        }
    }

    fn job(&mut self, job: &FsJob) -> Going {
        for step in &job.steps {
            self.event()?;
            match step {
                Step::Data(run) => self.write_back_range(run.node, run.first, run.end())?,
                Step::Copy(run, _) => {
                    for block in run.first..run.end() {
                        let file = self.files.get(&run.node);
                        let known = file.and_then(|file| file.blocks.get(&block));
                        if let Some(known) = known {
                            self.copied.push((run.node, block, known.now));
                        }
                    }
                }
                Step::Write(run, flags) => {
                    for block in run.range() {
                        self.send(block, 0, *flags);
                    }
                }
                Step::WriteSectors(.., flags) => {
                    if flags.is_preflush {
                        self.flush();
                    }
                }
                Step::Dirtied(run) => {
                    let mut cx = self.context();
                    self.fs.metadata_written(&mut cx, *run);
                }
                Step::Flush(_) => self.flush(),
                Step::Wait | Step::WaitData(_) | Step::Spend(_) => {}
            }
        }
        for (node, block, content) in core::mem::take(&mut self.copied) {
            self.replayed.insert((node, block), content);
        }
        let mut cx = self.context();
        self.fs.job_done(&mut cx, job.id);
        Ok(())
    }

    fn fsync(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        self.write_back(node)?;
        let mut cx = self.context();
        match self.fs.sync(&mut cx, node, Promise::Full) {
            SyncNeed::Nothing => {}
            SyncNeed::Flush(_) => self.flush(),
            SyncNeed::Commit(tid) => {
                self.jobs(true)?;
                assert!(self.fs.durable() >= tid, "a commit that was asked for has come");
            }
        }
        self.acknowledge(node);
        Ok(())
    }

    fn sync(&mut self) -> Going {
        let all: Vec<NodeId> = self.files.keys().copied().collect();
        for &node in &all {
            self.write_back(node)?;
        }
        let mut cx = self.context();
        let need = self.fs.sync_all(&mut cx);
        self.jobs(true)?;
        if matches!(need, SyncNeed::Flush(_)) {
            self.flush();
        }
        for node in all {
            self.acknowledge(node);
        }
        Ok(())
    }

    fn acknowledge(&mut self, node: NodeId) {
        let Some(file) = self.files.get_mut(&node) else { return };
        file.is_acknowledged = true;
        for known in file.blocks.values_mut() {
            known.acknowledged = Some(BTreeSet::from([known.now]));
        }
    }

    fn truncate(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        let to = self.chance.below(BLOCKS);
        let size = self.files[&node].size;
        let mut cx = self.context();
        self.fs.truncate(&mut cx, node, Bytes(size), Bytes(to * self.block)).unwrap();
        let file = self.files.get_mut(&node).unwrap();
        file.blocks.retain(|&block, _| block < to);
        file.size = to * self.block;
        self.after(&cx)
    }

    fn punch_or_reserve(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        let first = self.chance.below(BLOCKS);
        let run = FileRun { node, first, count: 1 + self.chance.below(BLOCKS - first) };
        let how = [Reshape::Punch, Reshape::Allocate][self.chance.below(2) as usize];
        if !self.fs.can_reshape(how) {
            return Ok(());
        }
        let file = self.files.get_mut(&node).unwrap();
        let size = file.size;
        if how == Reshape::Punch {
            file.blocks.retain(|block, _| !(run.first..run.end()).contains(block));
        }
        let mut cx = self.context();
        let _ = self.fs.reshape(&mut cx, run, how, Bytes(size));
        self.after(&cx)
    }

    fn unlink(&mut self) -> Going {
        let Some(node) = self.any_file() else { return Ok(()) };
        let file = self.files.remove(&node).unwrap();
        let mut cx = self.context();
        let directory = self.fs.root();
        self.fs.unlink(&mut cx, Entry { directory, name: &file.name }, node).unwrap();
        if let Some(tid) = cx.effects.transaction {
            self.removed.push((node, file, tid));
        }
        self.after(&cx)?;
        self.event()?;
        let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks: 0 };
        self.fs.closed(&mut cx, node, closed);
        self.fs.evict(&mut cx, node);
        Ok(())
    }

    /// Cuts the power, mounts again, and checks what is there.
    pub fn check(&mut self, text: &str) {
        for (block, content) in core::mem::take(&mut self.cached) {
            if self.chance.below(2) == 0 || !self.forgets {
                self.lasting.insert(block, content);
            }
        }
        let free_before = self.fs.space().total;
        let tid = self.fs.crash();
        assert_eq!(self.fs.space().total, free_before, "{text}: the device has its size");
        let mut owners = BTreeMap::new();
        let back = self.removed.iter().filter(|(.., removal)| *removal > tid);
        let back = back.map(|(node, file, _)| (*node, file.clone(), true));
        let there = self.files.iter().map(|(&node, file)| (node, file.clone(), false));
        let all: Vec<_> = back.chain(there).filter(|(_, file, _)| file.created <= tid).collect();
        for (node, file, is_back) in &all {
            // Where blocks of a removed file are free at once, others may have written to them.
            let keeps = !(*is_back && self.may_be_stale);
            self.check_file(text, (*node, file), keeps, &mut owners);
        }
        for (node, file) in &self.files {
            assert!(
                !file.is_acknowledged || file.created <= tid,
                "{text}: {node:?} was promised and is gone"
            );
        }
    }

    fn check_file(
        &mut self,
        text: &str,
        (node, file): (NodeId, &KnownFile),
        keeps: bool,
        owners: &mut BTreeMap<u64, (NodeId, u64)>,
    ) {
        let blocks_on_disk = self.fs.size_on_disk(node).0.div_ceil(self.block);
        for block in 0..BLOCKS {
            let place = self.fs.map(FileRun { node, first: block, count: 1 }).place;
            if let Some((_, at)) = place.block() {
                let other = owners.insert(at, (node, block));
                assert_eq!(other, None, "{text}: block {at} has two owners");
            }
            let known = file.blocks.get(&block);
            let content = self.content(node, block, place);
            if matches!(place, Place::Written(..)) {
                let origin = content.and_then(|content| self.origins.get(&content));
                let is_cleared = self.clears && content == Some(0);
                let is_own = origin == Some(&(node, block)) || is_cleared;
                assert!(
                    is_own || self.may_be_stale,
                    "{text}: {node:?} block {block} shows {content:?} of {origin:?}"
                );
                self.stale += u64::from(!is_own);
            }
            if let Some(allowed) = known.and_then(|known| known.acknowledged.as_ref()) {
                assert!(block < blocks_on_disk, "{text}: {node:?} is shorter than promised");
                assert!(
                    allowed.contains(&content.unwrap_or(0)) || !keeps,
                    "{text}: {node:?} block {block} at {place:?} has {content:?} of {allowed:?}"
                );
            }
        }
    }

    fn content(&self, node: NodeId, block: u64, place: Place) -> Option<u64> {
        let Place::Written(_, at) = place else { return None };
        let newest = self.replayed.get(&(node, block)).copied();
        newest.max(self.lasting.get(&at).copied())
    }
}
