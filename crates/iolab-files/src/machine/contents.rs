//! Data of files on their ways: between a process and pages, pages and devices.
//!
//! Kept only once somebody looks at them ([`Machine::keep_data`]); nothing that happens, and no
//! time, depends on them. A page has its data with its frame, and loses them with it. A request
//! that writes carries the data that its pages had when it was made, and they are on the device
//! when it has ended; one that reads brings those that are on the device when it is made.
//!
//! Left out: metadata. Where a block is a page or longer, what was written as metadata is marked,
//! so that it is no file's data.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::Sector;
use iolab_model::error::Errno;
use iolab_model::op::Token;

use super::engine::Machine;
use super::request::{OutgoingId, OutgoingKind, Want};
use super::task::{RunBy, TaskIndex};
use crate::api::block::{DeviceId, FileRun, Mapped, Place};
use crate::api::frame::PAGE_SECTORS;
use crate::sector::{DeviceData, SectorData, by_sector};

/// Byte of which everything that was written as metadata consists.
const METADATA: u8 = 0xa5;

/// Sectors below which nothing is given up: 64 MiB.
const SWEEPS_FROM: usize = 1 << 17;

/// Data of files, outside pages.
#[derive(Debug, Default)]
pub(super) struct Contents {
    devices: DeviceData,
    /// Data that requests carry to a device.
    carried: BTreeMap<OutgoingId, Carried>,
    /// Sectors of devices at which those are given up that no file has any more.
    sweeps_at: usize,
    /// Buffers of transfers in progress.
    buffers: BTreeMap<(u32, Token), Buffer>,
    /// Bytes in the buffers of streams that were read before they were asked for.
    held: BTreeMap<Stream, VecDeque<u8>>,
    /// Bytes in the buffers of streams that are not yet written.
    waiting: BTreeMap<Stream, VecDeque<u8>>,
}

/// A stream of the C library: its lane, and its handle there.
type Stream = (u32, u32);

#[derive(Debug)]
struct Carried {
    device: DeviceId,
    sector: u64,
    data: Vec<SectorData>,
}

/// Buffer of a process, and the bytes of it that were copied so far.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    moved: usize,
}

impl Machine {
    /// Keeps the data of files from now on; whatever was written before is zeros.
    pub fn keep_data(&mut self) {
        self.contents.get_or_insert_default();
        self.cache.frames.keep_data();
    }

    /// Hands over the buffer of a transfer that is about to be submitted.
    pub fn lend(&mut self, lane: u32, token: Token, bytes: Vec<u8>) {
        if let Some(contents) = &mut self.contents {
            contents.buffers.insert((lane, token), Buffer { bytes, moved: 0 });
        }
    }

    /// Gives back the buffer of a transfer that has ended, or was refused.
    pub fn give_back(&mut self, lane: u32, token: Token) -> Option<Vec<u8>> {
        let buffer = self.contents.as_mut()?.buffers.remove(&(lane, token))?;
        Some(buffer.bytes)
    }

    /// Tell whether data are kept.
    pub(super) const fn keeps_data(&self) -> bool {
        self.contents.is_some()
    }

    // --- Between a process and pages ---

    /// The next bytes that a task writes: those of its buffer, or of a stream's.
    pub(super) fn bytes_from(
        &mut self,
        index: TaskIndex,
        count: u64,
        stream: Option<u32>,
    ) -> Vec<u8> {
        let (key, count) = (self.key(index), count as usize);
        let Some(contents) = &mut self.contents else { return Vec::new() };
        let mut bytes = match (key, stream) {
            (Some((lane, _)), Some(handle)) => {
                let waiting = contents.waiting.entry((lane, handle)).or_default();
                waiting.drain(..count.min(waiting.len())).collect()
            }
            (Some(key), None) => contents.buffers.get_mut(&key).map_or_else(Vec::new, |buffer| {
                let from = buffer.moved.min(buffer.bytes.len());
                let end = (from + count).min(buffer.bytes.len());
                buffer.moved = end;
                buffer.bytes[from..end].to_vec()
            }),
            (None, _) => Vec::new(),
        };
        // Whoever writes without a buffer writes zeros.
        bytes.resize(count, 0);
        bytes
    }

