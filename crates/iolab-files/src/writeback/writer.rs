//! `Writer`: the flusher of a device.
//!
//! Source: Linux fs/fs-writeback.c (`wb_writeback`, `queue_io`, `requeue_inode`,
//! `wb_check_old_data_flush`, `wb_wakeup_delayed`).

use std::collections::{BTreeMap, VecDeque};

use iolab_model::Ns;

use crate::api::make::Kernel;
use crate::api::write_back::{Chunk, ChunkEnd, FileKey, Flusher, VmSettings};

use super::pace::chunk_pages;

/// A pass over the queue ends after this time, and the limits are looked at again.
const PASS: Ns = Ns(100_000_000);
/// Pages of a chunk in kernels without a measure of bandwidth.
const OLD_CHUNK_PAGES: u64 = 1024;
/// Chunks follow the bandwidth since this version.
const MEASURES_SINCE: Kernel = Kernel::new(3, 2);
const CENTISECOND: u64 = 10_000_000;

/// Reason of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// All of it was asked for.
    All,
    /// Data that are old.
    Old,
    /// The background limit is exceeded.
    Background,
}

/// List of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    /// Dirty, in the order in which they became so.
    Dirty,
    /// To be written in this run.
    Now,
    /// Had their chunk, and have more.
    More,
    /// Being written.
    Sent,
}

/// Place of a file: its list, its number there, and when it became dirty.
#[derive(Clone, Copy, Debug)]
struct Queued {
    queue: Queue,
    number: u64,
    since: Ns,
}

#[derive(Clone, Copy, Debug)]
struct Working {
    reason: Reason,
    /// Start of the pass; `None` before its first chunk.
    pass: Option<Ns>,
    /// Something was taken from the lists since the last look at them.
    has_progress: bool,
}

/// The flusher of a device.
#[derive(Clone, Debug)]
pub struct Writer {
    settings: VmSettings,
    measures: bool,
    files: BTreeMap<FileKey, Queued>,
    dirty: BTreeMap<u64, FileKey>,
    now: VecDeque<FileKey>,
    more: VecDeque<FileKey>,
    numbers: u64,
    timer: Ns,
    last_old: Ns,
    is_awake: bool,
    wants_all: bool,
    working: Option<Working>,
    /// Reasons before this one were served since it woke up.
    next: Reason,
    /// Most pages of the chunk that is on its way.
    out: Option<u64>,
}

impl Writer {
    /// A flusher with nothing to do.
    pub fn new(settings: VmSettings, kernel: Kernel) -> Self {
        Self {
            settings,
            measures: kernel >= MEASURES_SINCE,
            files: BTreeMap::new(),
            dirty: BTreeMap::new(),
            now: VecDeque::new(),
            more: VecDeque::new(),
            numbers: 0,
            timer: Ns::MAX,
            last_old: Ns(0),
            is_awake: false,
            wants_all: false,
            working: None,
            next: Reason::All,
            out: None,
        }
    }

    fn interval(&self) -> Option<u64> {
        let interval = self.settings.dirty_writeback_centisecs * CENTISECOND;
        (interval > 0).then_some(interval)
    }

    fn arm(&mut self, now: Ns) {
        if self.timer == Ns::MAX
            && let Some(interval) = self.interval()
        {
            self.timer = Ns(now.0 + interval);
        }
    }

    fn append(&mut self, file: FileKey, since: Ns) {
        self.numbers += 1;
        self.dirty.insert(self.numbers, file);
        self.files.insert(file, Queued { queue: Queue::Dirty, number: self.numbers, since });
    }

    /// Back to the end of the dirty files; a file older than the last one is as young as now.
    fn append_again(&mut self, now: Ns, file: FileKey, since: Ns) {
        let last = self.dirty.last_key_value().and_then(|(_, last)| self.files.get(last));
        let since = if last.is_some_and(|last| since < last.since) { now } else { since };
        self.append(file, since);
    }

    /// Files of this run: those with more to write, then dirty ones up to an age, oldest first.
    fn gather(&mut self, now: Ns, reason: Reason) {
        for file in self.more.drain(..) {
            if let Some(queued) = self.files.get_mut(&file).filter(|q| q.queue == Queue::More) {
                queued.queue = Queue::Now;
                self.now.push_back(file);
            }
        }
        let expire = self.settings.dirty_expire_centisecs * CENTISECOND;
        while let Some(entry) = self.dirty.first_entry() {
            let file = *entry.get();
            let Some(queued) = self.files.get_mut(&file) else {
                entry.remove();
                continue;
            };
            if reason == Reason::Old && queued.since.0 + expire > now.0 {
                return;
            }
            queued.queue = Queue::Now;
            entry.remove();
            self.now.push_back(file);
        }
    }

