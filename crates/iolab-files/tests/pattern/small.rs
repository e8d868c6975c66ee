//! A small machine around a file system's decider.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iolab_files::api::block::{DeviceId, FileRun, NodeId, Place};
use iolab_files::api::context::{Caller, Context};
use iolab_files::api::file_system::{
    ClosedHandle, Entry, FileSystem, JobId, NodeKind, Promise, Reshape, SyncNeed, Touch, Write,
};
use iolab_model::{Bytes, Ns};

use super::text::Pattern;

#[derive(Default)]
struct OpenFile {
    size: u64,
    dirty: BTreeSet<u64>,
    writers: u32,
    links: u32,
}

/// A machine without time and memory: what is dirty stays so until something asks for it.
pub struct Small {
    /// The file system.
    pub fs: Box<dyn FileSystem>,
    names: BTreeMap<String, NodeId>,
    files: BTreeMap<NodeId, OpenFile>,
    /// Files with dirty blocks, in the order in which they became dirty.
    queue: Vec<NodeId>,
    handles: BTreeMap<String, (NodeId, bool)>,
    now: u64,
    block: u64,
}

impl Small {
    /// A machine around a fresh file system.
    pub fn new(fs: Box<dyn FileSystem>) -> Self {
        let block = u64::from(fs.facts().block_bytes);
        let names = BTreeMap::from([(String::new(), fs.root())]);
        Self {
            fs,
            names,
            files: BTreeMap::new(),
            queue: Vec::new(),
            handles: BTreeMap::new(),
            now: 0,
            block,
        }
    }

    fn context(&mut self) -> Context {
        self.now += 10_000;
        Context::new(Ns(self.now), Caller { pid: 0, cpu: 0 })
    }

    /// Starts and ends jobs until there is none.
    fn run_jobs(&mut self) {
        loop {
            let mut cx = self.context();
            let Some(job) = self.fs.poll(&mut cx) else { return };
            self.finish(job.id);
        }
    }

    fn finish(&mut self, job: JobId) {
        let mut cx = self.context();
        self.fs.job_done(&mut cx, job);
    }

    fn after(&mut self, cx: &Context) {
        for run in cx.effects.push.clone() {
            self.write_back(run.node, run.first..run.end());
        }
        if cx.effects.pushes_all {
            self.write_back_all();
        }
        if cx.effects.wait.is_some() {
            self.run_jobs();
        }
    }

    /// Writes everything, files in the order in which they became dirty.
    fn write_back_all(&mut self) {
        for node in core::mem::take(&mut self.queue) {
            self.write_back(node, 0..u64::MAX);
        }
    }

    /// Writes the dirty blocks of a range of a file. It stays in the queue of dirty files, as with
    /// fsync(2) in the kernel.
    fn write_back(&mut self, node: NodeId, range: Range<u64>) {
        let Some(file) = self.files.get_mut(&node) else { return };
        let size = file.size;
        let dirty: Vec<u64> = file.dirty.range(range).copied().collect();
        for block in &dirty {
            file.dirty.remove(block);
        }
        let most = self.fs.facts().allocate_blocks_max;
        let mut written: Vec<FileRun> = Vec::new();
        let mut blocks = dirty.into_iter().peekable();
        while let Some(first) = blocks.next() {
            let mut end = first + 1;
            while end - first < most && blocks.next_if_eq(&end).is_some() {
                end += 1;
            }
            let mut at = first;
            while at < end {
                let run = FileRun { node, first: at, count: end - at };
                let mut found = self.fs.map(run);
                if !matches!(found.place, Place::Written(..)) {
                    let mut cx = self.context();
                    found = self.fs.allocate(&mut cx, run).expect("promised space is there");
                    self.after(&cx);
                }
                assert!(found.place.block().is_some(), "{run:?} has a place now");
                at += found.count;
            }
            written.push(FileRun { node, first, count: end - first });
        }
        for run in written {
            let mut cx = self.context();
            let reached = size.min(run.end() * self.block);
            self.fs.written(&mut cx, run, Bytes(reached));
        }
    }

