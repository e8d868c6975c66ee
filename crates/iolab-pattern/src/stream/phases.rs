//! Phases of a stream: where it changes from one pattern to another.
//!
//! The cheapest division of the sequence of accesses: an access that is not as its phase costs one,
//! one in a mixed phase a bit more than a third, and every change as much as several of them. The
//! division is found exactly (Viterbi's algorithm over runs of equal accesses). It divides; the
//! name of a phase comes from its own counts, and neighbours of one name are one phase, because the
//! division of a mixture is a matter of chance.

use super::class::{
    AccessClass, AccessPattern, ClassCounts, Classified, LABEL_SHARE, Span, joined, widened,
    with_directions,
};

/// Accesses in a row that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlikeRun {
    /// Class.
    pub class: AccessClass,
    /// True of writes.
    pub is_write: bool,
    /// Number of accesses.
    pub accesses: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes of every access, if all have one size.
    pub size: Option<u64>,
    /// Distance between their beginnings, if they are strided.
    pub stride: i64,
    /// First byte and the one behind the last; None if the place of one is not known.
    pub span: Span,
}

impl AlikeRun {
    /// A run of one access.
    const fn of(one: &Classified) -> Self {
        let Classified { class, is_write, bytes, delta: stride, span, .. } = *one;
        Self { class, is_write, accesses: 1, bytes, size: Some(bytes), stride, span }
    }

    /// Kind of the order that begins with it, as far as the next run tells.
    fn begins(&self, next: Option<&Self>) -> Option<usize> {
        let next = next.filter(|next| next.is_write == self.is_write)?;
        let most = match next.class {
            AccessClass::Sequential | AccessClass::Backward => 1,
            // The distance between the first two is the first one.
            AccessClass::Strided => 2,
            _ => 0,
        };
        (is_anywhere(self.class) && self.accesses <= most).then(|| kind(next.class))
    }
}

const fn is_anywhere(class: AccessClass) -> bool {
    matches!(class, AccessClass::Near | AccessClass::Random)
}

/// Runs of a file.
#[derive(Clone, Debug, Default)]
pub struct AlikeRuns {
    runs: Vec<AlikeRun>,
    /// The last access, and the span of its run without it.
    last: Option<(Classified, Span)>,
    is_full: bool,
}

impl AlikeRuns {
    /// Adds an access, as long as `left` runs are; a file for which none is left has no phases.
    pub fn add(&mut self, one: &Classified, left: &mut usize) {
        self.part_beginning(one, left);
        let is_alike = |run: &&mut AlikeRun| {
            (run.class, run.is_write, run.stride) == (one.class, one.is_write, one.delta)
        };
        let run = self.runs.last_mut().filter(is_alike);
        self.last = Some((*one, run.as_ref().and_then(|run| run.span)));
        if let Some(run) = run {
            run.accesses += 1;
            run.bytes += one.bytes;
            run.size = run.size.filter(|size| *size == one.bytes);
            run.span = run.span.zip(one.span).map(|(run, one)| joined(run, one));
            return;
        }
        if *left == 0 || self.is_full {
            self.is_full = true;
            return;
        }
        *left -= 1;
        self.runs.push(AlikeRun::of(one));
    }

    /// Makes a run of its own of the last access if it lies anywhere and an order goes on from
    /// it.
    fn part_beginning(&mut self, next: &Classified, left: &mut usize) {
        let Some(((last, before), run)) = self.last.zip(self.runs.last_mut()) else { return };
        let goes_on = matches!(next.class, AccessClass::Sequential | AccessClass::Backward);
        let is_beginning = goes_on && is_anywhere(last.class) && last.is_write == next.is_write;
        if !is_beginning || run.accesses == 1 || *left == 0 || self.is_full {
            return;
        }
        *left -= 1;
        run.accesses -= 1;
        run.bytes -= last.bytes;
        run.span = before;
        self.runs.push(AlikeRun::of(&last));
    }

    /// Runs so far; none if there were too many.
    fn all(&self) -> Option<&[AlikeRun]> {
        (!self.is_full).then_some(&self.runs)
    }
}