    /// The next reason to work, since it woke up.
    fn start(&mut self, now: Ns, wants_background: bool) -> Option<Reason> {
        if self.wants_all {
            self.wants_all = false;
            self.next = Reason::Old;
            return Some(Reason::All);
        }
        if self.next <= Reason::Old {
            self.next = Reason::Background;
            let is_due = self.interval().is_some_and(|wait| now.0 >= self.last_old.0 + wait);
            if is_due {
                self.last_old = now;
                return Some(Reason::Old);
            }
        }
        (self.next == Reason::Background && wants_background).then_some(Reason::Background)
    }

    fn sleep(&mut self, now: Ns) {
        self.is_awake = false;
        self.next = Reason::All;
        self.timer = Ns::MAX;
        if !self.files.is_empty() {
            self.arm(now);
        }
    }

    fn pages(&self, reason: Reason, (bandwidth, hard): (u64, u64)) -> u64 {
        match (self.measures, reason) {
            (_, Reason::All) => u64::MAX,
            (true, _) => chunk_pages(bandwidth, hard),
            (false, _) => OLD_CHUNK_PAGES,
        }
    }

    /// The next file of the run; `None` ends it.
    fn take(&mut self, now: Ns, wants_background: bool) -> Option<(FileKey, Reason)> {
        let mut working = self.working?;
        let is_over = working.pass.is_some_and(|pass| now.0 > pass.0 + PASS.0);
        if is_over || working.pass.is_none() {
            working.pass = None;
            let gives_way = working.reason != Reason::All && self.wants_all;
            let is_below = working.reason == Reason::Background && !wants_background;
            if gives_way || is_below {
                return None;
            }
        }
        if self.now.is_empty() {
            let is_first = working.pass.is_none() || working.has_progress;
            if !is_first {
                return None;
            }
            working.has_progress = false;
            self.gather(now, working.reason);
        }
        let is_queued =
            |file: &FileKey| self.files.get(file).is_some_and(|queued| queued.queue == Queue::Now);
        while self.now.front().is_some_and(|file| !is_queued(file)) {
            self.now.pop_front();
        }
        let file = self.now.pop_front()?;
        working.pass = working.pass.or(Some(now));
        working.has_progress = true;
        self.working = Some(working);
        Some((file, working.reason))
    }
}

impl Flusher for Writer {
    fn dirtied(&mut self, now: Ns, file: FileKey) {
        if self.files.contains_key(&file) {
            return;
        }
        if self.files.is_empty() && !self.is_awake {
            self.arm(now);
        }
        self.append(file, now);
    }

    fn cleaned(&mut self, file: FileKey) {
        let Some(queued) = self.files.remove(&file) else { return };
        match queued.queue {
            Queue::Dirty => drop(self.dirty.remove(&queued.number)),
            // The other lists are looked through when their turn comes.
            Queue::Now | Queue::More | Queue::Sent => {}
        }
    }

    fn next_timer(&self) -> Ns {
        if self.is_awake { Ns::MAX } else { self.timer }
    }

    fn wake(&mut self, _: Ns, is_all: bool) {
        self.wants_all |= is_all;
        self.is_awake = true;
    }

    fn poll(&mut self, now: Ns, wants_background: bool, bandwidth: (u64, u64)) -> Option<Chunk> {
        if self.out.is_some() {
            return None;
        }
        if now >= self.timer {
            self.timer = Ns::MAX;
            self.is_awake = true;
        }
        while self.is_awake {
            if self.working.is_none() {
                let Some(reason) = self.start(now, wants_background) else {
                    self.sleep(now);
                    return None;
                };
                self.working = Some(Working { reason, pass: None, has_progress: false });
            }
            if let Some((file, reason)) = self.take(now, wants_background) {
                if let Some(queued) = self.files.get_mut(&file) {
                    queued.queue = Queue::Sent;
                }
                let pages_max = self.pages(reason, bandwidth);
                self.out = Some(pages_max);
                return Some(Chunk { file, pages_max, is_background: reason != Reason::All });
            }
            if self.working.take().is_some_and(|done| done.reason == Reason::Background) {
                self.next = Reason::All;
                self.is_awake = self.wants_all;
                if !self.is_awake {
                    self.sleep(now);
                }
            }
        }
        None
    }

    fn sent(&mut self, now: Ns, end: ChunkEnd) {
        let most = self.out.take().unwrap_or(u64::MAX);
        let Some(queued) = self.files.get(&end.file).copied() else { return };
        if !end.is_still_dirty {
            self.files.remove(&end.file);
            return;
        }
        if end.pages >= most {
            self.more.push_back(end.file);
            self.files.insert(end.file, Queued { queue: Queue::More, ..queued });
        } else {
            self.append_again(now, end.file, queued.since);
        }
    }
}

#[cfg(test)]
mod tests;
