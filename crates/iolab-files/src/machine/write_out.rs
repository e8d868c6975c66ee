//! Writing dirty pages out: runs, places, requests.

use iolab_model::Sector;
use iolab_model::error::Errno;

use super::engine::Machine;
use super::request::{Cargo, OutgoingKind, Want};
use super::task::{RunBy, TaskIndex};
use super::tree::DEVICE;
use crate::api::block::{BlockRun, DeviceId, FileRun, Mapped, Place};
use crate::api::frame::FrameFlags;

/// Pages of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub owner: u32,
    pub from: u64,
    /// Page after the last one.
    pub end: u64,
}

/// Circumstances of writing out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub runner: RunBy,
    /// A task waits, or will: requests are marked so.
    pub is_sync: bool,
    /// Write-back that can wait.
    pub is_background: bool,
    /// Most pages.
    pub pages_max: u64,
    /// No more once so many requests of the flusher are on their way.
    pub is_limited: bool,
}

/// Result of writing out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub pages: u64,
    /// Page at which to go on.
    pub next: u64,
    /// Stopped because the queue is full.
    pub is_full: bool,
    /// Dirty pages were passed over because they are being written.
    pub was_busy: bool,
}

/// Blocks that are neighbours in the file and on the device.
#[derive(Clone, Copy, Debug)]
struct Piece {
    device: DeviceId,
    block: u64,
    first: u64,
    count: u64,
}

impl Machine {
    /// Starts to write all dirty pages of a range; nobody waits.
    pub(super) fn push_out(&mut self, extent: Extent, runner: RunBy) {
        if self.own_cache().is_some() {
            return;
        }
        let manner = Manner {
            runner,
            is_sync: false,
            is_background: false,
            pages_max: u64::MAX,
            is_limited: false,
        };
        self.write_out(extent, manner);
    }

    /// Sends dirty pages of a range to the device.
    pub(super) fn write_out(&mut self, extent: Extent, manner: Manner) -> Sent {
        let Extent { owner, from, end } = extent;
        let mut sent = Sent { next: from, ..Sent::default() };
        let per_page = self.blocks_per_page();
        let longest = match owner {
            DEVICE => self.max_sectors() / 8,
            _ => (self.facts.allocate_blocks_max / per_page).max(1),
        };
        let mut pending: Option<Piece> = None;
        while sent.pages < manner.pages_max {
            if manner.is_limited && self.flusher_requests >= self.settings.requests_max {
                sent.is_full = true;
                break;
            }
            let Some(first) = self.cache.file(owner).next_dirty(sent.next, end) else {
                sent.next = end;
                break;
            };
            let room = longest.min(manner.pages_max - sent.pages).min(end - first);
            let count = self.begin_write_back(owner, first, room);
            sent.next = first + count.max(1);
            if count == 0 {
                sent.was_busy = true;
                continue;
            }
            sent.pages += count;
            if owner == DEVICE {
                self.send_metadata((first, count), manner);
            } else {
                self.place_pages(owner, (first, count), manner, &mut pending);
            }
        }
        if let Some(piece) = pending {
            self.send_piece(owner, piece, manner);
        }
        self.note_clean(owner);
        sent
    }

    /// Marks a run of dirty pages as being written; answers how many there are, 0 if the first one
    /// is still being written.
    fn begin_write_back(&mut self, owner: u32, first: u64, most: u64) -> u64 {
        let mut count = 0;
        while count < most {
            let Some(frame) = self.cache.frame(owner, first + count) else { break };
            let flags = self.cache.frames[frame].flags;
            if !flags.has(FrameFlags::DIRTY) || flags.has(FrameFlags::WRITE_BACK) {
                break;
            }
            self.cache.clear_dirty(frame);
            let flags = &mut self.cache.frames[frame].flags;
            flags.set(FrameFlags::WRITE_BACK);
            flags.clear(FrameFlags::WRITABLE);
            self.cache.write_back += 1;
            count += 1;
        }
        count
    }

    /// Finds or makes a place for pages, and sends them.
    fn place_pages(
        &mut self,
        owner: u32,
        (first, count): (u64, u64),
        manner: Manner,
        pending: &mut Option<Piece>,
    ) {
        let per_page = self.blocks_per_page();
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node_mut(owner);
        let id = node.id;
        node.write_back += count;
        // Blocks behind the end of the file are not written, except where a page is cut off.
        let last = node.size.div_ceil(block).min((first + count) * per_page);
        let (mut at, mut has_allocated) = (first * per_page, false);
        while at < last {
            let run = FileRun { node: id, first: at, count: last - at };
            if let Some(count) = self.hole_of_unit(run) {
                at += count;
                self.end_in_hole(owner, (at - count, at), last);
                continue;
            }
            let (device, to, count, is_new) = match self.place(run, manner) {
                Ok(found) => found,
                Err(errno) => {
                    self.tree.node_mut(owner).failures.note(errno);
                    break;
                }
            };
            let piece = Piece { device, block: to, first: at, count };
            at += count;
            has_allocated |= is_new;
            match pending {
                Some(open)
                    if open.device == device
                        && open.block + open.count == piece.block
                        && open.first + open.count == piece.first =>
                {
                    open.count += count;
                }
                _ => {
                    if let Some(open) = pending.replace(piece) {
                        self.send_piece(owner, open, manner);
                    }
                }
            }
        }
        if has_allocated
            && self.facts.sends_each_allocation
            && let Some(open) = pending.take()
        {
            self.send_piece(owner, open, manner);
        }
        // Pages that nothing was sent of: behind the end, or without space.
        let unsent = at.div_ceil(per_page).max(first)..first + count;
        let number = unsent.end.saturating_sub(unsent.start);
        if number > 0 {
            self.tree.node_mut(owner).write_back -= number;
            for page in unsent {
                if let Some(frame) = self.cache.frame(owner, page) {
                    self.cache.frames[frame].flags.clear(FrameFlags::WRITE_BACK);
                    self.cache.write_back -= 1;
                }
            }
        }
    }

