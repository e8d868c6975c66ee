//! Tables of a store, level by level, and what follows from their sizes.

use crate::action::{FileNo, Key};
use crate::options::{CompactionStyle, LsmOptions};
use crate::table::Table;

/// Levels with their tables; those of level 0 overlap, the newest first, the others are sorted.
#[derive(Debug)]
pub struct Version {
    pub levels: Vec<Vec<FileNo>>,
    tables: Vec<Option<Table>>,
}

impl Version {
    /// No tables yet.
    pub fn new(levels: usize) -> Self {
        Self { levels: vec![Vec::new(); levels], tables: Vec::new() }
    }

    pub fn table(&self, no: FileNo) -> &Table {
        self.tables[no.0 as usize].as_ref().expect("a listed table is there")
    }

    pub fn table_mut(&mut self, no: FileNo) -> &mut Table {
        self.tables[no.0 as usize].as_mut().expect("a listed table is there")
    }

    /// Tell whether a table is there.
    pub fn has(&self, no: FileNo) -> bool {
        self.tables.get(no.0 as usize).is_some_and(Option::is_some)
    }

    /// Adds a table to a level: at the front of level 0, in its place on another.
    pub fn add(&mut self, level: usize, table: Table) {
        let (no, first) = (table.no, table.first());
        let slot = no.0 as usize;
        if self.tables.len() <= slot {
            self.tables.resize(slot + 1, None);
        }
        self.tables[slot] = Some(table);
        self.insert(level, no, first);
    }

    /// Adds a table that took the place of others of level 0.
    pub fn add_at(&mut self, place: usize, table: Table) {
        let no = table.no;
        self.add(0, table);
        let moved = self.levels[0].remove(0);
        debug_assert_eq!(moved, no);
        self.levels[0].insert(place, no);
    }

    fn insert(&mut self, level: usize, no: FileNo, first: Key) {
        let place = if level == 0 {
            0
        } else {
            self.levels[level].partition_point(|other| self.table(*other).first() < first)
        };
        self.levels[level].insert(place, no);
    }

    /// Takes a table out of a level.
    pub fn detach(&mut self, level: usize, no: FileNo) {
        self.levels[level].retain(|other| *other != no);
    }

    /// Moves a table to another level.
    pub fn relocate(&mut self, no: FileNo, from: usize, to: usize) {
        self.detach(from, no);
        let first = self.table(no).first();
        self.insert(to, no, first);
    }

    /// Forgets a table for good.
    pub fn drop_table(&mut self, no: FileNo) -> Option<Table> {
        self.tables[no.0 as usize].take()
    }

    pub fn bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|no| self.table(*no).file_bytes).sum()
    }

    /// Tables of a sorted level that overlap a range.
    pub fn overlapping(&self, level: usize, range: (Key, Key)) -> Vec<FileNo> {
        let list = &self.levels[level];
        if level == 0 {
            return list.iter().copied().filter(|no| self.table(*no).overlaps(range)).collect();
        }
        let from = list.partition_point(|no| self.table(*no).last() < range.0);
        let rest = list[from..].iter().copied();
        rest.take_while(|no| self.table(*no).first() <= range.1).collect()
    }

    /// Range of the keys of some tables.
    pub fn range(&self, tables: &[FileNo]) -> (Key, Key) {
        let first = tables.iter().map(|no| self.table(*no).first()).min();
        let last = tables.iter().map(|no| self.table(*no).last()).max();
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    /// Level to which level 0 is merged, and the size of each level at which it is too large.
    ///
    /// Sizes grow from `max_bytes_for_level_base`; with dynamic levels they follow from the last
    /// one, so that it holds most of the data (`RocksDB` wiki, "Leveled Compaction").
    pub fn targets(&self, options: &LsmOptions) -> (usize, Vec<f64>) {
        let count = self.levels.len();
        let factor = options.max_bytes_for_level_multiplier;
        let base = options.max_bytes_for_level_base as f64;
        let mut targets = vec![f64::INFINITY; count];
        if !options.level_compaction_dynamic_level_bytes {
            let mut size = base;
            for target in &mut targets[1..] {
                *target = size;
                size *= factor;
            }
            return (1, targets);
        }
        let largest = (1..count).map(|level| self.bytes(level)).max().unwrap_or(0) as f64;
        if largest <= 0.0 {
            return (count - 1, targets);
        }
        let (mut level, mut size) = (count - 1, largest);
        while level > 1 && size > base {
            (level, size) = (level - 1, size / factor);
        }
        let first = level;
        size = size.max(base / factor);
        for target in &mut targets[first..] {
            *target = size.max(base / factor);
            size *= factor;
        }
        (first, targets)
    }

    /// Number of sorted runs that slow writers down: tables of level 0, and under universal
    /// compaction every further level that holds something.
    pub fn runs(&self, style: CompactionStyle) -> u64 {
        let below = self.levels[1..].iter().filter(|level| !level.is_empty()).count();
        let below = if style == CompactionStyle::Universal { below } else { 0 };
        (self.levels[0].len() + below) as u64
    }

    /// Bytes that compactions must still write until every level is below its size (wiki, "Write
    /// Stalls": estimated pending compaction bytes).
    pub fn pending_bytes(&self, options: &LsmOptions) -> u64 {
        if options.compaction_style == CompactionStyle::Universal {
            return 0;
        }
        let (base, targets) = self.targets(options);
        let level0 = self.bytes(0) as f64;
        let is_due = self.levels[0].len() as u64 >= options.level0_file_num_compaction_trigger;
        let mut carried = if is_due { level0 } else { 0.0 };
        let mut sum = if is_due { level0 + self.bytes(base) as f64 } else { 0.0 };
        let upper = targets.iter().enumerate().take(self.levels.len() - 1);
        for (level, target) in upper.skip(base) {
            let size = self.bytes(level) as f64 + carried;
            carried = 0.0;
            if size > *target {
                carried = size - target;
                sum += carried * (self.bytes(level + 1) as f64 / size + 1.0);
            }
        }
        sum as u64
    }

    /// Bytes of all tables that belong to a level.
    pub fn total_bytes(&self) -> u64 {
        (0..self.levels.len()).map(|level| self.bytes(level)).sum()
    }
}
