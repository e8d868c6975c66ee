//! Relations of accesses to the ones before them.

use serde::Serialize;

iolab_model::registry! {
    /// Relation of an access to the ones before it in its stream.
    pub enum AccessClass as "access class" {
        /// Begins where the one before ended.
        Sequential = "sequential",
        /// Begins where an earlier one ended, not the last one: several streams take turns.
        Interleaved = "interleaved",
        /// Ends where the one before began.
        Backward = "backward",
        /// Begins where the one before began.
        Same = "same",
        /// Lies as far from the one before as that did from its own, four times at least.
        Strided = "strided",
        /// Begins at most 128 KiB from where the one before ended.
        Near = "near",
        /// Begins anywhere else.
        Random = "random",
    }
}

/// Largest distance of a near access in bytes.
pub const NEAR_BYTES: u64 = 128 << 10;
/// Equal distances in a row from which on they are a stride.
pub const STRIDE_REPEATS: u32 = 4;
/// Ends of accesses that are remembered: as many streams can take turns.
pub const CURSORS: usize = 16;

/// A class that is known for sure, with the direction of its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Class.
    pub class: AccessClass,
    /// True of a write.
    pub is_write: bool,
    /// Bytes.
    pub bytes: u64,
    /// Position among the remembered ends if it is interleaved: 1 is the one before the last.
    pub depth: usize,
    /// Distance from the beginning of the one before if it is strided, else 0.
    pub delta: i64,
    /// Its place; None if it is not known.
    pub span: Span,
}

/// Classifies the accesses of one stream.
///
/// A stride is known only when it has repeated: the last accesses are held back until it is clear
/// that they belong to none.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    last: Option<(u64, u64)>,
    /// Distance of the last two beginnings, and how often it has occurred in a row.
    delta: i128,
    repeats: u32,
    held: Vec<Classified>,
    /// Ends of accesses, the last one first.
    ends: Vec<u64>,
}

impl Classifier {
    /// Adds an access; `give` is called for all whose class is known by now.
    pub fn add(
        &mut self,
        offset: Option<u64>,
        bytes: u64,
        is_write: bool,
        mut give: impl FnMut(Classified),
    ) {
        let Some(offset) = offset else {
            // Appended: where the file ends.
            let class = AccessClass::Sequential;
            let one = Classified { class, is_write, bytes, depth: 0, delta: 0, span: None };
            self.hold(one, &mut give);
            return;
        };
        let end = offset.saturating_add(bytes);
        let (class, continued) = self.class_of(offset, end);
        // The first access has none before it: it is what the second makes of both.
        if let ([first], 1) = (self.held.as_mut_slice(), self.ends.len())
            && matches!(class, AccessClass::Sequential | AccessClass::Backward | AccessClass::Same)
        {
            first.class = class;
        }
        self.remember(end, continued);
        let depth = continued.unwrap_or(0);
        let delta = self.last.map_or(0, |(last, _)| i128::from(offset) - i128::from(last));
        if delta != 0 && delta == self.delta {
            self.repeats += 1;
        } else {
            (self.delta, self.repeats) = (delta, u32::from(delta != 0));
        }
        self.last = Some((offset, end));
        let span = Some((offset, end));
        self.hold(Classified { class, is_write, bytes, depth, delta: 0, span }, &mut give);
        if self.repeats >= STRIDE_REPEATS
            && class != AccessClass::Sequential
            && class != AccessClass::Backward
        {
            for one in self.held.iter_mut().rev().take(STRIDE_REPEATS as usize) {
                if !matches!(one.class, AccessClass::Sequential | AccessClass::Backward) {
                    one.class = AccessClass::Strided;
                    one.delta = i64::try_from(self.delta).unwrap_or(0);
                }
            }
        }
    }

    /// Gives the accesses that were held back.
    pub fn finish(&mut self, give: impl FnMut(Classified)) {
        self.held.drain(..).for_each(give);
    }

    /// Stride that the last access went on with, if it did.
    pub fn stride(&self) -> Option<i128> {
        self.held.last().filter(|one| one.class == AccessClass::Strided).map(|_| self.delta)
    }

    /// Class, and the place among the remembered ends of the one that is continued.
    fn class_of(&self, offset: u64, end: u64) -> (AccessClass, Option<usize>) {
        let (last, last_end) = self.last.unwrap_or((0, 0));
        if offset == last_end {
            return (AccessClass::Sequential, self.last.map(|_| 0));
        }
        if self.last.is_some() && offset == last {
            return (AccessClass::Same, None);
        }
        if self.last.is_some() && end == last && end > offset {
            return (AccessClass::Backward, None);
        }
        if let Some(depth) = self.ends.iter().position(|end| *end == offset) {
            return (AccessClass::Interleaved, Some(depth));
        }
        let is_near = offset.abs_diff(last_end) <= NEAR_BYTES;
        (if is_near { AccessClass::Near } else { AccessClass::Random }, None)
    }

    /// Keeps an end; the one that was continued gives its place.
    fn remember(&mut self, end: u64, continued: Option<usize>) {
        if let Some(depth) = continued {
            self.ends.remove(depth);
        } else if self.ends.len() == CURSORS {
            self.ends.pop();
        }
        self.ends.insert(0, end);
    }

