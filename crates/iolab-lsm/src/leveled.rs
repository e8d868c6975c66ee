//! Leveled compaction: which tables are merged next.
//!
//! Rules of `RocksDB` 7.8 (`compaction_picker_level.cc`, wiki "Leveled Compaction"): the level that
//! is most above its size first; of its tables the one that overlaps the least below it; level 0 as
//! a whole, and among itself while the level below it is busy. Left out: compactions by age, by
//! read, and of marked files.

use crate::action::{FileNo, Key};
use crate::options::LsmOptions;
use crate::version::Version;

/// Tables of level 0 that are merged among themselves at least (`kMinFilesForIntraL0Compaction`).
const WITHIN_LEVEL0_LEAST: usize = 4;

/// Tables to merge.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// Tables with their levels, the newest first.
    pub inputs: Vec<(usize, FileNo)>,
    pub output_level: usize,
    /// Nothing overlaps: the tables change their level, and nothing is written.
    pub is_move: bool,
}

/// Compaction under way, as far as others must keep out of its way.
#[derive(Clone, Debug)]
pub struct Running {
    pub output_level: usize,
    pub range: (Key, Key),
}

/// The next compaction, if one is due.
pub fn pick(version: &Version, options: &LsmOptions, running: &[Running]) -> Option<Pick> {
    let (base, targets) = version.targets(options);
    let mut scores: Vec<(f64, usize)> = (0..version.levels.len() - 1)
        .map(|level| (score(version, options, level, targets[level]), level))
        .collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (score, level) in scores {
        if score < 1.0 {
            return None;
        }
        let found = if level == 0 {
            of_level0(version, options, base, running).or_else(|| within_level0(version, options))
        } else {
            of_level(version, options, level, running)
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Size of a level in parts of the one that it should have; from 1 on it is too large.
fn score(version: &Version, options: &LsmOptions, level: usize, target: f64) -> f64 {
    let free = version.levels[level].iter().map(|no| version.table(*no));
    let free = free.filter(|table| !table.is_compacted);
    if level == 0 {
        let by_count = free.count() as f64 / options.level0_file_num_compaction_trigger as f64;
        let base = options.max_bytes_for_level_base as f64;
        let by_size = version.bytes(0) as f64 / base;
        return by_count.max(by_size);
    }
    free.map(|table| table.file_bytes).sum::<u64>() as f64 / target
}

fn of_level0(
    version: &Version,
    options: &LsmOptions,
    base: usize,
    running: &[Running],
) -> Option<Pick> {
    let list = &version.levels[0];
    if list.is_empty() || list.iter().any(|no| version.table(*no).is_compacted) {
        return None;
    }
    // The oldest one, and all that overlap it or each other.
    let mut chosen = vec![*list.last()?];
    loop {
        let range = version.range(&chosen);
        let more = version.overlapping(0, range);
        if more.len() == chosen.len() {
            chosen = more;
            break;
        }
        chosen = more;
    }
    let inputs: Vec<_> = chosen.iter().map(|no| (0, *no)).collect();
    with_output(version, options, (inputs, 0), base, running)
}

/// The newest tables of level 0 merged to one, as long as each further one is worth it.
fn within_level0(version: &Version, options: &LsmOptions) -> Option<Pick> {
    let list = &version.levels[0];
    let trigger = options.level0_file_num_compaction_trigger as usize;
    if list.len() < trigger + 2 || version.table(list[0]).is_compacted {
        return None;
    }
    let mut bytes = version.table(list[0]).file_bytes;
    let mut per_removed = u64::MAX;
    let mut count = 1;
    for no in &list[1..] {
        let table = version.table(*no);
        let sum = bytes + table.file_bytes;
        let each = sum / count as u64;
        if table.is_compacted || each > per_removed || sum > options.compaction_bytes_max() {
            break;
        }
        (bytes, per_removed, count) = (sum, each, count + 1);
    }
    let inputs = list[..count].iter().map(|no| (0, *no)).collect();
    let pick = Pick { inputs, output_level: 0, is_move: false };
    (count >= WITHIN_LEVEL0_LEAST).then_some(pick)
}

fn of_level(
    version: &Version,
    options: &LsmOptions,
    level: usize,
    running: &[Running],
) -> Option<Pick> {
    let overlap = |no: FileNo| {
        let table = version.table(no);
        let below = version.overlapping(level + 1, (table.first(), table.last()));
        let bytes: u64 = below.iter().map(|no| version.table(*no).file_bytes).sum();
        bytes as f64 / table.file_bytes as f64
    };
    let free = version.levels[level].iter().filter(|no| !version.table(**no).is_compacted);
    let mut ordered: Vec<(f64, FileNo)> = free.map(|no| (overlap(*no), *no)).collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut tries = ordered.into_iter();
    tries.find_map(|(_, no)| {
        with_output(version, options, (vec![(level, no)], level), level + 1, running)
    })
}

/// A choice with what it overlaps below, unless somebody is at work there.
fn with_output(
    version: &Version,
    options: &LsmOptions,
    (mut inputs, level): (Vec<(usize, FileNo)>, usize),
    output: usize,
    running: &[Running],
) -> Option<Pick> {
    let numbers = |inputs: &[(usize, FileNo)]| inputs.iter().map(|(_, no)| *no).collect::<Vec<_>>();
    let is_free = |list: &[FileNo]| list.iter().all(|no| !version.table(*no).is_compacted);
    let range = version.range(&numbers(&inputs));
    let below = version.overlapping(output, range);
    if !is_free(&below) {
        return None;
    }
    let mut all = numbers(&inputs);
    all.extend(&below);
    let whole = version.range(&all);
    let meets = |other: &Running| {
        other.output_level == output && other.range.0 <= whole.1 && whole.0 <= other.range.1
    };
    if running.iter().any(meets) {
        return None;
    }
    if level > 0 && !below.is_empty() {
        // More of the upper level, if nothing more of the lower one comes with it.
        let wider = version.overlapping(level, whole);
        let both = wider.iter().chain(&below);
        let sum: u64 = both.map(|no| version.table(*no).file_bytes).sum();
        let same = version.overlapping(output, version.range(&wider)).len() == below.len();
        if wider.len() > inputs.len()
            && same
            && is_free(&wider)
            && sum < options.compaction_bytes_max()
        {
            inputs = wider.into_iter().map(|no| (level, no)).collect();
        }
    }
    let is_move = below.is_empty() && (level > 0 || inputs.len() == 1);
    inputs.extend(below.into_iter().map(|no| (output, no)));
    Some(Pick { inputs, output_level: output, is_move })
}
