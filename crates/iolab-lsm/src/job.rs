//! Background jobs: flushes and compactions, as the file operations that they make.
//!
//! The inputs of a merge are known when a job begins, since nothing else changes them; its
//! operations follow in the order in which a merge of sorted runs makes them. Tables are read in
//! units of [`READ_UNIT`]: `RocksDB` reads block by block, and the page cache reads ahead of it.
use std::collections::VecDeque;
use std::rc::Rc;

use iolab_model::Ns;

use crate::action::{Action, FileKind, FileNo, Key};
use crate::leveled::{self, Pick, Running};
use crate::options::{CompactionStyle, Compression, LsmOptions};
use crate::store::LsmStore;
use crate::table::{Layout, Shape, Table};
use crate::universal;

/// Bytes of one read of a compaction: the usual read-ahead of Linux (`VM_READAHEAD_PAGES`).
const READ_UNIT: u64 = 128 << 10;
/// Record of the manifest for a table that came or went [assume].
const EDIT_BYTES: u64 = 120;

/// Kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Full write buffers become a table.
    Flush,
    /// Tables are merged.
    Compaction,
}

/// A job under way.
#[derive(Debug)]
pub struct StoreJob {
    kind: JobKind,
    actions: VecDeque<Action>,
    /// Result that becomes valid when the operations so far are done.
    result: Option<Outcome>,
}

/// Change of the levels.
#[derive(Debug)]
enum Outcome {
    Flushed { flush: u64, table: Option<Table> },
    Merged { pick: Pick, tables: Vec<Table>, read_bytes: u64 },
    Removed,
}

impl StoreJob {
    /// Its kind.
    pub const fn kind(&self) -> JobKind {
        self.kind
    }

    /// The next operation, when the one before is done; `None`: the job is over.
    pub fn next(&mut self, store: &mut LsmStore) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                if let Action::Remove { file, .. } = action {
                    store.gone(file);
                }
                return Some(action);
            }
            match self.result.take()? {
                Outcome::Flushed { flush, table } => store.flushed(flush, table),
                Outcome::Merged { pick, tables, read_bytes } => {
                    store.merged(&pick, tables, read_bytes);
                }
                Outcome::Removed => return None,
            }
            self.result = Some(Outcome::Removed);
            let remove = |(file, kind)| Action::Remove { file, kind };
            self.actions.extend(store.removable.drain(..).map(remove));
        }
    }
}

/// Writer of one table after the other.
struct Output<'a> {
    options: &'a LsmOptions,
    shape: Shape,
    level: usize,
    layout: Layout,
    reserve: u64,
    actions: VecDeque<Action>,
    tables: Vec<Table>,
    keys: Vec<Key>,
    no: Option<FileNo>,
    /// Bytes of the present table that were appended, and those whose write-out began.
    appended: u64,
    written_out: u64,
    /// Entries since the processor was last kept busy.
    unpaid: u64,
    merge_cost: Ns,
}

impl Output<'_> {
    fn bytes(&self) -> u64 {
        self.layout.data_bytes(self.keys.len() as u64)
    }

    /// Adds an entry; `new_file` gives a number when a table begins.
    fn add(&mut self, key: Key, new_file: impl FnOnce() -> FileNo) {
        if self.no.is_none() {
            let no = new_file();
            self.no = Some(no);
            self.actions.push_back(Action::Create { file: no, kind: FileKind::Table });
            if self.reserve > 0 {
                self.actions.push_back(Action::Allocate { file: no, bytes: self.reserve });
            }
        }
        self.keys.push(key);
        self.unpaid += 1;
        let buffer = self.options.writable_file_max_buffer_size;
        if self.bytes() >= self.appended + buffer {
            self.append(self.appended + buffer);
        }
    }

    fn pay(&mut self) {
        if self.unpaid > 0 {
            self.actions.push_back(Action::Burn(Ns(self.unpaid * self.merge_cost.0)));
            self.unpaid = 0;
        }
    }

    fn append(&mut self, end: u64) {
        let Some(file) = self.no else { return };
        self.pay();
        let (at, bytes) = (self.appended, end - self.appended);
        self.actions.push_back(Action::Append { file, at, bytes });
        self.appended = end;
        let step = self.options.bytes_per_sync;
        if step > 0 && end - self.written_out >= step {
            let (at, bytes) = (self.written_out, end - self.written_out);
            self.actions.push_back(Action::WriteOut { file, at, bytes });
            self.written_out = end;
        }
    }

    /// Ends the present table, if there is one.
    fn finish(&mut self) {
        let Some(no) = self.no else { return };
        let keys: Rc<[Key]> = core::mem::take(&mut self.keys).into();
        let layout = Layout::of(self.options, self.shape, (self.level, keys.len() as u64));
        let table = Table::new(no, keys, (self.shape, layout));
        let end = table.file_bytes.max(self.appended);
        if end > self.appended {
            self.append(end);
        }
        let is_cut = self.reserve > 0;
        self.actions.push_back(Action::Finish { file: no, bytes: end, is_cut });
        self.tables.push(table);
        self.no = None;
        (self.appended, self.written_out) = (0, 0);
    }
}

