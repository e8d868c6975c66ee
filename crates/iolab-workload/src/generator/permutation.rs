//! `IOzone`'s random order: each record once, the same order in every run and in every child.
//!
//! A 64-bit Mersenne Twister (Nishimura and Matsumoto 2000, `init_by_array64` with the reference
//! key) drives a Fisher-Yates shuffle from the top. Since `IOzone` 3.488; found by tracing the real
//! program.

use super::Records;

/// A fixed random permutation of all records; 8 bytes of memory per record.
#[derive(Clone, Debug)]
pub struct Permutation {
    order: Vec<u64>,
    next: usize,
}

impl Permutation {
    pub(super) fn new(records: u64) -> Self {
        let mut random = Mt19937_64::by_array(&[0x12345, 0x23456, 0x34567, 0x45678]);
        let mut order: Vec<u64> = (0..records).collect();
        for i in (0..order.len()).rev() {
            order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
        }
        Self { order, next: 0 }
    }
}

impl Records for Permutation {
    #[inline]
    fn next(&mut self) -> u64 {
        let record = self.order[self.next];
        self.next = if self.next + 1 == self.order.len() { 0 } else { self.next + 1 };
        record
    }
}

const WORDS: usize = 312;
const MIDDLE: usize = 156;
const TWIST: u64 = 0xb502_6f5a_a966_19e9;

/// The 64-bit Mersenne Twister MT19937-64.
#[derive(Clone)]
pub struct Mt19937_64 {
    state: [u64; WORDS],
    index: usize,
}

impl core::fmt::Debug for Mt19937_64 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mt19937_64").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Mt19937_64 {
    fn by_seed(seed: u64) -> Self {
        let mut state = [seed; WORDS];
        for i in 1..WORDS {
            let previous = state[i - 1] ^ (state[i - 1] >> 62);
            state[i] = 6_364_136_223_846_793_005_u64.wrapping_mul(previous).wrapping_add(i as u64);
        }
        Self { state, index: WORDS }
    }

    /// Seeded by a key of any length, as the reference program's `init_by_array64`.
    pub fn by_array(key: &[u64]) -> Self {
        let mut mt = Self::by_seed(19_650_218);
        let state = &mut mt.state;
        let mix = |word: u64| word ^ (word >> 62);
        let (mut i, mut j) = (1, 0);
        for _ in 0..WORDS.max(key.len()) {
            state[i] = (state[i] ^ mix(state[i - 1]).wrapping_mul(3_935_559_000_370_003_845))
                .wrapping_add(key[j])
                .wrapping_add(j as u64);
            i += 1;
            j = (j + 1) % key.len();
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        for _ in 0..WORDS - 1 {
            state[i] = (state[i] ^ mix(state[i - 1]).wrapping_mul(2_862_933_555_777_941_757))
                .wrapping_sub(i as u64);
            i += 1;
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        state[0] = 1 << 63;
        mt
    }

    fn refill(&mut self) {
        for i in 0..WORDS {
            let x = (self.state[i] & !0x7fff_ffff) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let twist = if x & 1 == 0 { 0 } else { TWIST };
            self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ (x >> 1) ^ twist;
        }
        self.index = 0;
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        if self.index == WORDS {
            self.refill();
        }
        let mut x = self.state[self.index];
        self.index += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71d6_7fff_eda6_0000;
        x ^= (x << 37) & 0xfff7_eee0_0000_0000;
        x ^ (x >> 43)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_outputs_of_the_reference_program() {
        // mt19937-64.out.txt, published with the generator, for exactly this key.
        let mut mt = Mt19937_64::by_array(&[0x12345, 0x23456, 0x34567, 0x45678]);
        assert_eq!(mt.next_u64(), 7_266_447_313_870_364_031);
        assert_eq!(mt.next_u64(), 4_946_485_549_665_804_864);
        assert_eq!(mt.next_u64(), 16_945_909_448_695_747_420);
    }

    #[test]
    fn orders_seen_in_traces_of_the_real_program() {
        let order = |n| {
            let mut permutation = Permutation::new(n);
            (0..n).map(|_| permutation.next()).collect::<Vec<_>>()
        };
        assert_eq!(order(16), [1, 5, 7, 13, 10, 6, 0, 8, 14, 3, 11, 2, 4, 12, 9, 15]);
        assert_eq!(order(8), [3, 1, 5, 2, 0, 4, 6, 7]);
    }
}