    /// Blocks of a hole with which a run begins, where units are written whole though only a part
    /// of them was given a place: a file was cut there and has grown since.
    fn hole_of_unit(&self, run: FileRun) -> Option<u64> {
        self.facts.clusters?;
        let Mapped { place, count } = self.fs.map(run);
        (place == Place::Hole).then_some(count.clamp(1, run.count))
    }

    /// Pages that end in a hole: nothing more of them travels.
    fn end_in_hole(&mut self, owner: u32, (from, end): (u64, u64), last: u64) {
        let per_page = self.blocks_per_page();
        for page in from / per_page..end.div_ceil(per_page) {
            let last_block = ((page + 1) * per_page).min(last) - 1;
            let frame = self.cache.frame(owner, page).filter(|_| last_block < end);
            if let Some(frame) = frame {
                self.cache.frames[frame].flags.clear(FrameFlags::WRITE_BACK);
                self.cache.write_back -= 1;
                self.tree.node_mut(owner).write_back -= 1;
            }
        }
    }

    /// Place of blocks that are about to be written: device, first block, number, and whether they
    /// have it only now.
    fn place(&mut self, run: FileRun, manner: Manner) -> Result<(DeviceId, u64, u64, bool), Errno> {
        self.may_change()?;
        let mut run = run;
        if self.own_cache().is_none() {
            let Mapped { place, count } = self.fs.map(run);
            let count = count.clamp(1, run.count);
            run.count = count;
            if let Place::Written(device, first) = place {
                return Ok((device, first, count, false));
            }
        }
        let mut cx = self.context(manner.runner);
        let given = self.fs.allocate(&mut cx, run);
        self.charge(manner.runner, cx.effects.cpu.0);
        cx.effects.cpu = iolab_model::Ns(0);
        self.apply_alone(cx);
        let Mapped { place, count } = given?;
        let (device, first) = place.block().ok_or(Errno::ENOSPC)?;
        Ok((device, first, count.clamp(1, run.count), true))
    }

    /// Sends blocks in requests of at most the queue's size.
    fn send_piece(&mut self, owner: u32, piece: Piece, manner: Manner) {
        self.clean_aliases(BlockRun {
            device: piece.device,
            first: piece.block,
            count: piece.count,
        });
        let per_page = self.blocks_per_page();
        let sectors = u64::from(self.facts.block_bytes) / 512;
        let node_id = self.tree.node(owner).id;
        let end_of_file = self.tree.node(owner).size.div_ceil(u64::from(self.facts.block_bytes));
        let mut at = 0;
        for (now, segments) in self.in_pieces(owner, (piece.first, piece.count)) {
            let first = piece.first + at;
            let last = first + now;
            // A page belongs to the request that holds its last block that is written.
            let last_page =
                if last >= end_of_file { last.div_ceil(per_page) } else { last / per_page };
            let pages = (first / per_page, last_page - first / per_page);
            let want = Want {
                segments,
                is_sync: manner.is_sync,
                is_background: manner.is_background,
                ..Want::new(
                    OutgoingKind::Write,
                    piece.device,
                    Sector((piece.block + at) * sectors),
                    now * sectors,
                )
            };
            let run = FileRun { node: node_id, first, count: now };
            let id = self.send(want, Cargo::Write(owner, pages, run), manner.runner);
            self.carry_pages(id, owner, (first, now), (piece.device, piece.block + at));
            let node = self.tree.node_mut(owner);
            node.writes.push(id);
            node.bytes_out += now * u64::from(self.facts.block_bytes);
            at += now;
        }
    }

    /// Forgets metadata that lay where data are about to be written: nobody needs them any more,
    /// and they must not follow.
    ///
    /// Source: Linux fs/buffer.c (`clean_bdev_aliases`).
    pub(super) fn clean_aliases(&mut self, run: BlockRun) {
        let (from, end) = self.metadata_pages(run);
        let is_whole = self.facts.block_bytes >= 4096;
        if is_whole && self.cache.file(DEVICE).next_dirty(from, end).is_some() {
            self.cache.forget(DEVICE, from, end, |_| {});
            self.note_clean(DEVICE);
        }
    }

    fn send_metadata(&mut self, (first, count): (u64, u64), manner: Manner) {
        let (device, page) = self.metadata_place(first);
        let want = Want {
            is_sync: manner.is_sync,
            is_meta: true,
            is_background: manner.is_background,
            ..Want::new(OutgoingKind::Write, device, Sector(page * 8), count * 8)
        };
        let per_page = self.blocks_per_page();
        let run = BlockRun { device, first: page * per_page, count: count * per_page };
        let id = self.send(want, Cargo::Metadata((first, count), run), manner.runner);
        self.tree.node_mut(DEVICE).writes.push(id);
    }

    /// A task waits for all data of a file that are on their way. Failures are told at flushes;
    /// only a job of the file system fails with its metadata, or with data in its transaction.
    pub(super) fn await_writes(&mut self, index: TaskIndex, owner: u32) {
        let is_job = matches!(self.task(index).runner, RunBy::FileSystem(_));
        let minds = is_job && (owner == DEVICE || self.own_cache().is_some());
        let writes = core::mem::take(&mut self.tree.node_mut(owner).writes);
        for &id in &writes {
            self.await_end(index, id, minds);
        }
        self.tree.node_mut(owner).writes = writes;
    }
}