/// A sorted run that is merged: tables one after the other.
struct Input {
    tables: VecDeque<(FileNo, Rc<[Key]>, u64)>,
    place: usize,
    /// Bytes of the present table that were read.
    read: u64,
}

impl Input {
    fn key(&self) -> Option<Key> {
        self.tables.front().map(|(_, keys, _)| keys[self.place])
    }

    /// Reads up to the present key, and moves on.
    fn step(&mut self, unit: u64, actions: &mut VecDeque<Action>) {
        let Some((file, keys, bytes)) = self.tables.front() else { return };
        let (file, count, bytes) = (*file, keys.len(), *bytes);
        let needed = bytes * (self.place as u64 + 1) / count as u64;
        while self.read < needed {
            let length = unit.min(bytes - self.read);
            actions.push_back(Action::Read { file, at: self.read, bytes: length });
            self.read += length;
        }
        self.place += 1;
        if self.place == count {
            self.tables.pop_front();
            (self.place, self.read) = (0, 0);
        }
    }
}

/// Ends of tables two levels below, at which an output is best cut.
struct Grandparents {
    ends: VecDeque<(Key, u64)>,
    crossed: u64,
    overlapped: u64,
}

impl Grandparents {
    /// Takes note of what lies before a key; true: it begins behind an end.
    fn pass(&mut self, key: Key) -> bool {
        let mut is_behind = false;
        while self.ends.front().is_some_and(|(end, _)| *end < key) {
            let (_, bytes) = self.ends.pop_front().unwrap_or((0, 0));
            self.crossed += 1;
            self.overlapped += bytes;
            is_behind = true;
        }
        is_behind
    }
}

impl LsmStore {
    /// A job of a kind, if one is due and may begin.
    pub fn take_job(&mut self, kind: JobKind) -> Option<StoreJob> {
        match kind {
            JobKind::Flush => self.take_flush().or_else(|| self.take_removal(kind)),
            JobKind::Compaction => self.take_compaction().or_else(|| self.take_removal(kind)),
        }
    }

    /// Files that a lookup gave back last are removed by whoever has nothing else to do.
    fn take_removal(&mut self, kind: JobKind) -> Option<StoreJob> {
        if self.removable.is_empty() {
            return None;
        }
        let remove = |(file, kind)| Action::Remove { file, kind };
        let actions = self.removable.drain(..).map(remove).collect();
        Some(StoreJob { kind, actions, result: Some(Outcome::Removed) })
    }

    fn take_flush(&mut self) -> Option<StoreJob> {
        let idle = self.full.iter().filter(|one| one.flush.is_none()).count() as u64;
        let is_due = idle >= self.options.min_write_buffer_number_to_merge;
        if !is_due || self.flushes_running >= self.options.jobs().0 {
            return None;
        }
        self.flushes_running += 1;
        self.flushes_begun += 1;
        let flush = self.flushes_begun;
        let chosen: Vec<usize> =
            (0..self.full.len()).filter(|place| self.full[*place].flush.is_none()).collect();
        let mut keys: Vec<Key> = Vec::new();
        for &place in &chosen {
            self.full[place].flush = Some(flush);
            keys.extend(&self.full[place].keys);
        }
        keys.sort_unstable();
        keys.dedup();
        let shape = Shape::mean(chosen.iter().map(|place| {
            let one = &self.full[*place];
            let entries = one.entries.max(1) as f64;
            let (key_bytes, value_bytes) =
                (one.key_bytes as f64 / entries, one.value_bytes as f64 / entries);
            (one.entries, Shape { key_bytes, value_bytes })
        }));
        let (actions, mut tables) = self.written((shape, 0, 0), |store, output| {
            for key in keys {
                output.add(key, || store.new_file());
            }
        });
        let result = Some(Outcome::Flushed { flush, table: tables.pop() });
        Some(StoreJob { kind: JobKind::Flush, actions, result })
    }