    fn hold(&mut self, one: Classified, give: &mut impl FnMut(Classified)) {
        self.held.push(one);
        if self.held.len() > STRIDE_REPEATS as usize {
            give(self.held.remove(0));
        }
    }
}

/// Counts of all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    accesses: [u64; AccessClass::ALL.len()],
    bytes: [u64; AccessClass::ALL.len()],
}

/// Share from which on a stream has the name of a class.
pub const LABEL_SHARE: f64 = 0.8;
/// Share of interleaved accesses from which on a stream that is sequential otherwise is
/// interleaved.
const INTERLEAVED_SHARE: f64 = 0.2;

/// Accesses of one direction from which on their order is told.
const DIRECTION_MIN: u64 = 8;

iolab_model::registry! {
    /// Name of a stream.
    pub enum AccessPattern as "access pattern" {
        /// One after the other.
        Sequential = "sequential",
        /// Several sequential streams take turns.
        Interleaved = "interleaved",
        /// From the end to the beginning.
        Backward = "backward",
        /// At equal distances.
        Strided = "strided",
        /// The same place again and again.
        Same = "same-place",
        /// In short jumps.
        Near = "near",
        /// Anywhere.
        Random = "random",
        /// No class has 80 per cent.
        Mixed = "mixed",
    }
}

impl AccessPattern {
    /// True of accesses that have no single order.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Mixed | Self::Random | Self::Near)
    }

    /// Class of accesses that go on at equal distances, wherever others are between them.
    pub const fn class_of_steps(self) -> Option<AccessClass> {
        match self {
            Self::Strided => Some(AccessClass::Strided),
            Self::Backward => Some(AccessClass::Backward),
            _ => None,
        }
    }
}

impl ClassCounts {
    /// Adds an access.
    pub fn add(&mut self, one: &Classified) {
        self.add_many(one.class, 1, one.bytes);
    }

    /// Adds several of one class.
    pub fn add_many(&mut self, class: AccessClass, accesses: u64, bytes: u64) {
        self.accesses[class as usize] += accesses;
        self.bytes[class as usize] += bytes;
    }

    /// Adds the counts of another stream.
    pub fn merge(&mut self, other: &Self) {
        for class in AccessClass::ALL {
            let at = *class as usize;
            self.add_many(*class, other.accesses[at], other.bytes[at]);
        }
    }

    /// Number of accesses of a class.
    pub const fn accesses(&self, class: AccessClass) -> u64 {
        self.accesses[class as usize]
    }

    /// Bytes of a class.
    pub const fn bytes(&self, class: AccessClass) -> u64 {
        self.bytes[class as usize]
    }

    /// Number of all accesses.
    pub fn total(&self) -> u64 {
        self.accesses.iter().sum()
    }

    /// Name of the accesses of one direction, between which those of the other may lie; None if
    /// there are too few of them, or they have no single order either.
    pub fn label_of_direction(&self) -> Option<AccessPattern> {
        let is_told = self.total() >= DIRECTION_MIN;
        let label = self.label();
        let label = match label {
            AccessPattern::Interleaved => AccessPattern::Sequential,
            label => label,
        };
        (is_told && label != AccessPattern::Mixed).then_some(label)
    }

    /// Share of accesses without an order.
    pub fn random_share(&self) -> f64 {
        let random = self.accesses(AccessClass::Random) + self.accesses(AccessClass::Near);
        random as f64 / self.total().max(1) as f64
    }

    /// Name of a stream with these counts.
    pub fn label(&self) -> AccessPattern {
        let total = self.total().max(1) as f64;
        let share = |class| self.accesses(class) as f64 / total;
        if share(AccessClass::Sequential) + share(AccessClass::Interleaved) >= LABEL_SHARE {
            return if share(AccessClass::Interleaved) >= INTERLEAVED_SHARE {
                AccessPattern::Interleaved
            } else {
                AccessPattern::Sequential
            };
        }
        match () {
            () if share(AccessClass::Backward) >= LABEL_SHARE => AccessPattern::Backward,
            () if share(AccessClass::Same) >= LABEL_SHARE => AccessPattern::Same,
            () if share(AccessClass::Strided) >= LABEL_SHARE => AccessPattern::Strided,
            () if share(AccessClass::Near) >= LABEL_SHARE => AccessPattern::Near,
            () if share(AccessClass::Near) + share(AccessClass::Random) >= LABEL_SHARE => {
                AccessPattern::Random
            }
            () => AccessPattern::Mixed,
        }
    }
}

/// Patterns of reads and writes, where together they have none.
pub fn directions_of(
    pattern: AccessPattern,
    counts: &[ClassCounts; 2],
) -> Option<(AccessPattern, AccessPattern)> {
    let [reads, writes] = counts.map(|counts| counts.label_of_direction());
    let found = reads.zip(writes)?;
    (pattern == AccessPattern::Mixed && found.0 != found.1).then_some(found)
}

