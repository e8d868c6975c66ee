//! Universal compaction: sorted runs of similar size are merged.
//!
//! Rules of `RocksDB` 7.8 (`compaction_picker_universal.cc`, wiki "Universal Compaction"), in their
//! order: too much space beside the oldest run; runs of similar size; too many runs. Left out:
//! compactions by age and of deletions, and incremental ones.

use crate::action::FileNo;
use crate::leveled::Pick;
use crate::options::LsmOptions;
use crate::version::Version;

/// A sorted run: a table of level 0, or a whole level.
struct Run {
    level: usize,
    tables: Vec<FileNo>,
    bytes: u64,
    is_compacted: bool,
}

fn runs(version: &Version) -> Vec<Run> {
    let run = |level, tables: Vec<FileNo>| {
        let table = |no: &FileNo| version.table(*no);
        let bytes = tables.iter().map(|no| table(no).file_bytes).sum();
        let is_compacted = tables.iter().any(|no| table(no).is_compacted);
        Run { level, tables, bytes, is_compacted }
    };
    let upper = version.levels[0].iter().map(|no| run(0, vec![*no]));
    let lower = version.levels.iter().enumerate().skip(1);
    let lower = lower.filter(|(_, tables)| !tables.is_empty());
    upper.chain(lower.map(|(level, tables)| run(level, tables.clone()))).collect()
}

/// The next compaction, if one is due.
pub fn pick(version: &Version, options: &LsmOptions) -> Option<Pick> {
    let runs = runs(version);
    let trigger = options.level0_file_num_compaction_trigger as usize;
    if runs.len() < trigger {
        return None;
    }
    let too_many = || {
        let free = runs.iter().filter(|run| !run.is_compacted).count();
        let count = (free > trigger).then(|| free - trigger + 1)?;
        similar(&runs, options, (u64::MAX, count))
    };
    let whole = options.universal.max_merge_width.min(usize::MAX as u64) as usize;
    let (from, to) = amplified(&runs, options)
        .or_else(|| similar(&runs, options, (options.universal.size_ratio, whole)))
        .or_else(too_many)?;
    let chosen = &runs[from..to];
    let output_level = match runs.get(to) {
        None => version.levels.len() - 1,
        Some(next) => next.level.saturating_sub(1),
    };
    let of_run = |run: &Run| run.tables.iter().map(|no| (run.level, *no)).collect::<Vec<_>>();
    let inputs: Vec<_> = chosen.iter().flat_map(of_run).collect();
    Some(Pick { inputs, output_level, is_move: false })
}

/// All runs, if those beside the oldest one take too much of its size.
fn amplified(runs: &[Run], options: &LsmOptions) -> Option<(usize, usize)> {
    let (oldest, others) = runs.split_last()?;
    if oldest.is_compacted {
        return None;
    }
    // From the newest one on that nobody merges.
    let from = others.iter().position(|run| !run.is_compacted)?;
    let others = &others[from..];
    if others.iter().any(|run| run.is_compacted) {
        return None;
    }
    let beside: u64 = others.iter().map(|run| run.bytes).sum();
    let limit = options.universal.max_size_amplification_percent;
    (u128::from(beside) * 100 >= u128::from(oldest.bytes) * u128::from(limit))
        .then_some((from, runs.len()))
}

/// The newest runs of which each is at most so much larger than all before it together.
fn similar(
    runs: &[Run],
    options: &LsmOptions,
    (ratio, most): (u64, usize),
) -> Option<(usize, usize)> {
    let least = options.universal.min_merge_width.max(2) as usize;
    let most = most.max(least);
    for from in 0..runs.len() {
        if runs[from].is_compacted {
            continue;
        }
        let mut sum = runs[from].bytes;
        let mut to = from + 1;
        while to < runs.len() && to - from < most && !runs[to].is_compacted {
            let limit = u128::from(sum) * (100 + u128::from(ratio)) / 100;
            if limit < u128::from(runs[to].bytes) {
                break;
            }
            sum += runs[to].bytes;
            to += 1;
        }
        if to - from >= least {
            return Some((from, to));
        }
    }
    None
}