    /// Writes tables of a shape for a level, with room reserved for each.
    fn written(
        &mut self,
        (shape, level, reserve): (Shape, usize, u64),
        write: impl FnOnce(&mut Self, &mut Output<'_>),
    ) -> (VecDeque<Action>, Vec<Table>) {
        let options = self.options.clone();
        let reserve = if options.allow_fallocate { reserve } else { 0 };
        let entries = (options.target_bytes(level) / (shape.value_bytes as u64 + 1)).max(1);
        let mut output = Output {
            layout: Layout::of(&options, shape, (level, entries)),
            options: &options,
            shape,
            level,
            reserve,
            actions: VecDeque::new(),
            tables: Vec::new(),
            keys: Vec::new(),
            no: None,
            appended: 0,
            written_out: 0,
            unpaid: 0,
            merge_cost: self.merge_cost(&options, shape, level),
        };
        write(self, &mut output);
        output.finish();
        let (mut actions, tables) = (output.actions, output.tables);
        let bytes = EDIT_BYTES * (tables.len() as u64 + 1);
        actions.push_back(Action::Append { file: self.manifest, at: self.manifest_bytes, bytes });
        actions.push_back(Action::Sync { file: self.manifest });
        self.manifest_bytes += bytes;
        (actions, tables)
    }

    /// Time of a processor for a record of a table of a level.
    fn merge_cost(&self, options: &LsmOptions, shape: Shape, level: usize) -> Ns {
        let bytes = shape.key_bytes + shape.value_bytes;
        let is_compressed = options.compression_of(level) == Compression::Entropy;
        let packing = if is_compressed { bytes / 1024.0 } else { 0.0 };
        self.cost.merge + Ns((packing * self.cost.compress_kib.0 as f64) as u64)
    }

    fn flushed(&mut self, flush: u64, table: Option<Table>) {
        self.flushes_running -= 1;
        let done = self.full.iter().filter(|one| one.flush == Some(flush));
        self.removable.extend(done.filter_map(|one| Some((one.log?, FileKind::Log))));
        self.full.retain(|one| one.flush != Some(flush));
        if let Some(table) = table {
            self.counts.flushes += 1;
            self.counts.files_opened += 1;
            self.counts.flush_write_bytes += table.file_bytes;
            self.counts.level_write_bytes[0] += table.file_bytes;
            self.version.add(0, table);
        }
        self.refresh();
    }

    fn take_compaction(&mut self) -> Option<StoreJob> {
        let most = if self.stall.is_pressed { self.options.jobs().1 } else { 1 };
        let running = self.compactions_running.len() as u32;
        if self.options.disable_auto_compactions || running >= most {
            return None;
        }
        let pick = match self.options.compaction_style {
            CompactionStyle::Level => {
                leveled::pick(&self.version, &self.options, &self.compactions_running)
            }
            CompactionStyle::Universal => universal::pick(&self.version, &self.options),
        }?;
        if pick.is_move {
            return Some(self.moved(&pick));
        }
        let numbers: Vec<FileNo> = pick.inputs.iter().map(|(_, no)| *no).collect();
        for no in &numbers {
            self.version.table_mut(*no).is_compacted = true;
        }
        let range = self.version.range(&numbers);
        let output_level = pick.output_level;
        self.compactions_running.push(Running { output_level, range });
        let tables = numbers.iter().map(|no| self.version.table(*no));
        let shape = Shape::mean(tables.clone().map(|one| (one.keys.len() as u64, one.shape)));
        let read_bytes: u64 = tables.map(|table| table.file_bytes).sum();
        let target = if output_level == 0 { 0 } else { self.options.target_bytes(output_level) };
        // Room for a tenth more than the target, or for all that is merged
        // (`Compaction::OutputFilePreallocationSize`).
        let reserve = if target == 0 { read_bytes } else { (target + target / 10).min(read_bytes) };
        let inputs = self.inputs(&pick);
        let grandparents = self.grandparents(output_level, range);
        let (actions, tables) = self.written((shape, output_level, reserve), |store, output| {
            store.merge(inputs, (output, target), grandparents);
        });
        let result = Some(Outcome::Merged { pick, tables, read_bytes });
        Some(StoreJob { kind: JobKind::Compaction, actions, result })
    }

    /// Tables change their level; only the manifest is written.
    fn moved(&mut self, pick: &Pick) -> StoreJob {
        for (level, no) in &pick.inputs {
            self.version.relocate(*no, *level, pick.output_level);
        }
        self.refresh();
        let bytes = EDIT_BYTES * pick.inputs.len() as u64;
        let append = Action::Append { file: self.manifest, at: self.manifest_bytes, bytes };
        self.manifest_bytes += bytes;
        let actions = [append, Action::Sync { file: self.manifest }].into();
        StoreJob { kind: JobKind::Compaction, actions, result: Some(Outcome::Removed) }
    }

    /// Sorted runs of a choice, the newest first.
    fn inputs(&self, pick: &Pick) -> Vec<Input> {
        let mut runs: Vec<(usize, Input)> = Vec::new();
        for (level, no) in &pick.inputs {
            let table = self.version.table(*no);
            let one = (*no, Rc::clone(&table.keys), table.file_bytes);
            match runs.last_mut() {
                Some((last, run)) if *last == *level && *level > 0 => run.tables.push_back(one),
                _ => runs.push((*level, Input { tables: [one].into(), place: 0, read: 0 })),
            }
        }
        runs.into_iter().map(|(_, run)| run).collect()
    }

    fn grandparents(&self, output_level: usize, range: (Key, Key)) -> Grandparents {
        let below = output_level + 1;
        let has_some = output_level > 0 && below < self.version.levels.len();
        let list = if has_some { self.version.overlapping(below, range) } else { Vec::new() };
        let ends = list.iter().map(|no| self.version.table(*no));
        let ends = ends.map(|table| (table.last(), table.file_bytes)).collect();
        Grandparents { ends, crossed: 0, overlapped: 0 }
    }

    fn merge(
        &mut self,
        mut inputs: Vec<Input>,
        (output, target): (&mut Output<'_>, u64),
        mut below: Grandparents,
    ) {
        let unit = self.options.compaction_readahead_size.max(READ_UNIT);
        let is_flexible = self.options.level_compaction_dynamic_file_size && !below.ends.is_empty();
        let most = if is_flexible { 2 * target } else { target };
        let overlap_max = self.options.compaction_bytes_max();
        while let Some(key) = inputs.iter().filter_map(Input::key).min() {
            for input in inputs.iter_mut().filter(|input| input.key() == Some(key)) {
                input.step(unit, &mut output.actions);
            }
            let is_behind = below.pass(key);
            let bytes = output.bytes();
            // With each end that was crossed an output may be a little larger before it is cut at
            // one (`CompactionOutputs::ShouldStopBefore`: 50 % and 5 % more each, at most 90 %).
            let share = 50 + (below.crossed * 5).min(40);
            let is_good = is_flexible && is_behind && bytes * 100 > target * share;
            let is_cut = target > 0
                && bytes > 0
                && (bytes >= most || is_good || is_behind && below.overlapped > overlap_max);
            if is_cut {
                output.finish();
                (below.crossed, below.overlapped) = (0, 0);
            }
            output.add(key, || self.new_file());
        }
    }

    fn merged(&mut self, pick: &Pick, tables: Vec<Table>, read_bytes: u64) {
        let numbers: Vec<FileNo> = pick.inputs.iter().map(|(_, no)| *no).collect();
        let range = self.version.range(&numbers);
        let mine = |one: &Running| one.output_level == pick.output_level && one.range == range;
        if let Some(place) = self.compactions_running.iter().position(mine) {
            self.compactions_running.remove(place);
        }
        let level0 = &self.version.levels[0];
        let place = level0.iter().position(|no| numbers.contains(no)).unwrap_or(0);
        for (level, no) in &pick.inputs {
            self.version.detach(*level, *no);
            self.version.table_mut(*no).is_obsolete = true;
            if self.version.table(*no).pins == 0 {
                self.discard(*no);
            }
        }
        self.counts.compactions += 1;
        self.counts.compaction_read_bytes += read_bytes;
        for table in tables {
            self.counts.files_opened += 1;
            self.counts.level_write_bytes[pick.output_level] += table.file_bytes;
            if pick.output_level == 0 {
                self.version.add_at(place, table);
            } else {
                self.version.add(pick.output_level, table);
            }
        }
        self.refresh();
    }

    /// Forgets a table that nobody reads.
    pub(crate) fn discard(&mut self, no: FileNo) {
        if let Some(table) = self.version.drop_table(no) {
            for place in table.cached.iter().filter(|place| **place != crate::cache::NONE) {
                self.cache.remove(*place);
            }
            self.removable.push((no, FileKind::Table));
        }
    }
}
