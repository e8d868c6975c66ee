//! Operations on names, and the few on whole files that are no transfers.

use std::mem::take;
use std::path::PathBuf;

use iolab_model::Bytes;
use iolab_model::error::Errno;
use iolab_model::op::{Access, OpenHow};

use super::call::HandleInfo;
use super::engine::Machine;
use super::stream::Stream;
use super::task::{Flow, TaskIndex};
use super::tree::{EISDIR, ENOTEMPTY, Located};
use crate::api::block::{FileRun, Place};
use crate::api::file_system::{ClosedHandle, Entry, NodeKind, Reshape, Touch, Use};
use crate::api::frame::FrameFlags;
use crate::api::read_ahead::{Hint, ReadAhead};

/// Operation on a name or a whole file.
#[derive(Debug)]
pub(super) enum Naming {
    Create {
        path: PathBuf,
        slot: (u32, u32),
        how: OpenHow,
    },
    Open {
        path: PathBuf,
        slot: (u32, u32),
        how: OpenHow,
    },
    Close(HandleInfo),
    Unlink(PathBuf),
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    MakeDirectory(PathBuf),
    RemoveDirectory(PathBuf),
    List(PathBuf),
    Stat(PathBuf),
    Truncate {
        owner: u32,
        to: u64,
    },
    Reshape {
        owner: u32,
        range: (u64, u64),
        how: Reshape,
        /// The file does not become longer.
        keeps_length: bool,
    },
    /// A file without names and handles goes.
    Evict(u32),
}

/// Such an operation, step by step.
#[derive(Debug)]
pub(super) struct NameWork {
    naming: Naming,
    phase: u8,
    /// True once the handle that it is for is open.
    has_opened: bool,
}

impl NameWork {
    pub const fn new(naming: Naming) -> Self {
        Self { naming, phase: 0, has_opened: false }
    }

    /// Lane and handle that it has opened, while something of it is still waited for.
    pub const fn opened(&self) -> Option<(u32, u32)> {
        match self.naming {
            Naming::Create { slot, .. } | Naming::Open { slot, .. } if self.has_opened => {
                Some(slot)
            }
            _ => None,
        }
    }
}

impl Machine {
    pub(super) fn step_name(&mut self, index: TaskIndex, work: &mut NameWork) -> Flow {
        work.phase += 1;
        let result = match (&work.naming, work.phase) {
            (&Naming::Truncate { owner, .. } | &Naming::Reshape { owner, .. }, 1) => {
                self.take_lock(index, owner, Use::Write);
                Ok(Flow::More)
            }
            (naming, 1) => {
                self.look_for_names(index, naming);
                Ok(Flow::More)
            }
            (_, 2) => self.may_act(&work.naming).and_then(|()| self.act(index, work)),
            (&Naming::Truncate { owner, to }, 3) => {
                if to < self.tree.node(owner).size && self.has_lost_page(owner, &[to]) {
                    work.phase = 1;
                    return Flow::More;
                }
                self.cut_file(index, owner, to).map(|()| Flow::Done)
            }
            (&Naming::Reshape { owner, range, how, keeps_length }, 3) => {
                let edges = self.edges_of(owner, range);
                if how != Reshape::Allocate
                    && (self.awaits_range(index, owner, range) || self.has_lost_page(owner, &edges))
                {
                    work.phase = 1;
                    return Flow::More;
                }
                self.reshape(index, owner, range, (how, keeps_length)).map(|()| Flow::Done)
            }
            (&Naming::Evict(owner), _) => Ok(self.evict_file(index, owner)),
            _ => Ok(Flow::Done),
        };
        result.unwrap_or_else(Flow::Failed)
    }

    /// Reads entries and attributes that nobody remembers.
    fn look_for_names(&mut self, index: TaskIndex, naming: &Naming) {
        let path = match naming {
            Naming::Create { path, .. }
            | Naming::Open { path, .. }
            | Naming::Unlink(path)
            | Naming::MakeDirectory(path)
            | Naming::RemoveDirectory(path)
            | Naming::List(path)
            | Naming::Stat(path)
            | Naming::Rename { from: path, .. } => path,
            Naming::Close(_)
            | Naming::Truncate { .. }
            | Naming::Reshape { .. }
            | Naming::Evict(_) => return,
        };
        let Ok(owner) = self.tree.find(path) else { return };
        if self.tree.node(owner).is_known {
            return;
        }
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        if let Ok(at) = self.tree.locate(path) {
            let directory = self.tree.node(at.directory).id;
            self.fs.look_up(&mut cx, Entry { directory, name: at.name });
        }
        let id = self.tree.node(owner).id;
        self.fs.touch(&mut cx, id, Touch::Look);
        self.tree.node_mut(owner).is_known = true;
        self.apply(index, cx);
    }

