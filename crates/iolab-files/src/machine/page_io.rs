//! Requests: how they are made, what their end does, and reading pages in.

use iolab_model::Sector;
use iolab_model::error::Errno;

use super::engine::{BACKING, Machine};
use super::request::{Cargo, OnItsWay, Outgoing, OutgoingId, OutgoingKind, Want};
use super::task::{RunBy, TaskIndex};
use super::tree::DEVICE;
use crate::api::block::{FileRun, Mapped, Place};
use crate::api::frame::FrameFlags;

impl Machine {
    /// Makes a request; it leaves when its submitter's processor gets to it.
    pub(super) fn send(&mut self, want: Want, cargo: Cargo, runner: RunBy) -> OutgoingId {
        let is_flushers = runner == RunBy::Flusher;
        let state = OnItsWay { cargo, waiters: Vec::new(), is_flushers };
        let id = if let Some(id) = self.free_requests.pop() {
            self.requests[id.0 as usize] = state;
            id
        } else {
            self.requests.push(state);
            OutgoingId(self.requests.len() as u32 - 1)
        };
        self.flusher_requests += u32::from(is_flushers);
        let bytes = want.sectors * 512;
        match (want.kind, want.is_meta) {
            (OutgoingKind::Read, _) => self.counts.read_bytes += bytes,
            (OutgoingKind::Write, false) => self.counts.data_bytes += bytes,
            (OutgoingKind::Write, true) => self.counts.metadata_bytes += bytes,
            (OutgoingKind::Flush, _) => self.counts.flushes += 1,
            (OutgoingKind::Discard, _) => {}
        }
        self.carry_metadata(id, &want);
        let at = self.charge(runner, self.settings.cost.submit_ns);
        // All that a transaction writes is in the file system's own queue before any of it goes.
        let is_together = self.own_cache().is_some() && matches!(runner, RunBy::FileSystem(_));
        let at = if is_together { self.now } else { at };
        self.out.push(Outgoing {
            id,
            at,
            kind: want.kind,
            device: want.device,
            sector: want.sector,
            sectors: want.sectors as u32,
            segments: want.segments,
            is_sync: want.is_sync,
            is_preflush: want.is_preflush,
            is_fua: want.is_fua,
            is_meta: want.is_meta,
            is_background: want.is_background,
            runner,
        });
        id
    }

    /// A task waits for a request, and fails with it.
    pub(super) fn await_request(&mut self, index: TaskIndex, id: OutgoingId) {
        self.await_end(index, id, true);
    }

    /// A task waits for the end of a request; `minds`: it fails with it.
    pub(super) fn await_end(&mut self, index: TaskIndex, id: OutgoingId, minds: bool) {
        self.requests[id.0 as usize].waiters.push((index, minds));
        self.task(index).pending += 1;
    }

    /// A task waits for a page that is being read, and fails with it.
    pub(super) fn await_page(&mut self, index: TaskIndex, owner: u32, page: u64) {
        self.await_page_end(index, owner, page, true);
    }

    /// A task waits until a page is not being read any more; `minds`: it fails with it.
    pub(super) fn await_page_end(&mut self, index: TaskIndex, owner: u32, page: u64, minds: bool) {
        let Some(frame) = self.cache.frame(owner, page) else { return };
        let page = self.cache.frames[frame];
        if !page.flags.has(FrameFlags::UP_TO_DATE) {
            self.await_end(index, OutgoingId(page.content as u32), minds);
        }
    }

    /// Largest request, in sectors.
    pub(super) fn max_sectors(&self) -> u64 {
        let most = self.facts.clusters.map_or(u64::MAX, |clusters| clusters.request_bytes / 512);
        (self.settings.max_sectors_kb * 2).min(most).max(8)
    }

    /// Blocks and pieces of memory of each request in which neighbouring blocks of a file travel: a
    /// bio takes so many, and is cut as the queue cuts it.
    pub(super) fn in_pieces(&self, owner: u32, (first, count): (u64, u64)) -> Vec<(u64, u32)> {
        let (mut at, most, mut pieces) = (0, self.request_blocks(), Vec::new());
        while at < count {
            let (whole, _) = self.in_one_bio(owner, (first + at, count - at));
            let end = at + whole;
            while at < end {
                let (blocks, memory) = self.in_one_bio(owner, (first + at, most.min(end - at)));
                pieces.push((blocks, memory));
                at += blocks;
            }
        }
        pieces
    }