    /// Gives a task the next bytes that it reads: into its buffer, or into a stream's.
    pub(super) fn bytes_to(&mut self, index: TaskIndex, bytes: &[u8], stream: Option<u32>) {
        let key = self.key(index);
        let Some(contents) = &mut self.contents else { return };
        match (key, stream) {
            (Some((lane, _)), Some(handle)) => {
                contents.held.entry((lane, handle)).or_default().extend(bytes);
            }
            (Some(key), None) => {
                if let Some(buffer) = contents.buffers.get_mut(&key) {
                    let from = buffer.moved.min(buffer.bytes.len());
                    let end = (from + bytes.len()).min(buffer.bytes.len());
                    buffer.bytes[from..end].copy_from_slice(&bytes[..end - from]);
                    buffer.moved = end;
                }
            }
            (None, _) => {}
        }
    }

    /// Lane and slot of a task of a worker.
    fn key(&self, index: TaskIndex) -> Option<(u32, Token)> {
        let task = &self.tasks[index as usize];
        match task.runner {
            RunBy::Lane(lane) => Some((lane, task.token)),
            RunBy::FileSystem(_) | RunBy::Flusher => None,
        }
    }

    /// A task has copied bytes from its buffer into pages.
    pub(super) fn copied_in(
        &mut self,
        index: TaskIndex,
        owner: u32,
        (at, end): (u64, u64),
        stream: Option<u32>,
    ) {
        if self.keeps_data() {
            let bytes = self.bytes_from(index, end - at, stream);
            self.put_bytes(owner, at, &bytes);
        }
    }

    /// A task has copied bytes from pages into its buffer.
    pub(super) fn copied_out(
        &mut self,
        index: TaskIndex,
        owner: u32,
        (at, end): (u64, u64),
        stream: Option<u32>,
    ) {
        if self.keeps_data() {
            let bytes = self.found(owner, (at, end), true);
            self.bytes_to(index, &bytes, stream);
        }
    }

    /// A task has read bytes past the cache.
    pub(super) fn read_past(&mut self, index: TaskIndex, owner: u32, range: (u64, u64)) {
        if self.keeps_data() {
            // A cache of the file system's own is looked into all the same.
            let bytes = self.found(owner, range, self.own_cache().is_some());
            self.bytes_to(index, &bytes, None);
        }
    }

    /// Bytes of a file: of cached pages, unless they are passed over, and of the device.
    ///
    /// Of a page that was waited for and has left memory since, the task has what is on the device.
    fn found(&self, owner: u32, (at, end): (u64, u64), looks_into_cache: bool) -> Vec<u8> {
        let mut bytes = vec![0; end.saturating_sub(at) as usize];
        for (sector, from, part) in by_sector(at, bytes.len()) {
            let page = sector / PAGE_SECTORS as u64;
            let frame = self.cache.frame(owner, page).filter(|_| looks_into_cache);
            let data = match frame {
                Some(frame) => {
                    self.cache.frames.sector(frame, (sector % PAGE_SECTORS as u64) as usize)
                }
                None => self.on_device(owner, sector),
            };
            data.copy_to(from, &mut bytes[part]);
        }
        bytes
    }

    /// Data of a sector of a file that the device holds.
    fn on_device(&self, owner: u32, sector: u64) -> SectorData {
        let Some(contents) = &self.contents else { return SectorData::default() };
        let per_block = self.block_sectors();
        let (node, first) = (self.tree.node(owner).id, sector / per_block);
        match self.fs.map(FileRun { node, first, count: 1 }).place {
            Place::Written(device, block) => {
                contents.devices.sector(device, block * per_block + sector % per_block)
            }
            Place::Hole | Place::Delayed | Place::Unwritten(..) => SectorData::default(),
        }
    }

    fn block_sectors(&self) -> u64 {
        u64::from(self.facts.block_bytes) / 512
    }

    /// Changes bytes of cached pages.
    fn put_bytes(&mut self, owner: u32, at: u64, bytes: &[u8]) {
        for (sector, from, part) in by_sector(at, bytes.len()) {
            let (page, within) = (sector / PAGE_SECTORS as u64, sector % PAGE_SECTORS as u64);
            if let Some(frame) = self.cache.frame(owner, page)
                && let Some(data) = self.cache.frames.sector_mut(frame, within as usize)
            {
                data.put(from, &bytes[part]);
            }
        }
    }

