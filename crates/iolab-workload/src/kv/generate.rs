//! Numbers of keys and lengths as YCSB's core workload draws them.
//!
//! Source: YCSB 0.17.0, `core/src/main/java/site/ycsb/generator`, by behaviour; the random numbers
//! are ours, the distributions its own, with their departures from ideal ones.

use iolab_model::seed::Stream;

/// FNV's offset basis and prime, 64 bits (Fowler, Noll, Vo).
const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// Skew of every zipfian.
pub const THETA: f64 = 0.99;
/// Items from which a scattered zipfian draws, whatever the number of records.
pub const SCATTERED_ITEMS: u64 = 10_000_000_000;
/// ζ of that many items and [`THETA`], as the reference has it as a constant.
pub const SCATTERED_ZETA: f64 = 26.469_028_201_783_02;

/// YCSB's hash of a number: over its eight bytes, the lowest first, without a sign.
#[inline]
pub fn hash(number: u64) -> u64 {
    let mut hash = OFFSET;
    let mut rest = number;
    for _ in 0..8 {
        hash = (hash ^ (rest & 0xff)).wrapping_mul(PRIME);
        rest >>= 8;
    }
    (hash as i64).unsigned_abs()
}

/// Zipfian ranks: 0 is the most likely.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
    alpha: f64,
    half: f64,
}

impl Zipfian {
    /// Ranks below `items` (above 0).
    pub fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(0, items, 0.0))
    }

    /// The same with a ζ that is known.
    pub fn with_zeta(items: u64, zeta_of_items: f64) -> Self {
        let zeta2 = zeta(0, 2, 0.0);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta2 / zeta_of_items);
        let (alpha, half) = (1.0 / (1.0 - THETA), 1.0 + 0.5_f64.powf(THETA));
        Self { items, zeta: zeta_of_items, eta, alpha, half }
    }

    /// Draws scattered over all keys: see [`scattered`].
    pub fn scattered() -> Self {
        Self::with_zeta(SCATTERED_ITEMS + 1, SCATTERED_ZETA)
    }

    /// Grows to `items`; η keeps the number of items that there were in the beginning.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta = zeta(self.items, items, self.zeta);
            self.items = items;
        }
    }

    /// The rank for a number in [0, 1).
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.half {
            return 1;
        }
        (self.items as f64 * self.power(self.eta * u - self.eta + 1.0)) as u64
    }

    /// `base` to the power of α, which is 100.
    #[inline]
    fn power(&self, base: f64) -> f64 {
        base.powf(self.alpha)
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, random: &mut Stream) -> u64 {
        self.rank(random.unit())
    }
}

/// ζ of `to` items, from that of the first `from`.
fn zeta(from: u64, to: u64, known: f64) -> f64 {
    (from..to).fold(known, |sum, index| sum + 1.0 / ((index + 1) as f64).powf(THETA))
}

/// Key of a scattered rank, of so many.
#[inline]
pub fn scattered(rank: u64, keys: u64) -> u64 {
    hash(rank) % keys
}

/// Keys that may be drawn before any is inserted: `inserts` are expected, and twice as many get a
/// place; one more is the reference's, whose range ends with its last number.
pub fn scattered_keys(insert_count: u64, operations: u64, insert_share: f64) -> u64 {
    insert_count + (operations as f64 * insert_share * 2.0) as u64 + 1
}

/// γ of an exponential distribution of which `percentile` percent lie in a share of the records.
pub fn gamma(percentile: f64, records: u64, fraction: f64) -> f64 {
    -(1.0 - percentile / 100.0).ln() / (records as f64 * fraction)
}

/// A number between 0 and ∞, exponential with rate `gamma`.
#[inline]
pub fn exponential(gamma: f64, random: &mut Stream) -> f64 {
    // 1 - u lies in (0, 1], whose logarithm exists.
    -(1.0 - random.unit()).ln() / gamma
}

/// Lengths with counts: `index -> count` of parts of a size each.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    part: u64,
    counts: Vec<u64>,
    area: u64,
}

impl Lengths {
    /// Lengths in parts of `part` bytes.
    pub fn new(part: u64, counts: &[u64]) -> Self {
        Self { part, counts: counts.to_vec(), area: counts.iter().sum() }
    }

    /// Draws a length: part `i` is `(i + 1)` times the size, the last one is taken for the one
    /// before it, as in the reference.
    pub fn draw(&self, random: &mut Stream) -> u64 {
        let mut left = i128::from(random.below(self.area.max(1)));
        for (index, count) in self.counts.iter().enumerate().take(self.counts.len() - 1) {
            left -= i128::from(*count);
            if left <= 0 {
                return (index as u64 + 1) * self.part;
            }
        }
        (self.counts.len() as u64 - 1) * self.part
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
