//! Sizes, waits and pauses of a file in their order: a phase has those of its own accesses.

use super::class::Classified;
use super::pauses::PauseLengths;
use super::sizes::SizeCounts;
use crate::access::{StableWait, StableWaits};

/// Accesses in a row of one direction and size.
#[derive(Clone, Copy, Debug)]
struct SizeRun {
    bytes: u64,
    is_write: bool,
    accesses: u64,
}

/// Sizes, waits and pauses of a part of a file's accesses.
#[derive(Clone, Debug, Default)]
pub struct OrderPart {
    /// Sizes of the reads and of the writes.
    pub sizes: [SizeCounts; 2],
    /// Waits behind them.
    pub waits: StableWaits,
    /// Pauses between them.
    pub pauses: PauseLengths,
    /// Pause before the first of them.
    pub before_ns: u64,
}

/// Sizes, waits and pauses in their order.
#[derive(Clone, Debug, Default)]
pub struct OrderLog {
    sizes: Vec<SizeRun>,
    /// Waits, each with the number of accesses before it.
    waits: Vec<(u64, StableWait)>,
    /// Pauses, each with the number of accesses before it.
    pauses: Vec<(u64, u64)>,
    arrived: u64,
    is_full: bool,
}

impl OrderLog {
    /// Counts an access whose class is not yet known.
    pub const fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// Adds an access, as long as `left` entries are.
    pub fn add(&mut self, one: &Classified, left: &mut usize) {
        let is_alike = |run: &&mut SizeRun| run.bytes == one.bytes && run.is_write == one.is_write;
        if let Some(run) = self.sizes.last_mut().filter(is_alike) {
            run.accesses += 1;
        } else if self.has_room(left) {
            let Classified { bytes, is_write, .. } = *one;
            self.sizes.push(SizeRun { bytes, is_write, accesses: 1 });
        }
    }

    /// Adds a wait behind the accesses so far.
    pub fn wait(&mut self, wait: StableWait, left: &mut usize) {
        if self.has_room(left) {
            self.waits.push((self.arrived, wait));
        }
    }

    /// Adds a pause before the access that comes next.
    pub fn pause(&mut self, pause_ns: u64, left: &mut usize) {
        if self.has_room(left) {
            self.pauses.push((self.arrived, pause_ns));
        }
    }

    const fn has_room(&mut self, left: &mut usize) -> bool {
        self.is_full |= *left == 0;
        if !self.is_full {
            *left -= 1;
        }
        !self.is_full
    }

    /// Part of so many accesses from one on; None if there was too much to keep.
    pub fn part(&self, first: u64, accesses: u64) -> Option<OrderPart> {
        if self.is_full {
            return None;
        }
        let (mut part, mut at, end) = (OrderPart::default(), 0, first + accesses);
        for run in &self.sizes {
            let own = (at + run.accesses).min(end).saturating_sub(at.max(first));
            if own > 0 {
                *part.sizes[usize::from(run.is_write)].entry(run.bytes).or_default() += own;
            }
            at += run.accesses;
        }
        for (_, wait) in self.waits.iter().filter(|(before, _)| (first + 1..=end).contains(before))
        {
            part.waits.add(*wait);
        }
        for (before, pause_ns) in &self.pauses {
            if *before == first {
                part.before_ns = part.before_ns.saturating_add(*pause_ns);
            } else if (first..end).contains(before) {
                part.pauses.add(*pause_ns);
            }
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::class::AccessClass;

    #[test]
    fn a_part_has_the_sizes_and_waits_of_its_accesses_alone() {
        let (mut log, mut left) = (OrderLog::default(), 100);
        for at in 0..10_u64 {
            let bytes = if at < 4 { 100 } else { 200 };
            let class = AccessClass::Sequential;
            log.pause(1 << (20 + at), &mut left);
            log.arrive();
            let one = Classified { class, is_write: true, bytes, depth: 0, delta: 0, span: None };
            log.add(&one, &mut left);
            log.wait(StableWait::Fsync, &mut left);
        }
        let OrderPart { sizes, waits, pauses, before_ns } = log.part(2, 5).unwrap();
        assert_eq!(sizes[1], SizeCounts::from([(100, 2), (200, 3)]));
        assert_eq!((sizes[0].len(), waits.fsync, before_ns >> 20), (0, 5, 4));
        assert_eq!((pauses.usual().count, pauses.usual().total_ns >> 20), (4, 120));
        log.wait(StableWait::Fsync, &mut 0);
        assert!(log.part(0, 10).is_none());
    }
}
