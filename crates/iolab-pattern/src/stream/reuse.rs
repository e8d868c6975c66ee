//! Reuse distance: how many other blocks were touched since a block was touched last.
//!
//! Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9 (1970): an access hits in a least-recently-used cache exactly if its distance is less
//! than the size of the cache. Counted with a Fenwick tree over the times of last touches
//! (Bennett, Kruskal, "LRU stack processing", IBM J. Res. Dev. 19, 1975).

use std::collections::HashMap;

/// Bytes of a block: a page of the page cache.
pub const BLOCK_BYTES: u64 = 4096;
/// Distances of one file.
#[derive(Clone, Debug, Default)]
pub struct ReuseDistances {
    /// Time of the last touch of a block, from 1 on.
    last: HashMap<u64, u32>,
    /// Fenwick tree over times: one where a block was touched last.
    tree: Vec<u32>,
    /// Distances in blocks, by powers of two: bucket `n` holds those below `2^n`.
    buckets: [u64; 32],
    touches: u64,
    /// Different blocks of contents that are gone.
    gone: u64,
    /// True if accesses behind the first ones are not counted.
    pub is_cut: bool,
    /// Block that was touched last: small accesses in a row touch it again and are no reuse.
    current: Option<u64>,
}

impl ReuseDistances {
    /// Adds an access, as long as `left` touches may be followed.
    pub fn add(&mut self, offset: u64, bytes: u64, left: &mut usize) {
        if bytes == 0 {
            return;
        }
        let end = offset.saturating_add(bytes - 1);
        let (first, last) = (offset / BLOCK_BYTES, end / BLOCK_BYTES);
        for block in first..=last {
            if *left == 0 {
                self.is_cut = true;
                return;
            }
            *left -= 1;
            self.touch(block);
        }
    }

    fn touch(&mut self, block: u64) {
        if self.current.replace(block) == Some(block) {
            return;
        }
        self.touches += 1;
        self.push();
        let now = self.tree.len() as u32;
        if let Some(before) = self.last.insert(block, now) {
            // Blocks whose last touch is later than this block's.
            let distance = self.sum(now) - self.sum(before) - 1;
            self.change(before);
            self.buckets[(32 - distance.leading_zeros()) as usize] += 1;
        }
    }

    /// Appends a time at which a block was touched.
    fn push(&mut self) {
        let at = self.tree.len() + 1;
        let (mut sum, mut child) = (1, 1);
        while child < at & at.wrapping_neg() {
            sum += self.tree[at - child - 1];
            child <<= 1;
        }
        self.tree.push(sum);
    }

    fn sum(&self, upto: u32) -> u32 {
        let (mut at, mut sum) = (upto as usize, 0);
        while at > 0 {
            sum += self.tree[at - 1];
            at &= at - 1;
        }
        sum
    }

    fn change(&mut self, at: u32) {
        let mut at = at as usize;
        while at <= self.tree.len() {
            self.tree[at - 1] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Begins anew with other content at the same places.
    pub fn forget(&mut self) {
        self.gone += self.last.len() as u64;
        self.last.clear();
        self.tree.clear();
        self.current = None;
    }

    /// Number of blocks touched, each time counted; several times in a row are one.
    pub const fn touches(&self) -> u64 {
        self.touches
    }

    /// Number of different blocks; those of content that was thrown away count apart.
    pub fn blocks(&self) -> u64 {
        self.gone + self.last.len() as u64
    }

    /// Touches of blocks that had been touched before.
    pub fn repeated(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Share of them among all touches, if there are any.
    pub fn repeated_share(&self) -> Option<f64> {
        (self.touches > 0).then(|| self.repeated() as f64 / self.touches as f64)
    }

    /// Cache in bytes, a power of two, that holds half of the repeated touches; None if there are
    /// none.
    pub fn median_bytes(&self) -> Option<u64> {
        let half = self.repeated().div_ceil(2);
        if half == 0 {
            return None;
        }
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|count| {
            sum += count;
            sum >= half
        })?;
        // A distance below 2^n needs 2^n blocks, the block itself among them.
        Some(BLOCK_BYTES << bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition itself: a list of blocks, the last touched one first.
    fn naive(blocks: &[u64]) -> Vec<Option<usize>> {
        let mut stack: Vec<u64> = Vec::new();
        let step = |block: &u64| {
            let at = stack.iter().position(|one| one == block);
            if let Some(at) = at {
                stack.remove(at);
            }
            stack.insert(0, *block);
            at
        };
        blocks.iter().map(step).collect()
    }

    #[test]
    fn distances_are_those_of_a_list_of_blocks() {
        let mut state = 7_u64;
        let mut blocks = Vec::new();
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            blocks.push((state >> 40) % 97);
            blocks.dedup();
        }
        let (mut reuse, mut left) = (ReuseDistances::default(), usize::MAX);
        let mut expected = [0; 32];
        for distance in naive(&blocks).into_iter().flatten() {
            expected[(32 - (distance as u32).leading_zeros()) as usize] += 1;
        }
        for block in &blocks {
            reuse.add(block * BLOCK_BYTES, 1, &mut left);
        }
        assert_eq!(reuse.buckets, expected);
        assert_eq!((reuse.blocks(), reuse.touches()), (97, blocks.len() as u64));
    }

    #[test]
    fn new_content_at_the_same_places_is_no_reuse() {
        let (mut reuse, mut left) = (ReuseDistances::default(), usize::MAX);
        for pass in 0..3 {
            reuse.add(0, 1 << 20, &mut left);
            assert_eq!((reuse.repeated(), reuse.blocks()), (0, 256 * (pass + 1)));
            reuse.forget();
        }
        reuse.add(0, 1 << 20, &mut left);
        reuse.add(0, 1 << 20, &mut left);
        assert_eq!(reuse.repeated(), 256);
        assert_eq!(reuse.median_bytes(), Some(1 << 20));
    }

    #[test]
    fn a_file_read_twice_needs_a_cache_of_its_size() {
        let (mut reuse, mut left) = (ReuseDistances::default(), usize::MAX);
        reuse.add(0, 1 << 20, &mut left);
        assert_eq!(reuse.median_bytes(), None);
        reuse.add(0, 1 << 20, &mut left);
        assert_eq!(reuse.median_bytes(), Some(1 << 20));
    }
}