    /// Blocks of a file that one bio takes, of those that are to travel together, and the pieces of
    /// memory that they lie in.
    fn in_one_bio(&self, owner: u32, (first, count): (u64, u64)) -> (u64, u32) {
        let per_page = self.blocks_per_page();
        let (page, end) = (first / per_page, (first + count).div_ceil(per_page));
        let (pages, memory) = self.memory_of(owner, (page, end - page));
        (((page + pages) * per_page).min(first + count) - first, memory)
    }

    /// Memory of pages that travel together: how many of them fit into one bio, and in how many
    /// pieces they lie. A folio is one piece, cut at 64 KiB as for devices that state no limit of
    /// their own.
    ///
    /// Source: Linux include/linux/bio.h (`BIO_MAX_VECS`), include/linux/blkdev.h
    /// (`BLK_MAX_SEGMENT_SIZE`).
    fn memory_of(&self, owner: u32, (first, count): (u64, u64)) -> (u64, u32) {
        const VECTORS_MAX: u32 = 256;
        const PIECE_PAGES: u64 = 16;
        if self.facts.clusters.is_some() || self.own_cache().is_some() {
            return (count, 0);
        }
        let (mut page, end, mut vectors, mut pieces) = (first, first + count, 0, 0);
        while page < end && vectors < VECTORS_MAX {
            let order = self.cache.frame(owner, page).map_or(0, |at| self.cache.frames[at].order);
            let next = ((page >> order << order) + (1 << order)).min(end);
            pieces += (next - page).div_ceil(PIECE_PAGES) as u32;
            vectors += 1;
            page = next;
        }
        (page - first, pieces)
    }

    /// A request has ended.
    pub fn request_done(&mut self, id: OutgoingId, status: Result<(), Errno>) {
        let request = &mut self.requests[id.0 as usize];
        let waiters = core::mem::take(&mut request.waiters);
        let (cargo, is_flushers) = (request.cargo, request.is_flushers);
        self.free_requests.push(id);
        self.flusher_requests -= u32::from(is_flushers);
        self.arrived(id, status);
        match cargo {
            Cargo::Plain | Cargo::Direct(..) => {}
            Cargo::Read(owner, first, count) => self.pages_read(owner, (first, count), status),
            Cargo::Write(owner, pages, run) => self.pages_written(id, (owner, pages, run), status),
            Cargo::Metadata((first, count), run) => {
                self.tree.node_mut(DEVICE).writes.retain(|other| *other != id);
                self.end_write_back(DEVICE, first, count);
                self.throttle.written(self.now, BACKING, count);
                if status.is_err() {
                    self.metadata_failed(run);
                } else {
                    let mut cx = self.context(RunBy::Flusher);
                    self.fs.metadata_written(&mut cx, run);
                    self.apply_alone(cx);
                }
            }
        }
        if let (Cargo::Direct(owner, run), Ok(())) = (cargo, status) {
            let block = u64::from(self.facts.block_bytes);
            let size = self.tree.node(owner).size.min(run.end() * block);
            let mut cx = self.context(RunBy::Flusher);
            self.fs.written(&mut cx, run, iolab_model::Bytes(size));
            self.apply_alone(cx);
        }
        let cost = self.settings.cost.complete_ns;
        for (index, minds) in waiters {
            if let Err(errno) = status
                && minds
            {
                self.task(index).fail(errno);
            }
            self.wake(index, cost);
        }
        let has_room = self.flusher_requests < self.settings.requests_max;
        if let Some(index) = self.flusher_waits.take_if(|_| is_flushers && has_room) {
            self.wake(index, 0);
        }
    }

    fn pages_read(&mut self, owner: u32, (first, count): (u64, u64), status: Result<(), Errno>) {
        for index in first..first + count {
            let Some(frame) = self.cache.frame(owner, index) else { continue };
            if status.is_ok() {
                self.cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
                self.cache.frames[frame].content = 0;
            }
        }
        if status.is_err() {
            self.has_failed_reads = true;
            for index in first..first + count {
                self.cache.drop_failed(owner, index);
            }
        }
    }