/// Runs of a file in the order of all its accesses, and those of its reads and of its writes, each
/// in an order of their own.
#[derive(Clone, Debug, Default)]
pub struct JointRuns {
    /// Of all accesses.
    pub joint: AlikeRuns,
    /// Of the reads alone and of the writes alone, whatever lies between them.
    pub directions: [AlikeRuns; 2],
}

/// The same, none left out.
#[derive(Clone, Copy, Debug)]
pub struct AllRuns<'a> {
    joint: &'a [AlikeRun],
    directions: [&'a [AlikeRun]; 2],
}

impl JointRuns {
    /// The same with one class of all accesses: that of the single streams, each of which goes on
    /// in its steps wherever others are between them.
    #[must_use]
    pub fn with_class(&self, class: AccessClass, stride: Option<i64>) -> Self {
        let of = |runs: &AlikeRuns| {
            let mut runs = runs.clone();
            for run in &mut runs.runs {
                (run.class, run.stride) = (class, stride.unwrap_or(0));
            }
            runs
        };
        Self { joint: of(&self.joint), directions: self.directions.each_ref().map(of) }
    }

    /// Runs so far; None if there were too many.
    pub fn all(&self) -> Option<AllRuns<'_>> {
        let [reads, writes] = &self.directions;
        Some(AllRuns { joint: self.joint.all()?, directions: [reads.all()?, writes.all()?] })
    }
}

/// Gives the accesses of one direction, a phase's at a time.
struct OneDirection<'a> {
    runs: &'a [AlikeRun],
    /// Accesses of the first run that were given.
    given: u64,
}

impl OneDirection<'_> {
    /// Counts the next accesses and the longest stride in them.
    fn count(&mut self, mut accesses: u64, phase: &mut StreamPhase, direction: usize) {
        while let ([run, others @ ..], true) = (self.runs, accesses > 0) {
            let own = accesses.min(run.accesses - self.given);
            let bytes = run.bytes / run.accesses * own;
            phase.directions[direction].add_many(run.class, own, bytes);
            phase.take_stride((run.stride != 0).then_some((run.stride, own)));
            accesses -= own;
            self.given += own;
            if self.given == run.accesses {
                (self.runs, self.given) = (others, 0);
            }
        }
    }
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPhase {
    /// First access of it, from 0 on.
    pub first: u64,
    /// Classes of its accesses.
    pub counts: ClassCounts,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Classes of the reads and of the writes.
    pub directions: [ClassCounts; 2],
    /// Bytes of every access, if all have one size.
    pub size: Option<u64>,
    /// Stride of the longest run that has one, and its length.
    pub stride: Option<(i64, u64)>,
    /// First byte and the one behind the last of the reads and of the writes.
    pub spans: [Span; 2],
    /// True if the place of an access is not known.
    pub is_unplaced: bool,
}

/// Classes of phases: jumps of both kinds are one, and so are both forms of sequential access.
const KINDS: usize = 6;
/// Number of the kind of a phase in which all occur.
const MIXED: usize = KINDS - 1;
/// Directions of phases: reads, writes, both.
const DIRECTIONS: usize = 3;
const BOTH: usize = DIRECTIONS - 1;
const STATES: usize = KINDS * DIRECTIONS;
/// Cost of an access in a phase in which its class or direction is one of several.
const MIXED_COST: f64 = 0.35;
/// Cost of an access with which an order begins in a phase without one: the phase with that order
/// is where it belongs.
const BEGINNING_COST: f64 = 0.01;
/// Least cost of a change: eight accesses that are not mixed are worth a phase of their own.
const CHANGE_COST: f64 = 2.5;
/// Changes become dearer with the logarithm of the length, so that chance makes no phases.
const CHANGE_GROWTH: f64 = 1.2;
const SHORT: f64 = 32.0;

const fn kind(class: AccessClass) -> usize {
    match class {
        AccessClass::Sequential | AccessClass::Interleaved => 0,
        AccessClass::Backward => 1,
        AccessClass::Strided => 2,
        AccessClass::Near | AccessClass::Random => 3,
        AccessClass::Same => 4,
    }
}