    /// Clears bytes of cached pages: they were cut off or given back.
    pub(super) fn clear(&mut self, owner: u32, (at, end): (u64, u64)) {
        if !self.keeps_data() {
            return;
        }
        for page in at / 4096..end.div_ceil(4096).min(self.cache.file(owner).page_end()) {
            let (from, until) = (at.max(page * 4096), end.min((page + 1) * 4096));
            self.put_bytes(owner, from, &vec![0; until.saturating_sub(from) as usize]);
        }
    }

    /// A new page of a write begins with the blocks that the write leaves alone: smaller ones than
    /// a page, which nobody reads, and those of its first and last unit, if these were read (they
    /// `hold` data) and left memory while pages of the same call were added: the kernel has them
    /// locked.
    pub(super) fn begin_page(
        &mut self,
        owner: u32,
        page: u64,
        (at, end): (u64, u64),
        holds: [bool; 2],
    ) {
        let block = u64::from(self.facts.block_bytes);
        let unit = self.whole_bytes();
        let edges = [at / unit, (end - 1) / unit];
        let was_read =
            edges.into_iter().zip(holds).any(|(edge, holds)| holds && page * 4096 / unit == edge);
        if block >= 4096 && !was_read {
            return;
        }
        let first = page * PAGE_SECTORS as u64;
        for within in 0..PAGE_SECTORS {
            let sector = first + within as u64;
            let from = sector * 512 / block * block;
            let is_left_alone = was_read || from >= end || from + block <= at;
            let data =
                if is_left_alone { self.on_device(owner, sector) } else { SectorData::default() };
            if let Some(frame) = self.cache.frame(owner, page)
                && let Some(place) = self.cache.frames.sector_mut(frame, within)
            {
                *place = data;
            }
        }
    }

    // --- Streams ---

    /// A task has written bytes into the buffer of a stream.
    pub(super) fn copied_to_stream(&mut self, stream: Stream, token: Token, count: u64) {
        let Some(contents) = &mut self.contents else { return };
        let bytes = contents.buffers.get(&(stream.0, token)).map(|buffer| &*buffer.bytes);
        let waiting = contents.waiting.entry(stream).or_default();
        let bytes = bytes.unwrap_or_default().iter().copied().chain(core::iter::repeat(0));
        waiting.extend(bytes.take(count as usize));
    }

    /// A task takes bytes that were read into the buffer of a stream.
    pub(super) fn copied_from_stream(&mut self, index: TaskIndex, handle: u32, count: u64) {
        let lane = self.key(index).map(|(lane, _)| lane);
        let (Some(lane), Some(contents)) = (lane, &mut self.contents) else { return };
        let held = contents.held.entry((lane, handle)).or_default();
        let bytes: Vec<u8> = held.drain(..(count as usize).min(held.len())).collect();
        self.bytes_to(index, &bytes, None);
    }

    /// Forgets bytes that a stream has read before they were asked for: it goes on elsewhere.
    pub(super) fn forget_held(&mut self, stream: Stream) {
        if let Some(contents) = &mut self.contents {
            contents.held.remove(&stream);
        }
    }

    // --- Between pages and devices ---

    /// Pages have on them what the device holds: blocks of a file that are being read.
    pub(super) fn fetch(&mut self, owner: u32, (first, count): (u64, u64), from: (DeviceId, u64)) {
        let per_block = self.block_sectors();
        let Some(contents) = &self.contents else { return };
        for step in 0..count * per_block {
            let sector = first * per_block + step;
            let (page, within) = (sector / PAGE_SECTORS as u64, sector % PAGE_SECTORS as u64);
            if let Some(frame) = self.cache.frame(owner, page)
                && let Some(data) = self.cache.frames.sector_mut(frame, within as usize)
            {
                *data = contents.devices.sector(from.0, from.1 * per_block + step);
            }
        }
    }

    /// A request carries blocks of a file from their pages.
    pub(super) fn carry_pages(
        &mut self,
        id: OutgoingId,
        owner: u32,
        (first, count): (u64, u64),
        to: (DeviceId, u64),
    ) {
        let per_block = self.block_sectors();
        let Some(contents) = &mut self.contents else { return };
        let sectors = first * per_block..(first + count) * per_block;
        let data = sectors.map(|sector| {
            let (page, within) = (sector / PAGE_SECTORS as u64, sector % PAGE_SECTORS as u64);
            let frame = self.cache.frame(owner, page);
            frame.map(|frame| self.cache.frames.sector(frame, within as usize)).unwrap_or_default()
        });
        let carried = Carried { device: to.0, sector: to.1 * per_block, data: data.collect() };
        contents.carried.insert(id, carried);
    }