    fn parent<'a>(&self, path: &'a str) -> (NodeId, &'a str) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.names[directory], name)
    }

    fn make(&mut self, path: &str, kind: NodeKind) -> NodeId {
        let (directory, name) = self.parent(path);
        let mut cx = self.context();
        let node = self.fs.create(&mut cx, Entry { directory, name }, kind).unwrap();
        self.after(&cx);
        self.names.insert(path.to_owned(), node);
        if kind == NodeKind::File {
            self.files.insert(node, OpenFile { links: 1, ..OpenFile::default() });
        }
        node
    }

    fn open(&mut self, path: &str, is_direct: bool) {
        let known = self.names.get(path).copied();
        let node = known.unwrap_or_else(|| self.make(path, NodeKind::File));
        let mut cx = self.context();
        self.fs.opened(&mut cx, node, true);
        self.files.get_mut(&node).unwrap().writers += 1;
        self.handles.insert(path.to_owned(), (node, is_direct));
    }

    fn close(&mut self, path: &str) {
        let (node, _) = self.handles.remove(path).unwrap();
        let file = self.files.get_mut(&node).unwrap();
        file.writers -= 1;
        let (left, dirty_blocks) = (file.writers, file.dirty.len() as u64);
        let closed = ClosedHandle { was_writer: true, writers: left, handles: left, dirty_blocks };
        let mut cx = self.context();
        self.fs.closed(&mut cx, node, closed);
        self.after(&cx);
        self.evict_if_gone(node);
    }

    fn evict_if_gone(&mut self, node: NodeId) {
        if self.files.get(&node).is_some_and(|file| file.writers == 0 && file.links == 0) {
            self.files.remove(&node);
            self.queue.retain(|queued| *queued != node);
            let mut cx = self.context();
            self.fs.evict(&mut cx, node);
        }
    }

    fn write(&mut self, path: &str, offset: u64, length: u64) {
        let (node, is_direct) = self.handles[path];
        let size = self.files[&node].size;
        let end = offset + length;
        let first = offset / self.block;
        let run = FileRun { node, first, count: end.div_ceil(self.block) - first };
        let mut cx = self.context();
        let (start, end_bytes) = (Bytes(offset), Bytes(end));
        let write = Write { run, size: Bytes(size), start, end: end_bytes, is_direct };
        self.fs.touch(&mut cx, node, Touch::Written);
        self.fs.prepare(&mut cx, write).expect("there is space");
        let file = self.files.get_mut(&node).unwrap();
        file.size = size.max(end);
        if is_direct {
            self.fs.written(&mut cx, run, Bytes(size.max(end)));
        } else {
            file.dirty.extend(run.first..run.end());
            if !self.queue.contains(&node) {
                self.queue.push(node);
            }
        }
        self.after(&cx);
    }

    fn fsync(&mut self, path: &str, sync: Promise) {
        let (node, _) = self.handles[path];
        self.write_back(node, 0..u64::MAX);
        let mut cx = self.context();
        let need = self.fs.sync(&mut cx, node, sync);
        self.run_jobs();
        if let SyncNeed::Commit(tid) = need {
            assert!(self.fs.durable() >= tid, "an fsync ends when its transaction is durable");
        }
    }

    fn sync(&mut self) {
        self.write_back_all();
        let mut cx = self.context();
        self.fs.sync_all(&mut cx);
        self.run_jobs();
    }

    fn truncate(&mut self, path: &str, to: u64) {
        let node = self.names[path];
        let from = self.files[&node].size;
        let edge = from.min(to) / self.block;
        let place = self.fs.map(FileRun { node, first: edge, count: 1 }).place;
        let file = self.files.get_mut(&node).unwrap();
        if !from.min(to).is_multiple_of(self.block)
            && matches!(place, Place::Delayed | Place::Written(..))
        {
            // The rest of the block becomes zeros.
            file.dirty.insert(edge);
            if !self.queue.contains(&node) {
                self.queue.push(node);
            }
        }
        if to < from {
            file.dirty = file.dirty.iter().copied().filter(|b| b * self.block < to).collect();
        }
        let mut cx = self.context();
        self.fs.truncate(&mut cx, node, Bytes(from), Bytes(to)).unwrap();
        self.after(&cx);
        self.files.get_mut(&node).unwrap().size = to;
    }

    fn reshape(&mut self, path: &str, how: Reshape, (offset, length): (u64, u64), grows: bool) {
        let node = self.names[path];
        let (first, end) = match how {
            Reshape::Punch => (offset.div_ceil(self.block), (offset + length) / self.block),
            _ => (offset / self.block, (offset + length).div_ceil(self.block)),
        };
        let file = self.files.get_mut(&node).unwrap();
        if how == Reshape::Punch {
            file.dirty.retain(|block| !(first..end).contains(block));
        }
        if grows {
            file.size = file.size.max(offset + length);
        }
        let size = Bytes(file.size);
        let mut cx = self.context();
        let run = FileRun { node, first, count: end - first };
        self.fs.reshape(&mut cx, run, how, size).unwrap();
        self.after(&cx);
    }

    fn unlink(&mut self, path: &str) {
        let (directory, name) = self.parent(path);
        let node = self.names.remove(path).unwrap();
        let mut cx = self.context();
        self.fs.unlink(&mut cx, Entry { directory, name }, node).unwrap();
        self.files.get_mut(&node).unwrap().links -= 1;
        self.evict_if_gone(node);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (directory, name) = self.parent(from);
        let (to_directory, to_name) = self.parent(to);
        let replaced = self.names.get(to).copied();
        let node = self.names.remove(from).unwrap();
        let mut cx = self.context();
        let target = Entry { directory: to_directory, name: to_name };
        self.fs.rename(&mut cx, (Entry { directory, name }, node), target, replaced).unwrap();
        self.names.insert(to.to_owned(), node);
        self.after(&cx);
        if let Some(replaced) = replaced {
            self.files.get_mut(&replaced).unwrap().links -= 1;
            self.evict_if_gone(replaced);
        }
    }

    /// Makes one call.
    pub fn call(&mut self, words: &[String]) {
        let name = words.get(1).map_or("", String::as_str);
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        match words[0].as_str() {
            "open" => self.open(name, false),
            "open-direct" => self.open(name, true),
            "close" => self.close(name),
            "write" => self.write(name, number(2), number(3)),
            "blocks" => {
                for i in 2..words.len() {
                    self.write(name, number(i) * 4096, 4096);
                }
            }
            "fsync" => self.fsync(name, Promise::Full),
            "fdatasync" => self.fsync(name, Promise::Data),
            "sync" => self.sync(),
            "wait" => self.now += name.parse::<u64>().unwrap() * 1_000_000_000,
            "truncate" => self.truncate(name, number(2)),
            "fallocate" => {
                self.reshape(name, Reshape::Allocate, (number(2), number(3)), true);
            }
            "reserve" => self.reshape(name, Reshape::Allocate, (number(2), number(3)), false),
            "punch" => self.reshape(name, Reshape::Punch, (number(2), number(3)), false),
            "unlink" => self.unlink(name),
            "rename" => self.rename(name, &words[2]),
            "mkdir" => drop(self.make(name, NodeKind::Directory)),
            other => panic!("no call: {other}"),
        }
    }

    /// Makes all calls of a pattern, then closes what is open, as the end of a process does.
    pub fn run(&mut self, pattern: &Pattern) {
        for call in &pattern.calls {
            self.call(call);
        }
        for path in self.handles.keys().cloned().collect::<Vec<_>>() {
            self.close(&path);
        }
    }

    /// Extents of all files as rows `file,logical,blocks,physical,state`.
    pub fn rows(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for (path, node) in self.names.iter().filter(|(_, node)| self.files.contains_key(node)) {
            let mut last: Option<(u64, u64, u64, &str)> = None;
            let mut at = 0;
            while at < 1 << 40 {
                let run = FileRun { node: *node, first: at, count: (1 << 40) - at };
                let found = self.fs.map(run);
                let here = match found.place {
                    Place::Hole => None,
                    Place::Delayed => Some((0, "delayed")),
                    Place::Unwritten(DeviceId::MAIN, first) => Some((first, "unwritten")),
                    Place::Written(DeviceId::MAIN, first) => Some((first, "written")),
                    other => panic!("{other:?} is on the main device"),
                };
                let next = here.map(|(first, state)| (at, found.count, first, state));
                at += found.count;
                match (&mut last, next) {
                    (Some(last), Some(next))
                        if last.3 == next.3
                            && last.0 + last.1 == next.0
                            && last.2 + last.1 == next.2 =>
                    {
                        last.1 += next.1;
                    }
                    (last, next) => {
                        rows.extend(
                            last.map(|l| format!("{path},{},{},{},{}", l.0, l.1, l.2, l.3)),
                        );
                        *last = next;
                    }
                }
            }
            rows.extend(last.map(|l| format!("{path},{},{},{},{}", l.0, l.1, l.2, l.3)));
        }
        rows
    }
}