/// Cost of a run in a phase; `begins` is the kind of the order that begins with it.
fn cost(state: usize, run: &AlikeRun, begins: Option<usize>) -> f64 {
    let (state_kind, state_direction) = (state / DIRECTIONS, state % DIRECTIONS);
    let of = |state: usize, own: usize, several: usize| match state {
        state if state == own => 0.0,
        state if state == several => MIXED_COST,
        _ => 1.0,
    };
    let of_kind = match begins {
        Some(begun) if begun == state_kind => 0.0,
        Some(_) if state_kind == kind(run.class) => BEGINNING_COST,
        _ => of(state_kind, kind(run.class), MIXED),
    };
    let each = of_kind + of(state_direction, usize::from(run.is_write), BOTH);
    each * run.accesses as f64
}

/// Divides a stream into phases.
pub fn phases(all: AllRuns<'_>) -> Vec<StreamPhase> {
    let runs = all.joint;
    let total: u64 = runs.iter().map(|run| run.accesses).sum();
    let change = CHANGE_COST.max(CHANGE_GROWTH * (total as f64 / SHORT).ln());
    let mut costs = [0.0; STATES];
    let mut origins: Vec<[u8; STATES]> = Vec::with_capacity(runs.len());
    for (at, run) in runs.iter().enumerate() {
        let begins = run.begins(runs.get(at + 1));
        let (cheapest, least) = least_of(&costs);
        let mut origin = [0; STATES];
        let mut next = [0.0; STATES];
        for state in 0..STATES {
            let is_changed = least + change < costs[state];
            origin[state] = if is_changed { cheapest } else { state } as u8;
            next[state] = costs[state].min(least + change) + cost(state, run, begins);
        }
        costs = next;
        origins.push(origin);
    }
    let mut state = least_of(&costs).0;
    let mut states = vec![0; runs.len()];
    for (at, origin) in origins.iter().enumerate().rev() {
        states[at] = state;
        state = usize::from(origin[state]);
    }
    without_chance(merged(gathered(all, &states)))
}

fn least_of(costs: &[f64; STATES]) -> (usize, f64) {
    let start = (0, costs[0]);
    let states = costs.iter().copied().enumerate();
    states.fold(start, |least, one| if one.1 < least.1 { one } else { least })
}

fn gathered(all: AllRuns<'_>, states: &[usize]) -> Vec<StreamPhase> {
    let mut phases: Vec<StreamPhase> = Vec::new();
    let (mut before, mut first) = (None, 0);
    for (run, state) in all.joint.iter().zip(states) {
        if before != Some(*state) {
            phases.push(StreamPhase { first, size: run.size, ..StreamPhase::default() });
            before = Some(*state);
        }
        if let Some(phase) = phases.last_mut() {
            phase.counts.add_many(run.class, run.accesses, run.bytes);
            phase.take_stride((run.stride != 0).then_some((run.stride, run.accesses)));
            phase.size = phase.size.filter(|size| run.size == Some(*size));
            phase.take_span(run.span, run.is_write);
            if run.is_write {
                phase.writes += run.accesses;
            } else {
                phase.reads += run.accesses;
            }
        }
        first += run.accesses;
    }
    let [reads, writes] = all.directions.map(|runs| OneDirection { runs, given: 0 });
    for (direction, mut own) in [reads, writes].into_iter().enumerate() {
        for phase in &mut phases {
            let accesses = [phase.reads, phase.writes][direction];
            own.count(accesses, phase, direction);
        }
    }
    phases
}

/// Direction of a phase: reads, writes, both.
fn direction(phase: &StreamPhase) -> usize {
    let share = phase.reads as f64 / (phase.reads + phase.writes).max(1) as f64;
    match share {
        share if share >= LABEL_SHARE => 0,
        share if share <= 1.0 - LABEL_SHARE => 1,
        _ => BOTH,
    }
}

/// Sizes that differ by less than this factor are those of one phase.
const SIZE_FACTOR: u64 = 2;

fn is_alike(one: &StreamPhase, other: &StreamPhase) -> bool {
    let sides =
        |phase: &StreamPhase| -> (AccessPattern, usize) { (phase.label(), direction(phase)) };
    let (one_size, other_size) = (one.mean_bytes(), other.mean_bytes());
    let (small, large) = (one_size.min(other_size), one_size.max(other_size));
    sides(one) == sides(other) && large < SIZE_FACTOR * small.max(1)
}

