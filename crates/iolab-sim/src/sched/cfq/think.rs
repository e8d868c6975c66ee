//! Think time: how long after a completion the next request comes, as a decaying average.
//!
//! Source: Linux 4.1 block/cfq-iosched.c: weight 7/8, fixed point 256 = 1, valid above 80.

use super::clock::Tick;

/// A decaying average of pauses, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    /// Tick of the last completion; at first that of the creation.
    pub last_end: Tick,
    samples: u64,
    total: u64,
}

impl ThinkTime {
    /// Number of samples (256 = 1) above which the average counts: it is passed by the third.
    const VALID_ABOVE: u64 = 80;

    /// Without a sample, created at `now`.
    pub fn new(now: Tick) -> Self {
        Self { last_end: now, samples: 0, total: 0 }
    }

    /// A request arrives; the pause counts at most twice the waiting time.
    pub fn sample(&mut self, now: Tick, waiting: Tick) {
        let pause = now.saturating_sub(self.last_end).clamp(0, 2 * waiting) as u64;
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * pause) / 8;
    }

    /// Tell whether there are enough samples to go by.
    pub fn is_known(&self) -> bool {
        self.samples > Self::VALID_ABOVE
    }

    /// Tell whether the mean, `(total + 128) / samples` in whole ticks, is known to be longer than
    /// `limit` (which is not negative).
    pub fn is_longer_than(&self, limit: Tick) -> bool {
        self.is_known() && self.total + 128 >= (limit as u64 + 1).saturating_mul(self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_of_samples() {
        // formula_checks: decaying_sample_weight; usable from the third sample on.
        let mut think = ThinkTime::new(0);
        let weights = [1, 2, 3, 4].map(|now| {
            assert_eq!(think.is_known(), now > 3, "before sample {now}");
            think.sample(now, 8);
            think.samples
        });
        assert_eq!(weights, [32, 60, 84, 105]);
    }

    #[test]
    fn a_pause_counts_at_most_twice_the_waiting_time() {
        let mut think = ThinkTime::new(-1_000_000);
        think.sample(0, 8);
        assert_eq!((think.total, think.samples), (256 * 16 / 8, 32));
        for limit in [0, 8, 19, 20] {
            assert!(!think.is_longer_than(limit), "one sample is not enough");
        }
        think.sample(0, 8);
        think.sample(0, 8);
        // 512, 960, 1352; (1352 + 128) / 84 = 17: the rounding term weighs while samples are few.
        assert!(think.is_longer_than(16) && !think.is_longer_than(17));
    }
}