    /// A request carries bytes of a process, past the cache.
    pub(super) fn carry_bytes(
        &mut self,
        id: OutgoingId,
        (device, sector): (DeviceId, Sector),
        bytes: &[u8],
    ) {
        let Some(contents) = &mut self.contents else { return };
        let data = by_sector(0, bytes.len()).map(|(_, from, part)| {
            let mut data = SectorData::default();
            data.put(from, &bytes[part]);
            data
        });
        let carried = Carried { device, sector: sector.0, data: data.collect() };
        contents.carried.insert(id, carried);
    }

    /// A request carries metadata.
    pub(super) fn carry_metadata(&mut self, id: OutgoingId, want: &Want) {
        let is_whole = self.facts.block_bytes >= 4096;
        let Some(contents) = &mut self.contents else { return };
        if want.is_meta && is_whole && want.kind == OutgoingKind::Write {
            let data = vec![SectorData::filled(METADATA); want.sectors as usize];
            let carried = Carried { device: want.device, sector: want.sector.0, data };
            contents.carried.insert(id, carried);
        }
    }

    /// A request has ended: the device holds what it carried.
    pub(super) fn arrived(&mut self, id: OutgoingId, status: Result<(), Errno>) {
        // Before: what has arrived is in its file when the file system has heard of it.
        let is_full = |of: &Contents| of.devices.len() >= of.sweeps_at.max(SWEEPS_FROM);
        if self.contents.as_deref().is_some_and(is_full) {
            self.sweep();
        }
        let Some(contents) = &mut self.contents else { return };
        let Some(Carried { device, sector, data }) = contents.carried.remove(&id) else { return };
        if status.is_ok() {
            for (sector, data) in (sector..).zip(data) {
                contents.devices.set(device, sector, data);
            }
        }
    }

    /// Gives up the data of blocks that no file has any more: files that are gone, and whatever
    /// copy-on-write has left behind.
    fn sweep(&mut self) {
        let per_block = self.block_sectors();
        let mut kept = DeviceData::default();
        let Some(contents) = &self.contents else { return };
        for owner in self.tree.indices() {
            let node = self.tree.node(owner).id;
            let end = self.tree.node(owner).size.div_ceil(u64::from(self.facts.block_bytes));
            let mut first = 0;
            while first < end {
                let run = FileRun { node, first, count: end - first };
                let Mapped { place, count } = self.fs.map(run);
                let count = count.clamp(1, end - first);
                if let Some((device, block)) = place.block() {
                    for sector in block * per_block..(block + count) * per_block {
                        kept.set(device, sector, contents.devices.sector(device, sector));
                    }
                }
                first += count;
            }
        }
        if let Some(contents) = &mut self.contents {
            contents.sweeps_at = 2 * kept.len();
            contents.devices = kept;
        }
    }

    /// The first and the last block of a write hold zeros where it does not fill them, if they were
    /// nobody's before.
    pub(super) fn clear_fresh(&mut self, owner: u32, (at, end): (u64, u64), fresh: [bool; 2]) {
        let block = u64::from(self.facts.block_bytes);
        let per_block = self.block_sectors();
        let node = self.tree.node(owner).id;
        let edges = [at / block, (end - 1) / block].into_iter().zip(fresh);
        for (first, _) in edges.filter(|(_, is_fresh)| *is_fresh) {
            let place = self.fs.map(FileRun { node, first, count: 1 }).place.block();
            if let (Some((device, block)), Some(contents)) = (place, &mut self.contents) {
                for sector in block * per_block..(block + 1) * per_block {
                    contents.devices.set(device, sector, SectorData::default());
                }
            }
        }
    }

    /// Tell whether the first and the last block of a range, where it covers only a part of them,
    /// hold no data yet.
    pub(super) fn fresh_edges(&self, owner: u32, (at, end): (u64, u64)) -> [bool; 2] {
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner).id;
        [at, end].map(|edge| {
            let run = FileRun { node, first: edge / block, count: 1 };
            self.keeps_data()
                && !edge.is_multiple_of(block)
                && !matches!(self.fs.map(run).place, Place::Written(..))
        })
    }
}