    fn pages_written(
        &mut self,
        id: OutgoingId,
        (owner, (first, count), run): (u32, (u64, u64), FileRun),
        status: Result<(), Errno>,
    ) {
        self.end_write_back(owner, first, count);
        self.throttle.written(self.now, BACKING, count);
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node_mut(owner);
        node.writes.retain(|other| *other != id);
        node.write_back -= count;
        node.bytes_out -= run.count * block;
        let (bytes_out, size) = (node.bytes_out, node.size.min(run.end() * block));
        let mut free = Vec::new();
        node.held_back.retain(|held| {
            let stays = bytes_out > held.until;
            if !stays {
                free.push(*held);
            }
            stays
        });
        match status {
            Ok(()) => {
                let mut cx = self.context(RunBy::Flusher);
                self.fs.written(&mut cx, run, iolab_model::Bytes(size));
                self.apply_alone(cx);
            }
            Err(errno) => {
                node.failures.note(errno);
            }
        }
        self.ask_for_room_again();
        for held in free {
            self.counts.throttled += self.now - held.since;
            self.wake(held.task, 0);
        }
    }

    fn end_write_back(&mut self, owner: u32, first: u64, count: u64) {
        for index in first..first + count {
            if let Some(frame) = self.cache.frame(owner, index) {
                let flags = &mut self.cache.frames[frame].flags;
                if flags.has(FrameFlags::WRITE_BACK) {
                    flags.clear(FrameFlags::WRITE_BACK);
                    self.cache.write_back -= 1;
                }
            }
        }
    }

    /// Effects of a call that no task waits for.
    pub(super) fn apply_alone(&mut self, cx: crate::api::context::Context) {
        if cx.effects.is_empty() {
            self.spare_runs = (cx.effects.reads, cx.effects.dirtied);
            return;
        }
        let index = self.spawn(RunBy::FileSystem(0), iolab_model::op::Token(0));
        self.apply(index, cx);
        self.task(index).wait_tid = None;
        self.run(index);
    }

    /// Starts to read pages that were just added to the cache; `is_ahead`: nobody asked for them.
    pub(super) fn read_in(
        &mut self,
        owner: u32,
        (first, count): (u64, u64),
        runner: RunBy,
        is_ahead: bool,
    ) {
        let per_page = self.blocks_per_page();
        let block_sectors = u64::from(self.facts.block_bytes) / 512;
        let id = self.tree.node(owner).id;
        let (mut at, end) = (first * per_page, (first + count) * per_page);
        let end_of_file = self.tree.node(owner).size.div_ceil(u64::from(self.facts.block_bytes));
        let is_background = is_ahead && self.own_cache().is_some();
        while at < end {
            let run = FileRun { node: id, first: at, count: end - at };
            let Mapped { place, count } = self.fs.map(run);
            let count = count.clamp(1, end - at);
            let Place::Written(device, block) = place else {
                // Nothing on the device: zeros.
                self.zero_pages(owner, at / per_page, (at + count).div_ceil(per_page));
                at += count;
                continue;
            };
            let mut sent = 0;
            for (now, segments) in self.in_pieces(owner, (at, count)) {
                // A page belongs to the request that holds its last block.
                let last = at + sent + now;
                let last_page =
                    if last >= end_of_file { last.div_ceil(per_page) } else { last / per_page };
                let pages = ((at + sent) / per_page, last_page);
                let sector = Sector((block + sent) * block_sectors);
                let want = Want {
                    segments,
                    is_background,
                    ..Want::new(OutgoingKind::Read, device, sector, now * block_sectors)
                };
                let cargo = Cargo::Read(owner, pages.0, pages.1 - pages.0);
                let request = self.send(want, cargo, runner);
                self.fetch(owner, (at + sent, now), (device, block + sent));
                for page in pages.0..pages.1 {
                    if let Some(frame) = self.cache.frame(owner, page) {
                        self.cache.frames[frame].content = u64::from(request.0);
                        self.cache.frames[frame].flags.clear(FrameFlags::UP_TO_DATE);
                    }
                }
                sent += now;
            }
            at += count;
        }
    }

    fn zero_pages(&mut self, owner: u32, from: u64, end: u64) {
        for page in from..end {
            let Some(frame) = self.cache.frame(owner, page) else { continue };
            if self.cache.frames[frame].content == 0 {
                self.cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            }
        }
    }
}