fn merged(phases: Vec<StreamPhase>) -> Vec<StreamPhase> {
    let mut out: Vec<StreamPhase> = Vec::with_capacity(phases.len());
    for phase in phases {
        out.push(phase);
        while let [.., before, last] = out.as_mut_slice() {
            if !is_alike(before, last) {
                break;
            }
            let last = *last;
            before.merge(&last);
            out.pop();
        }
    }
    out
}

/// A phase of a mixture is so many times as long as a stretch beside it that is a matter of chance:
/// in a mixture alike accesses follow each other now and then.
const CHANCE: u64 = 16;

/// Joins stretches that are a matter of chance with the mixture beside them.
fn without_chance(phases: Vec<StreamPhase>) -> Vec<StreamPhase> {
    let is_mixture =
        |phase: &StreamPhase| phase.label() == AccessPattern::Mixed || direction(phase) == BOTH;
    let mixed = phases.iter().filter(|phase| is_mixture(phase));
    let longest = mixed.map(|phase| phase.counts.total()).max().unwrap_or(0);
    let mut out: Vec<StreamPhase> = Vec::with_capacity(phases.len());
    for phase in phases {
        let is_chance = |one: &StreamPhase| one.counts.total() * CHANCE <= longest;
        match out.last_mut() {
            Some(before) if is_mixture(before) && is_chance(&phase) => before.merge(&phase),
            Some(before) if is_mixture(&phase) && is_chance(before) => {
                before.merge(&phase);
            }
            _ => out.push(phase),
        }
    }
    merged(out)
}

impl StreamPhase {
    fn take_stride(&mut self, other: Option<(i64, u64)>) {
        let length = |stride: Option<(i64, u64)>| stride.map_or(0, |(_, accesses)| accesses);
        if length(other) > length(self.stride) {
            self.stride = other;
        }
    }

    fn take_span(&mut self, other: Span, is_write: bool) {
        let known = &mut self.spans[usize::from(is_write)];
        *known = widened(*known, other);
        self.is_unplaced |= other.is_none();
    }

    /// First byte and the one behind the last; None if the place of one is not known.
    pub fn span(&self) -> Span {
        let [reads, writes] = self.spans;
        widened(reads, writes).filter(|_| !self.is_unplaced)
    }