/// True if the reads are one sequential stream and the writes another one.
pub fn is_stream_each(counts: &[ClassCounts; 2]) -> bool {
    counts.iter().all(|counts| {
        counts.total() >= DIRECTION_MIN && counts.label() == AccessPattern::Sequential
    })
}

/// First byte and the one behind the last; None if there is none, or if it is not known.
pub type Span = Option<(u64, u64)>;

/// The smallest span that has both in it.
pub fn joined((first, end): (u64, u64), (other, other_end): (u64, u64)) -> (u64, u64) {
    (first.min(other), end.max(other_end))
}

/// The same of spans of which one may not be there: then the other.
pub fn widened(known: Span, other: Span) -> Span {
    [known, other].into_iter().flatten().reduce(joined)
}

/// Pattern of accesses, given that of all in their order and those of the reads alone and the
/// writes alone.
///
/// Seen together, accesses that take turns with others lie anywhere, and writes to what was just
/// read lie at the same place.
pub fn with_directions(pattern: AccessPattern, counts: &[ClassCounts; 2]) -> AccessPattern {
    let is_open = matches!(
        pattern,
        AccessPattern::Mixed | AccessPattern::Random | AccessPattern::Near | AccessPattern::Same
    );
    let [reads, writes] = counts.map(|counts| counts.label_of_direction());
    let Some((reads, writes)) = reads.zip(writes).filter(|_| is_open) else { return pattern };
    let is_anywhere =
        |one: AccessPattern| matches!(one, AccessPattern::Random | AccessPattern::Near);
    match () {
        () if reads == writes => reads,
        () if is_anywhere(reads) && is_anywhere(writes) => pattern,
        () => AccessPattern::Mixed,
    }
}

/// One row of a report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClassShare {
    /// The class.
    pub class: AccessClass,
    /// Number of accesses.
    pub accesses: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Share of all accesses.
    pub share: f64,
}

impl ClassCounts {
    /// Shares of the classes that occur, the largest first.
    pub fn shares(&self) -> Vec<ClassShare> {
        let total = self.total().max(1) as f64;
        let row = |class: &AccessClass| {
            let (accesses, bytes) = (self.accesses(*class), self.bytes(*class));
            ClassShare { class: *class, accesses, bytes, share: accesses as f64 / total }
        };
        let mut rows: Vec<_> =
            AccessClass::ALL.iter().map(row).filter(|row| row.accesses > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.accesses));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(accesses: impl IntoIterator<Item = (u64, u64)>) -> ClassCounts {
        let (mut classifier, mut counts) = (Classifier::default(), ClassCounts::default());
        for (offset, bytes) in accesses {
            classifier.add(Some(offset), bytes, false, |one| counts.add(&one));
        }
        classifier.finish(|one| counts.add(&one));
        counts
    }

    #[test]
    fn each_pattern_has_its_own_name() {
        let label = |accesses: Vec<(u64, u64)>| classes(accesses).label();
        let each = |of: &dyn Fn(u64) -> u64| (0..32).map(|at| (of(at), 4096)).collect::<Vec<_>>();
        assert_eq!(label(each(&|at| at * 4096)), AccessPattern::Sequential);
        assert_eq!(label(each(&|at| (1 << 20) - at * 4096)), AccessPattern::Backward);
        assert_eq!(label(each(&|_| 8192)), AccessPattern::Same);
        assert_eq!(label(each(&|at| at * 65_536)), AccessPattern::Strided);
        assert_eq!(label(each(&|at| (1 << 30) - at * 65_536)), AccessPattern::Strided);
        // The squares of a prime's residues follow each other in no order.
        let anywhere = |at: u64| (at * at * 7919 % 1009) << 20;
        assert_eq!(label(each(&anywhere)), AccessPattern::Random);
        assert_eq!(
            label(each(&|at| (at % 4) * (1 << 26) + at / 4 * 4096)),
            AccessPattern::Interleaved
        );
        let both = |at: u64| if at < 16 { at * 4096 } else { anywhere(at) };
        assert_eq!(label(each(&both)), AccessPattern::Mixed);
    }

    #[test]
    fn nothing_is_lost_or_counted_twice() {
        for count in 0..12 {
            assert_eq!(classes((0..count).map(|at| (at * 65_536, 4096))).total(), count);
        }
    }

    #[test]
    fn a_few_accesses_have_an_order_wherever_they_begin() {
        let label = |accesses: &[u64]| {
            classes(accesses.iter().map(|at| ((1 << 20) + at * 4096, 4096))).label()
        };
        for count in 2..6 {
            let forward: Vec<u64> = (0..count).collect();
            let backward: Vec<u64> = (0..count).rev().collect();
            assert_eq!(label(&forward), AccessPattern::Sequential, "{count}");
            assert_eq!(label(&backward), AccessPattern::Backward, "{count}");
        }
    }

    #[test]
    fn three_equal_distances_are_no_stride_and_four_are() {
        let strided = |count: u64| {
            classes((1..=count).map(|at| (at << 20, 4096))).accesses(AccessClass::Strided)
        };
        assert_eq!((strided(4), strided(5), strided(9)), (0, 4, 8));
    }
}