    /// Refuses what a file system that was stopped does not do any more.
    fn may_act(&self, naming: &Naming) -> Result<(), Errno> {
        match naming {
            Naming::Close(_) | Naming::Evict(_) => Ok(()),
            Naming::List(_) | Naming::Stat(_) => self.may_read(),
            Naming::Open { how, .. } if !how.is_writable && !how.is_truncating => self.may_read(),
            _ => self.may_change(),
        }
    }

    fn act(&mut self, index: TaskIndex, work: &mut NameWork) -> Result<Flow, Errno> {
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        let result = match &mut work.naming {
            Naming::Create { path, slot, how } => {
                let (path, slot, how) = (take(path), *slot, *how);
                work.has_opened = true;
                self.create(&mut cx, &path, (slot, how)).map(|()| Flow::More)
            }
            Naming::Open { path, slot, how } => {
                let (path, slot, how) = (take(path), *slot, *how);
                work.has_opened = true;
                self.open(index, &mut cx, &path, (slot, how)).map(|()| Flow::More)
            }
            Naming::Close(info) => {
                let info = *info;
                self.close(index, &mut cx, info);
                Ok(Flow::Done)
            }
            Naming::Unlink(path) => {
                let path = take(path);
                self.unlink(index, &mut cx, &path).map(|()| Flow::Done)
            }
            Naming::Rename { from, to } => {
                let (from, to) = (take(from), take(to));
                self.rename(index, &mut cx, &from, &to).map(|()| Flow::Done)
            }
            Naming::MakeDirectory(path) => {
                let path = take(path);
                self.make_directory(&mut cx, &path).map(|()| Flow::Done)
            }
            Naming::RemoveDirectory(path) => {
                let path = take(path);
                self.remove_directory(&mut cx, &path).map(|()| Flow::Done)
            }
            Naming::List(path) => {
                let path = take(path);
                self.list(&mut cx, &path).map(|()| Flow::Done)
            }
            Naming::Stat(path) => self.tree.find(path).map(|owner| {
                let size = self.tree.node(owner).size;
                self.task(index).bytes = Bytes(size);
                Flow::Done
            }),
            Naming::Truncate { owner, to } => {
                let (owner, to) = (*owner, *to);
                self.forget_behind(index, &mut cx, owner, to);
                if to < self.tree.node(owner).size {
                    self.read_edges(index, owner, &[to]);
                }
                Ok(Flow::More)
            }
            Naming::Reshape { owner, range, how, .. } => {
                if *how != Reshape::Allocate {
                    let (owner, range) = (*owner, *range);
                    let edges = self.edges_of(owner, range);
                    self.read_edges(index, owner, &edges);
                }
                Ok(Flow::More)
            }
            Naming::Evict(owner) => {
                let owner = *owner;
                self.forget_behind(index, &mut cx, owner, 0);
                Ok(Flow::More)
            }
        };
        self.apply(index, cx);
        result
    }

    fn list(
        &mut self,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
    ) -> Result<(), Errno> {
        let node = self.tree.node(self.tree.find(path)?);
        let id = node.id;
        node.children.as_ref().ok_or(super::tree::ENOTDIR)?;
        self.fs.list(cx, id);
        Ok(())
    }