    /// Goes on with another one.
    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for (own, further) in self.directions.iter_mut().zip(&other.directions) {
            own.merge(further);
        }
        self.reads += other.reads;
        self.writes += other.writes;
        self.size = self.size.filter(|size| other.size == Some(*size));
        self.take_stride(other.stride);
        for (own, further) in self.spans.iter_mut().zip(other.spans) {
            *own = widened(*own, further);
        }
        self.is_unplaced |= other.is_unplaced;
    }

    /// Pattern of its accesses.
    pub fn label(&self) -> AccessPattern {
        with_directions(self.counts.label(), &self.directions)
    }

    /// Mean bytes of an access.
    pub fn mean_bytes(&self) -> u64 {
        let bytes: u64 = AccessClass::ALL.iter().map(|class| self.counts.bytes(*class)).sum();
        bytes / self.counts.total().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(class: AccessClass, is_write: bool, accesses: u64) -> AlikeRun {
        let (bytes, size, span) = (accesses * 4096, Some(4096), Some((0, accesses * 4096)));
        AlikeRun { class, is_write, accesses, bytes, size, stride: 0, span }
    }

    /// Runs of which those of each direction are in the order of the whole, too.
    fn divided(joint: &[AlikeRun]) -> Vec<StreamPhase> {
        let of = |is_write| -> Vec<AlikeRun> {
            joint.iter().filter(|run| run.is_write == is_write).copied().collect()
        };
        let (reads, writes) = (of(false), of(true));
        phases(AllRuns { joint, directions: [&reads, &writes] })
    }

    #[test]
    fn a_program_with_phases_is_divided_where_it_changes() {
        let runs = [
            run(AccessClass::Sequential, true, 40),
            run(AccessClass::Random, false, 1),
            run(AccessClass::Sequential, false, 7),
            run(AccessClass::Random, false, 1),
            run(AccessClass::Strided, false, 7),
            run(AccessClass::Backward, false, 8),
            run(AccessClass::Random, false, 9),
        ];
        let found = divided(&runs);
        let firsts: Vec<u64> = found.iter().map(|phase| phase.first).collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(firsts[0], 0);
        assert!(firsts.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(found.iter().map(|phase| phase.counts.total()).sum::<u64>(), 73);
    }

    #[test]
    fn an_order_begins_with_its_first_access() {
        let one = |class, is_write, at: u64| Classified {
            class,
            is_write,
            bytes: 4096,
            depth: 0,
            delta: 0,
            span: Some((at * 4096, (at + 1) * 4096)),
        };
        for is_write in [false, true] {
            let (mut runs, mut left) = (AlikeRuns::default(), usize::MAX);
            for at in 0..40 {
                runs.add(&one(AccessClass::Random, false, at * 7 % 40), &mut left);
            }
            runs.add(&one(AccessClass::Random, is_write, 1000), &mut left);
            for at in 1001..1040 {
                runs.add(&one(AccessClass::Sequential, is_write, at), &mut left);
            }
            let found = divided(runs.all().unwrap());
            let places: Vec<_> = found.iter().map(|phase| (phase.first, phase.span())).collect();
            let [first, second] = [(0, 40), (1000, 1040)].map(|(a, b)| Some((a * 4096, b * 4096)));
            assert_eq!(places, [(0, first), (40, second)]);
        }
    }

    #[test]
    fn chance_makes_no_phases() {
        // A mixture of reads and writes, random and sequential, by a fixed generator.
        let mut state = 1_u64;
        let (mut runs, mut left) = (AlikeRuns::default(), usize::MAX);
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let class =
                if state >> 33 & 7 < 5 { AccessClass::Random } else { AccessClass::Sequential };
            let is_write = state >> 40 & 7 < 3;
            let one = Classified { class, is_write, bytes: 4096, depth: 0, delta: 0, span: None };
            runs.add(&one, &mut left);
        }
        assert_eq!(divided(runs.all().unwrap()).len(), 1);
    }

    #[test]
    fn a_phase_knows_where_its_reads_and_its_writes_were() {
        let at = |class, is_write, accesses, first: u64| AlikeRun {
            span: Some((first, first + accesses * 4096)),
            ..run(class, is_write, accesses)
        };
        let mut runs = vec![
            at(AccessClass::Sequential, false, 50, 0),
            at(AccessClass::Random, true, 50, 8192),
            at(AccessClass::Sequential, false, 50, 50 * 4096),
        ];
        let found = divided(&runs);
        let spans: Vec<_> = found.iter().map(StreamPhase::span).collect();
        let expected = [(0, 204_800), (8192, 212_992), (204_800, 409_600)].map(Some);
        assert_eq!(spans, expected);
        assert_eq!(found[1].spans, [None, expected[1]]);
        runs[1].span = None;
        assert_eq!(divided(&runs)[1].span(), None);
    }

    #[test]
    fn reads_and_writes_of_a_phase_have_orders_of_their_own() {
        let joint = [run(AccessClass::Sequential, true, 100), run(AccessClass::Random, false, 1)];
        let mut turns = joint.to_vec();
        for _ in 0..100 {
            turns.push(run(AccessClass::Random, true, 1));
            turns.push(run(AccessClass::Random, false, 1));
        }
        let mut strided = run(AccessClass::Strided, false, 101);
        strided.stride = 1 << 16;
        let writes = [run(AccessClass::Sequential, true, 100), run(AccessClass::Random, true, 100)];
        let found = phases(AllRuns { joint: &turns, directions: [&[strided], &writes] });
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].label(), AccessPattern::Sequential);
        assert_eq!(found[1].label(), AccessPattern::Mixed);
        assert_eq!(
            found[1].directions.map(|one| one.label()),
            [AccessPattern::Strided, AccessPattern::Random]
        );
        assert_eq!(found[1].stride, Some((1 << 16, 101)));
    }
}
