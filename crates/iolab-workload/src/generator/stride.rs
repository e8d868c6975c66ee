//! `IOzone`'s stride rule (test 5), found by tracing the real program.
//!
//! After record p comes p + stride, unless p + stride + 1 reaches the last record; then the next
//! pass starts at the number of passes so far (at 0 if the file has no more records than the
//! stride). So a file of few records is only read at record 0, and the tail of a longer one is
//! never read.

use super::Records;

/// Strided order.
#[derive(Clone, Debug)]
pub struct Stride {
    records: u64,
    step: u64,
    next: u64,
    pass: u64,
    done: u64,
}

impl Stride {
    pub(super) fn new(records: u64, stride: u64) -> Self {
        Self { records, step: stride, next: 0, pass: 0, done: 0 }
    }
}

impl Records for Stride {
    #[inline]
    fn next(&mut self) -> u64 {
        if self.done == self.records {
            (self.next, self.pass, self.done) = (0, 0, 0);
        }
        let record = self.next;
        self.done += 1;
        self.next = if record + 1 + self.step >= self.records.saturating_sub(1) {
            self.pass += 1;
            if self.records <= self.step { 0 } else { self.pass % self.records }
        } else {
            record + self.step
        };
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeks of the real program, one before each read but the first, and one after the last.
    const GOLDEN: &str = include_str!("../../../../tests/golden/iozone/trace_stride64.txt");

    #[test]
    fn sixty_four_records_at_stride_17_as_traced() {
        let line = GOLDEN.lines().find(|line| !line.starts_with('#')).unwrap();
        let sought: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let mut stride = Stride::new(64, 17);
        let ours: Vec<u64> = (0..64).map(|_| stride.next()).collect();
        assert_eq!(ours[0], 0);
        assert_eq!(ours[1..], sought[..63]);
        assert!(!ours.contains(&62) && !ours.contains(&63), "the tail is never read");
        assert_eq!(stride.next(), 0, "the second pass begins like the first");
    }

    #[test]
    fn few_records_degenerate_to_record_zero() {
        let mut stride = Stride::new(16, 17);
        assert!((0..16).all(|_| stride.next() == 0));
    }
}
