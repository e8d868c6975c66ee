//! Windows: blocks taken ahead of need, for one file or for the small files of one processor.
//!
//! The kernel calls them preallocations. A file's window is used by position: block `n` of the file
//! has its place in it before it is written. A shared window is used from its start, whatever file
//! or offset asks.

use core::ops::Range;
use std::collections::BTreeMap;

/// Number of lists of shared windows, by the power of two of what is left (`PREALLOC_TB_SIZE`).
const LISTS: usize = 10;
/// Windows of a list above which some go, and those that stay (`ext4_mb_add_n_trim`).
const LIST_MAX: usize = 8;
const LIST_KEPT: usize = 5;

/// Blocks ahead for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWindow {
    /// First block of the file.
    pub logical: u64,
    /// Place of it.
    pub physical: u64,
    /// Number of blocks.
    pub count: u32,
    /// Parts of it that are in use, as offsets, in order.
    used: Vec<Range<u32>>,
}

impl FileWindow {
    /// A window of which nothing is used.
    pub const fn new(logical: u64, physical: u64, count: u32) -> Self {
        Self { logical, physical, count, used: Vec::new() }
    }

    /// The block of the file after the last one.
    pub const fn end(&self) -> u64 {
        self.logical + self.count as u64
    }

    fn free(&self) -> u32 {
        self.count - self.used.iter().map(|part| part.end - part.start).sum::<u32>()
    }

    /// Uses the places of blocks of the file, as far as the window reaches.
    fn take(&mut self, logical: u64, count: u32) -> (u64, u32) {
        let offset = (logical - self.logical) as u32;
        let count = count.min(self.count - offset);
        let at = self.used.partition_point(|part| part.start < offset);
        if at > 0 && self.used[at - 1].end == offset {
            self.used[at - 1].end += count;
            if self.used.get(at).is_some_and(|next| next.start == offset + count) {
                self.used[at - 1].end = self.used.remove(at).end;
            }
        } else {
            self.used.insert(at, offset..offset + count);
        }
        (self.physical + u64::from(offset), count)
    }

    /// Places that nobody uses.
    fn unused(&self) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        let mut at = 0;
        for part in self.used.iter().chain([&(self.count..self.count)]) {
            if part.start > at {
                found.push((self.physical + u64::from(at), part.start - at));
            }
            at = part.end;
        }
        found
    }
}

/// Blocks ahead for the small files of a processor: place of the next one, and number left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedWindow {
    /// Place of the next block.
    pub physical: u64,
    /// Blocks left.
    pub count: u32,
}

/// Every window of a file system.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    files: BTreeMap<u32, Vec<FileWindow>>,
    shared: BTreeMap<u16, [Vec<SharedWindow>; LISTS]>,
}

impl Windows {
    /// Uses the window of a file that covers a block, if there is one.
    pub fn take_of_file(&mut self, node: u32, logical: u64, count: u32) -> Option<(u64, u32)> {
        let windows = self.files.get_mut(&node)?;
        let at = windows.partition_point(|window| window.logical <= logical).checked_sub(1)?;
        let window = windows.get_mut(at).filter(|window| logical < window.end())?;
        let taken = window.take(logical, count);
        if window.free() == 0 {
            windows.remove(at);
            if windows.is_empty() {
                self.files.remove(&node);
            }
        }
        Some(taken)
    }

    /// Cuts a range of blocks of a file so that it meets no window of it.
    pub fn cut(&self, node: u32, logical: u64, range: Range<u64>) -> Range<u64> {
        let Some(windows) = self.files.get(&node) else { return range };
        let at = windows.partition_point(|window| window.logical <= logical);
        let start = at.checked_sub(1).map_or(range.start, |left| windows[left].end());
        let end = windows.get(at).map_or(range.end, |right| right.logical);
        range.start.max(start)..range.end.min(end)
    }

    /// A new window of a file, of which the places of some blocks are used at once.
    pub fn add_to_file(
        &mut self,
        node: u32,
        mut window: FileWindow,
        used: (u64, u32),
    ) -> (u64, u32) {
        let taken = window.take(used.0, used.1);
        if window.free() > 0 {
            let windows = self.files.entry(node).or_default();
            let at = windows.partition_point(|other| other.logical < window.logical);
            windows.insert(at, window);
        }
        taken
    }

    /// Drops the windows of a file: places that are free again.
    pub fn drop_of_file(&mut self, node: u32) -> Vec<(u64, u32)> {
        let windows = self.files.remove(&node).unwrap_or_default();
        windows.iter().flat_map(FileWindow::unused).collect()
    }

    /// Tell whether a file has a window.
    pub fn has_file(&self, node: u32) -> bool {
        self.files.contains_key(&node)
    }

    /// Uses the shared window nearest to a goal that holds enough blocks. What remains of it is
    /// put into the list of its size; places that fall out of a full list are told.
    pub fn take_shared(
        &mut self,
        cpu: u16,
        goal: u64,
        count: u32,
    ) -> Option<(u64, Vec<(u64, u32)>)> {
        let lists = self.shared.entry(cpu).or_default();
        let mut best: Option<(u64, usize, usize)> = None;
        for (list, windows) in lists.iter().enumerate().skip(list_of(count)) {
            for (at, window) in windows.iter().enumerate().filter(|(_, w)| w.count >= count) {
                let distance = goal.abs_diff(window.physical);
                if best.is_none_or(|(least, ..)| distance < least) {
                    best = Some((distance, list, at));
                }
            }
        }
        let (_, list, at) = best?;
        let window = lists[list].remove(at);
        let fallen = self.add_shared(cpu, window, count);
        Some((window.physical, fallen))
    }

    /// A shared window whose first blocks are used at once; places that fall out of a full list.
    pub fn add_shared(&mut self, cpu: u16, mut window: SharedWindow, used: u32) -> Vec<(u64, u32)> {
        window.physical += u64::from(used);
        window.count -= used;
        if window.count == 0 {
            return Vec::new();
        }
        let list = &mut self.shared.entry(cpu).or_default()[list_of(window.count)];
        let at = list.partition_point(|other| other.count <= window.count);
        list.insert(at, window);
        let mut fallen = Vec::new();
        if list.len() > LIST_MAX {
            // The one just used is in use still: it stays.
            while list.len() > LIST_KEPT {
                let first = list.iter().position(|other| *other != window).unwrap_or(0);
                let gone = list.remove(first);
                fallen.push((gone.physical, gone.count));
            }
        }
        fallen
    }

    /// Drops all windows: places that are free again.
    pub fn drop_all(&mut self) -> Vec<(u64, u32)> {
        let files: Vec<u32> = self.files.keys().copied().collect();
        let mut freed: Vec<(u64, u32)> =
            files.into_iter().flat_map(|node| self.drop_of_file(node)).collect();
        for lists in core::mem::take(&mut self.shared).into_values() {
            freed.extend(lists.into_iter().flatten().map(|w| (w.physical, w.count)));
        }
        freed
    }

    /// Blocks in windows that nobody uses.
    pub fn unused_blocks(&self) -> u64 {
        let files = self.files.values().flatten().map(|window| u64::from(window.free()));
        let shared = self.shared.values().flatten().flatten().map(|w| u64::from(w.count));
        files.sum::<u64>() + shared.sum::<u64>()
    }
}

fn list_of(count: u32) -> usize {
    (count.max(1).ilog2() as usize).min(LISTS - 1)
}
