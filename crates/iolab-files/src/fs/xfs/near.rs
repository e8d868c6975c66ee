//! Choice of free blocks in one allocation group: at a block, near a block, or by size alone.
//!
//! Rules and order of the searches: Linux `fs/xfs/libxfs/xfs_alloc.c`
//! (`xfs_alloc_ag_vextent_exact`,
//! _near, _size). A cursor that the kernel deactivates is `None` here.

use super::space::{FreeSpace, FreeSpan};

/// Blocks that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The block to be near to.
    pub goal: u32,
    /// Fewest blocks.
    pub min: u32,
    /// Most blocks.
    pub max: u32,
    /// The first block is a multiple of this.
    pub align: u32,
    /// For data of a file, which may grow.
    pub is_data: bool,
}

/// Answer of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// These blocks.
    Blocks(FreeSpan),
    /// Nothing, but busy blocks would do: force the log, then search again.
    Busy,
    /// Nothing.
    Nothing,
}

/// Best candidate so far.
#[derive(Clone, Copy)]
struct Best {
    run: FreeSpan,
    distance: u32,
    has_met_busy: bool,
}

impl Best {
    const NONE: Self =
        Self { run: FreeSpan { first: 0, count: 0 }, distance: u32::MAX, has_met_busy: false };

    fn found(self) -> Nearest {
        match (self.run.count, self.has_met_busy) {
            (0, true) => Nearest::Busy,
            (0, false) => Nearest::Nothing,
            _ => Nearest::Blocks(self.run),
        }
    }
}

/// Result of one look at a run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    is_better: bool,
    /// The cursor has nothing more to give.
    is_last: bool,
}

/// Usable part of a run after alignment (`xfs_alloc_compute_aligned`).
fn usable(space: &FreeSpace, want: &Want, run: FreeSpan) -> (FreeSpan, bool) {
    let (rest, met) = space.usable(run, want.min, want.max);
    if want.align > 1 && rest.count >= want.min {
        let first = rest.first.next_multiple_of(want.align);
        let skipped = (first - rest.first).min(rest.count);
        return (FreeSpan { first, count: rest.count - skipped }, met);
    }
    (rest, met)
}

/// First block for `count` blocks inside a usable run, as near to the goal as the rules want it:
/// data that cannot reach the goal begin at the run's start, so that the file may grow
/// (`xfs_alloc_compute_diff`).
fn place(want: &Want, count: u32, run: FreeSpan) -> Option<(u32, u32)> {
    let (goal, end, align) = (want.goal, run.end(), want.align);
    let goal_end = u64::from(goal) + u64::from(count);
    let reaches = u64::from(end) >= goal_end;
    let first = if run.first >= goal || (want.is_data && !reaches) {
        Some(run.first.next_multiple_of(align)).filter(|first| *first < end)
    } else if reaches && align > 1 {
        let above = goal.next_multiple_of(align);
        let below = above - align;
        let fits = |first: u32| end.checked_sub(first).map_or(0, |rest| rest.min(count));
        let (high, low) = (fits(above), if below >= run.first { fits(below) } else { 0 });
        match (high, low) {
            (0, 0) => None,
            (0, _) => Some(below),
            (_, 0) => Some(above),
            _ if low > high || (low == high && below.abs_diff(goal) < above.abs_diff(goal)) => {
                Some(below)
            }
            _ => Some(above),
        }
    } else if reaches {
        Some(goal)
    } else if align > 1 {
        let first = (end - count).next_multiple_of(align);
        if first > end - count && first - align >= run.first {
            Some(first - align)
        } else {
            Some(first).filter(|first| *first < end)
        }
    } else {
        Some(end - count)
    };
    first.map(|first| (first, first.abs_diff(goal)))
}

/// Looks at one run (`xfs_alloc_cur_check`).
fn look(space: &FreeSpace, want: &Want, best: &mut Best, run: FreeSpan, is_by_size: bool) -> Look {
    let worse = |is_last| Look { is_better: false, is_last };
    if run.count < want.min {
        return worse(is_by_size);
    }
    let (rest, met) = usable(space, want, run);
    best.has_met_busy |= met;
    if rest.count < want.min || rest.count == 0 {
        return worse(false);
    }
    let count = rest.count.min(want.max);
    if count < best.run.count {
        return worse(false);
    }
    let Some((first, distance)) = place(want, count, rest) else { return worse(false) };
    if distance > best.distance {
        return worse(!is_by_size);
    }
    best.run = FreeSpan { first, count: count.min(rest.end() - first) };
    best.distance = distance;
    Look { is_better: true, is_last: distance == 0 && count == want.max }
}

/// Exactly at the goal (`xfs_alloc_ag_vextent_exact`).
pub fn exact(space: &FreeSpace, want: &Want) -> Option<FreeSpan> {
    let run = space.at_or_before(want.goal)?;
    let (rest, _) = space.usable(run, want.min, want.max);
    let fits = rest.first <= want.goal
        && rest.count >= want.min
        && u64::from(rest.end()) >= u64::from(want.goal) + u64::from(want.min);
    let end = u64::from(rest.end()).min(u64::from(want.goal) + u64::from(want.max));
    fits.then(|| FreeSpan { first: want.goal, count: (end - u64::from(want.goal)) as u32 })
}