    fn entry_at<'a>(&self, at: Located<'a>) -> Entry<'a> {
        Entry { directory: self.tree.node(at.directory).id, name: at.name }
    }

    fn create(
        &mut self,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
        (slot, how): ((u32, u32), OpenHow),
    ) -> Result<(), Errno> {
        let at = self.tree.locate(path)?;
        if self.tree.child(at).is_some() {
            return Err(Errno::EEXIST);
        }
        let id = self.fs.create(cx, self.entry_at(at), NodeKind::File)?;
        let owner = self.tree.add(at, id, false);
        self.cache.open_file(owner);
        self.add_handle(cx, owner, slot, how);
        Ok(())
    }

    fn add_handle(
        &mut self,
        cx: &mut crate::api::context::Context,
        owner: u32,
        (lane, handle): (u32, u32),
        how: OpenHow,
    ) {
        self.forget_held((lane, handle));
        let read = self.rule.opened(self.settings.read_ahead_kb / 4);
        let (hint, stream) = (Hint::Normal, Stream::default());
        let seen = self.tree.node(owner).failures.seen_at_open();
        let info = HandleInfo { owner, how, position: 0, read, hint, stream, mapped: 0, seen };
        let handles = &mut self.lanes[lane as usize].handles;
        let slot = handle as usize;
        if handles.len() <= slot {
            handles.resize(slot + 1, None);
        }
        handles[slot] = Some(info);
        let node = self.tree.node_mut(owner);
        node.handles += 1;
        node.writers += u32::from(how.is_writable);
        if how.access == Access::Mapped && node.mapped.pages_max == 0 {
            node.mapped = read;
        }
        let id = node.id;
        self.fs.opened(cx, id, how.is_writable);
    }

    fn open(
        &mut self,
        index: TaskIndex,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
        (slot, how): ((u32, u32), OpenHow),
    ) -> Result<(), Errno> {
        let owner = self.tree.find(path)?;
        if self.tree.node(owner).children.is_some() {
            return Err(EISDIR);
        }
        self.add_handle(cx, owner, slot, how);
        if how.is_truncating && self.tree.node(owner).size > 0 {
            let work = NameWork::new(Naming::Truncate { owner, to: 0 });
            self.task(index).works.push(super::task::Work::Name(work));
        }
        Ok(())
    }

    fn close(&mut self, index: TaskIndex, cx: &mut crate::api::context::Context, info: HandleInfo) {
        let dirty_blocks = self.cache.file(info.owner).dirty() * self.blocks_per_page();
        let node = self.tree.node_mut(info.owner);
        node.handles -= 1;
        node.mappings -= u32::from(info.mapped > 0);
        node.writers -= u32::from(info.how.is_writable);
        let was_writer = info.how.is_writable;
        let (id, writers, handles) = (node.id, node.writers, node.handles);
        let closed = ClosedHandle { was_writer, writers, handles, dirty_blocks };
        self.fs.closed(cx, id, closed);
        self.evict_if_gone(index, info.owner);
    }

    fn evict_if_gone(&mut self, index: TaskIndex, owner: u32) {
        let node = self.tree.node(owner);
        if node.links == 0 && node.handles == 0 {
            let work = NameWork::new(Naming::Evict(owner));
            self.task(index).works.push(super::task::Work::Name(work));
        }
    }

    fn unlink(
        &mut self,
        index: TaskIndex,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
    ) -> Result<(), Errno> {
        let at = self.tree.locate(path)?;
        let owner = self.tree.child(at).ok_or(Errno::ENOENT)?;
        if self.tree.node(owner).children.is_some() {
            return Err(EISDIR);
        }
        let id = self.tree.node(owner).id;
        self.fs.unlink(cx, self.entry_at(at), id)?;
        self.tree.detach(at);
        self.tree.node_mut(owner).links -= 1;
        self.evict_if_gone(index, owner);
        Ok(())
    }

    fn rename(
        &mut self,
        index: TaskIndex,
        cx: &mut crate::api::context::Context,
        from: &std::path::Path,
        to: &std::path::Path,
    ) -> Result<(), Errno> {
        let (old, new) = (self.tree.locate(from)?, self.tree.locate(to)?);
        let owner = self.tree.child(old).ok_or(Errno::ENOENT)?;
        let replaced = self.tree.child(new);
        if replaced == Some(owner) {
            return Ok(());
        }
        if replaced.is_some_and(|node| self.tree.node(node).children.is_some()) {
            return Err(EISDIR);
        }
        let id = self.tree.node(owner).id;
        let gone = replaced.map(|node| self.tree.node(node).id);
        self.fs.rename(cx, (self.entry_at(old), id), self.entry_at(new), gone)?;
        self.tree.detach(old);
        self.tree.attach(new, owner);
        if let Some(replaced) = replaced {
            self.tree.node_mut(replaced).links -= 1;
            self.evict_if_gone(index, replaced);
        }
        Ok(())
    }

    fn make_directory(
        &mut self,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
    ) -> Result<(), Errno> {
        let at = self.tree.locate(path)?;
        if self.tree.child(at).is_some() {
            return Err(Errno::EEXIST);
        }
        let id = self.fs.create(cx, self.entry_at(at), NodeKind::Directory)?;
        let owner = self.tree.add(at, id, true);
        self.cache.open_file(owner);
        Ok(())
    }

    fn remove_directory(
        &mut self,
        cx: &mut crate::api::context::Context,
        path: &std::path::Path,
    ) -> Result<(), Errno> {
        let at = self.tree.locate(path)?;
        let owner = self.tree.child(at).ok_or(Errno::ENOENT)?;
        let children = self.tree.node(owner).children.as_ref().ok_or(super::tree::ENOTDIR)?;
        if !children.is_empty() {
            return Err(ENOTEMPTY);
        }
        let id = self.tree.node(owner).id;
        self.fs.unlink(cx, self.entry_at(at), id)?;
        self.fs.evict(cx, id);
        self.tree.detach(at);
        self.tree.release(owner);
        Ok(())
    }

    /// Throws away pages from a length on; the task waits for those that are on their way.
    fn forget_behind(
        &mut self,
        index: TaskIndex,
        cx: &mut crate::api::context::Context,
        owner: u32,
        to: u64,
    ) {
        let from = to.div_ceil(4096);
        let id = self.tree.node(owner).id;
        let per_page = self.blocks_per_page();
        let mut dirty: Vec<u64> = Vec::new();
        self.cache.forget(owner, from, u64::MAX, |page| dirty.push(page));
        for page in dirty {
            let run = FileRun { node: id, first: page * per_page, count: per_page };
            if self.fs.map(run).place == Place::Delayed {
                self.fs.abandon(cx, run);
            }
        }
        self.note_clean(owner);
        self.await_writes(index, owner);
        for page in self.cache.busy_pages(owner, from) {
            self.await_page_end(index, owner, page, false);
        }
    }

    fn cut_file(&mut self, index: TaskIndex, owner: u32, to: u64) -> Result<(), Errno> {
        self.cache.forget(owner, to.div_ceil(4096), u64::MAX, |_| {});
        let node = self.tree.node(owner);
        let (id, from) = (node.id, node.size);
        if to < from {
            // Before anything of it is written.
            self.tree.node_mut(owner).size = to;
            // Up to the end of its page, whatever lies behind its end.
            self.clear(owner, (to, from.next_multiple_of(4096)));
            self.dirty_edges(index, owner, &[to]);
        }
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        let result = self.fs.truncate(&mut cx, id, Bytes(from), Bytes(to));
        self.apply(index, cx);
        self.tree.node_mut(owner).size = if result.is_ok() { to } else { from };
        result
    }

    fn evict_file(&mut self, index: TaskIndex, owner: u32) -> Flow {
        self.cache.forget(owner, 0, u64::MAX, |_| {});
        let busy = self.cache.busy_pages(owner, 0);
        if !busy.is_empty() || !self.tree.node(owner).writes.is_empty() {
            self.await_writes(index, owner);
            for page in busy {
                self.await_page_end(index, owner, page, false);
            }
            return Flow::More;
        }
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        let id = self.tree.node(owner).id;
        self.fs.evict(&mut cx, id);
        self.tree.release(owner);
        self.apply(index, cx);
        Flow::Done
    }

    /// Waits for pages of a range that are on their way; tells whether there are any.
    ///
    /// Source: Linux mm/truncate.c (`truncate_inode_pages_range`).
    pub(super) fn awaits_range(
        &mut self,
        index: TaskIndex,
        owner: u32,
        (at, end): (u64, u64),
    ) -> bool {
        let last = end.div_ceil(4096).min(self.cache.file(owner).page_end());
        let is_busy = |page: &u64| {
            self.cache.frame(owner, *page).is_some_and(|frame| {
                let flags = self.cache.frames[frame].flags;
                flags.has(FrameFlags::WRITE_BACK) || !flags.has(FrameFlags::UP_TO_DATE)
            })
        };
        let busy: Vec<u64> = (at / 4096..last).filter(is_busy).collect();
        for &page in &busy {
            self.await_page_end(index, owner, page, false);
        }
        if !busy.is_empty() {
            self.await_writes(index, owner);
        }
        self.task(index).pending > 0
    }

    fn reshape(
        &mut self,
        index: TaskIndex,
        owner: u32,
        (at, end): (u64, u64),
        (how, keeps_length): (Reshape, bool),
    ) -> Result<(), Errno> {
        // Where units are written whole, they are given back whole.
        let block = match self.facts.clusters {
            Some(_) if how != Reshape::Allocate => self.whole_bytes(),
            _ => u64::from(self.facts.block_bytes),
        };
        let node = self.tree.node(owner);
        let (id, size) = (node.id, node.size);
        // Blocks that are given back are whole ones; those that are given cover the range.
        let (first, last) = match how {
            Reshape::Allocate => (at / block, end.div_ceil(block)),
            Reshape::Punch | Reshape::Zero => {
                (at.div_ceil(block), end.min(size.next_multiple_of(block)) / block)
            }
        };
        let end_of_file = size;
        let size = if keeps_length { size } else { size.max(end) };
        if first < last {
            let blocks = block / u64::from(self.facts.block_bytes);
            let run = FileRun { node: id, first: first * blocks, count: (last - first) * blocks };
            let runner = self.task(index).runner;
            let mut cx = self.context(runner);
            let result = self.fs.reshape(&mut cx, run, how, Bytes(size));
            self.apply(index, cx);
            result?;
        }
        if how != Reshape::Allocate {
            self.clear(owner, (at, end.min(end_of_file)));
            let edges = self.edges_of(owner, (at, end));
            self.dirty_edges(index, owner, &edges);
            let unit = self.whole_bytes();
            let (from, until) = (at.next_multiple_of(unit), end / unit * unit);
            if from < until {
                self.cache.forget(owner, from / 4096, until / 4096, |_| {});
            }
        }
        self.tree.node_mut(owner).size = size;
        Ok(())
    }
}
