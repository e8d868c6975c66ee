//! Sizes and waits of a file in their order: a phase has those of its own accesses.

use super::class::Classified;
use super::sizes::SizeCounts;
use crate::access::{StableWait, StableWaits};

/// Accesses in a row of one direction and size.
#[derive(Clone, Copy, Debug)]
struct SizeRun {
    bytes: u64,
    is_write: bool,
    accesses: u64,
}

/// Sizes and waits in their order.
#[derive(Clone, Debug, Default)]
pub struct OrderLog {
    sizes: Vec<SizeRun>,
    /// Waits, each with the number of accesses before it.
    waits: Vec<(u64, StableWait)>,
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

    const fn has_room(&mut self, left: &mut usize) -> bool {
        self.is_full |= *left == 0;
        if !self.is_full {
            *left -= 1;
        }
        !self.is_full
    }

    /// Sizes of the reads and writes from one access on, and waits behind them; None if there were
    /// too many to keep.
    pub fn part(&self, first: u64, accesses: u64) -> Option<([SizeCounts; 2], StableWaits)> {
        if self.is_full {
            return None;
        }
        let (mut sizes, mut at, end) = (<[SizeCounts; 2]>::default(), 0, first + accesses);
        for run in &self.sizes {
            let own = (at + run.accesses).min(end).saturating_sub(at.max(first));
            if own > 0 {
                *sizes[usize::from(run.is_write)].entry(run.bytes).or_default() += own;
            }
            at += run.accesses;
        }
        let mut waits = StableWaits::default();
        for (_, wait) in self.waits.iter().filter(|(before, _)| (first + 1..=end).contains(before))
        {
            waits.add(*wait);
        }
        Some((sizes, waits))
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
            log.arrive();
            let one = Classified { class, is_write: true, bytes, depth: 0, delta: 0, span: None };
            log.add(&one, &mut left);
            log.wait(StableWait::Fsync, &mut left);
        }
        let (sizes, waits) = log.part(2, 5).unwrap();
        assert_eq!(sizes[1], SizeCounts::from([(100, 2), (200, 3)]));
        assert_eq!((sizes[0].len(), waits.fsync), (0, 5));
        log.wait(StableWait::Fsync, &mut 0);
        assert!(log.part(0, 10).is_none());
    }
}