/// Near the goal (`xfs_alloc_ag_vextent_near`).
pub fn near(space: &FreeSpace, want: &Want) -> Nearest {
    let fitting = space.of_size(want.max, 0);
    let Some(start) = fitting.or_else(|| space.last()) else { return Nearest::Nothing };
    let mut best = Best::NONE;
    if space.is_in_last_leaf(start) {
        let mut at = Some(start);
        if fitting.is_none() || want.align > 1 {
            at = space.last_leaf();
            while at.is_some_and(|run| run.count < want.min) {
                at = at.and_then(|run| space.longer(run));
            }
        }
        while let Some(run) = at {
            if look(space, want, &mut best, run, true).is_last {
                break;
            }
            at = space.longer(run);
        }
        if best.run.count > 0 {
            return Nearest::Blocks(best.run);
        }
    }
    locality(space, want, best)
}

/// Search of both trees at once (`xfs_alloc_ag_vextent_locality`).
fn locality(space: &FreeSpace, want: &Want, mut best: Best) -> Nearest {
    let mut left = space.at_or_before(want.goal);
    let mut right = space.at_or_after(want.goal);
    let mut size = Some(want.max);
    while left.is_some() || right.is_some() || size.is_some() {
        if let Some(run) = left {
            let seen = look(space, want, &mut best, run, false);
            if seen.is_better {
                walk(space, want, &mut best, right, FreeSpace::right_of);
                return best.found();
            }
            left = if seen.is_last { None } else { space.left_of(run) };
        }
        if let Some(run) = right {
            let seen = look(space, want, &mut best, run, false);
            if seen.is_better {
                walk(space, want, &mut best, left, FreeSpace::left_of);
                return best.found();
            }
            right = if seen.is_last { None } else { space.right_of(run) };
        }
        size = size.and_then(|size| by_size(space, want, &mut best, size));
        if size.is_none() {
            break;
        }
    }
    if best.run.count == 0 && !best.has_met_busy {
        let mut at = space.last();
        while let Some(run) = at {
            let seen = look(space, want, &mut best, run, true);
            if seen.is_better || seen.is_last {
                break;
            }
            at = space.shorter(run);
        }
    }
    best.found()
}

/// Goes on in one direction until something better is found or nothing can be.
fn walk(
    space: &FreeSpace,
    want: &Want,
    best: &mut Best,
    from: Option<FreeSpan>,
    step: fn(&FreeSpace, FreeSpan) -> Option<FreeSpan>,
) {
    let mut at = from;
    while let Some(run) = at {
        let seen = look(space, want, best, run, false);
        if seen.is_better || seen.is_last {
            return;
        }
        at = step(space, run);
    }
}

/// One step in the tree by size: the run of this length nearest to the goal; then the next length
/// to look at (`xfs_alloc_cntbt_iter`).
fn by_size(space: &FreeSpace, want: &Want, best: &mut Best, size: u32) -> Option<u32> {
    let run = space.of_size(size, want.goal)?;
    let seen = look(space, want, best, run, true);
    let reached = run.count;
    let mut is_last = seen.is_last;
    if run.first > want.goal
        && let Some(before) = space.shorter(run).filter(|before| before.count == reached)
    {
        is_last |= look(space, want, best, before, true).is_last;
    }
    if is_last {
        return None;
    }
    let double = size.saturating_mul(2);
    Some(if best.run.count == 0 || reached >= double { reached + 1 } else { double })
}

/// By size alone (`xfs_alloc_ag_vextent_size`).
pub fn by_size_alone(space: &FreeSpace, want: &Want) -> Nearest {
    let mut met = false;
    let mut at = space.of_size(want.max.saturating_add(want.align - 1), 0);
    let has_long = at.is_some();
    while let Some(run) = at {
        let (rest, busy) = usable(space, want, run);
        met |= busy;
        if rest.count >= want.max {
            return Nearest::Blocks(FreeSpan { first: rest.first, count: want.max });
        }
        at = space.longer(run);
    }
    if has_long && met {
        return Nearest::Busy;
    }
    let mut best = FreeSpan { first: 0, count: 0 };
    let mut at = space.last();
    while let Some(run) = at.filter(|run| run.count >= best.count.max(1)) {
        let (rest, busy) = usable(space, want, run);
        met |= busy;
        let count = rest.count.min(want.max);
        if count > best.count {
            best = FreeSpan { first: rest.first, count };
        }
        if count == want.max {
            break;
        }
        at = space.shorter(run);
    }
    match best.count >= want.min.max(1) {
        true => Nearest::Blocks(best),
        false if met => Nearest::Busy,
        false => Nearest::Nothing,
    }
}
