//! Buddy bitmap of a group of blocks: free runs by powers of two.
//!
//! Order 0 is the plain bitmap. A free chunk of 2^k blocks that lies on a multiple of its size is
//! noted once, at the highest order it fits in, so that the first chunk of an order and the run
//! around a block are found without a walk over the blocks. The state is a function of the plain
//! bitmap alone.
//!
//! Source of the searches: Linux fs/ext4/mballoc.c (`mb_find_extent`, `mb_mark_used`,
//! `mb_free_blocks`). The bits are set where something is free, unlike there.

/// A free run found in a group; blocks behind it can be free as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeRun {
    /// First block in the group.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

/// A set of free bits with a search from any place on.
#[derive(Clone, Debug)]
struct Bits {
    words: Vec<u64>,
    len: u32,
}

impl Bits {
    fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len }
    }

    fn get(&self, at: u32) -> bool {
        at < self.len && self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    fn put(&mut self, at: u32, is_free: bool) {
        let bit = 1 << (at % 64);
        let word = &mut self.words[at as usize / 64];
        *word = if is_free { *word | bit } else { *word & !bit };
    }

    fn put_range(&mut self, first: u32, count: u32, is_free: bool) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let span = (64 - at % 64).min(end - at);
            let mask = if span == 64 { u64::MAX } else { ((1 << span) - 1) << (at % 64) };
            let word = &mut self.words[at as usize / 64];
            *word = if is_free { *word | mask } else { *word & !mask };
            at += span;
        }
    }

    /// First bit of a kind at or after `at`; the length if there is none.
    fn next(&self, at: u32, is_free: bool) -> u32 {
        let mut word = at as usize / 64;
        let flip = if is_free { 0 } else { u64::MAX };
        if at >= self.len {
            return self.len;
        }
        let mut bits = (self.words[word] ^ flip) & (u64::MAX << (at % 64));
        while bits == 0 {
            word += 1;
            if word == self.words.len() {
                return self.len;
            }
            bits = self.words[word] ^ flip;
        }
        (word as u32 * 64 + bits.trailing_zeros()).min(self.len)
    }
}

/// Free blocks of one group.
#[derive(Clone, Debug)]
pub struct Buddy {
    orders: Vec<Bits>,
    counts: Vec<u32>,
    free: u32,
    fragments: u32,
    first_free: u32,
}

impl Buddy {
    /// A group of `blocks` without a free one, with chunks of up to `2^(orders - 1)` blocks.
    pub fn full(blocks: u32, orders: u32) -> Self {
        let bits = (0..orders).map(|order| Bits::new(blocks >> order)).collect();
        Self {
            orders: bits,
            counts: vec![0; orders as usize],
            free: 0,
            fragments: 0,
            first_free: blocks,
        }
    }

    /// Number of blocks, free and used.
    pub fn blocks(&self) -> u32 {
        self.orders[0].len
    }

    /// Number of free blocks.
    pub const fn free(&self) -> u32 {
        self.free
    }

    /// Number of free runs.
    pub const fn fragments(&self) -> u32 {
        self.fragments
    }

    /// A block before which none is free.
    pub const fn first_free(&self) -> u32 {
        self.first_free
    }

    /// Highest order with a free chunk.
    pub fn largest_order(&self) -> Option<u32> {
        self.counts.iter().rposition(|&count| count > 0).map(|order| order as u32)
    }

    /// Tell whether a block is free.
    pub fn is_free(&self, block: u32) -> bool {
        self.bitmap().get(block)
    }

    /// First free block at or after another one; the group's length if there is none.
    pub fn next_free(&self, block: u32) -> u32 {
        self.bitmap().next(block, true)
    }

    /// First used block at or after another one; the group's length if there is none.
    pub fn next_used(&self, block: u32) -> u32 {
        self.bitmap().next(block, false)
    }

    /// First chunk of the lowest order from `order` on that has one.
    pub fn first_chunk(&self, order: u32) -> Option<FreeRun> {
        let order = (order..self.orders.len() as u32).find(|&k| self.counts[k as usize] > 0)?;
        let chunk = self.next_chunk(order);
        Some(FreeRun { first: chunk << order, count: 1 << order })
    }

    /// The free run from a block on, chunk by chunk until it holds `needed` blocks: it can be
    /// longer than that, and the blocks behind it can be free as well.
    pub fn run_at(&self, block: u32, needed: u32) -> FreeRun {
        if !self.is_free(block) {
            return FreeRun { first: block, count: 0 };
        }
        let order = self.order_of(block);
        let mut end = ((block >> order) + 1) << order;
        while end - block < needed && self.is_free(end) {
            end += 1 << self.order_of(end);
        }
        FreeRun { first: block, count: end - block }
    }

    /// Takes a free run.
    ///
    /// # Panics
    /// If one of the blocks is used: somebody would own it twice.
    pub fn take(&mut self, first: u32, count: u32) {
        assert!(count > 0 && self.next_used(first) >= first + count, "a block is taken twice");
        let (left, right) = (self.is_free_before(first), self.is_free(first + count));
        match (left, right) {
            (true, true) => self.fragments += 1,
            (false, false) => self.fragments -= 1,
            _ => {}
        }
        self.free -= count;
        if self.first_free == first {
            self.first_free += count;
        }
        let (mut at, end) = (first, first + count);
        while at < end {
            let order = self.order_of(at);
            let (start, stop) = ((at >> order) << order, ((at >> order) + 1) << order);
            self.set_chunk(order, start >> order, false);
            self.note_free(start, at - start);
            if stop > end {
                self.note_free(end, stop - end);
            }
            at = stop;
        }
        self.orders[0].put_range(first, count, false);
    }

    /// Gives a used run back.
    ///
    /// # Panics
    /// If one of the blocks is free.
    pub fn give(&mut self, first: u32, count: u32) {
        assert!(count > 0 && self.next_free(first) >= first + count, "a block is freed twice");
        let (left, right) = (self.is_free_before(first), self.is_free(first + count));
        match (left, right) {
            (true, true) => self.fragments -= 1,
            (false, false) => self.fragments += 1,
            _ => {}
        }
        self.free += count;
        self.first_free = self.first_free.min(first);
        self.orders[0].put_range(first, count, true);
        let (mut at, end) = (first, first + count);
        while at < end {
            let order = self.fitting_order(at, end - at);
            self.add_chunk(order, at);
            at += 1 << order;
        }
    }

    fn bitmap(&self) -> &Bits {
        &self.orders[0]
    }

    fn is_free_before(&self, block: u32) -> bool {
        block > 0 && self.is_free(block - 1)
    }

    /// First chunk that is noted at exactly this order.
    fn next_chunk(&self, order: u32) -> u32 {
        if order > 0 {
            return self.orders[order as usize].next(0, true);
        }
        let mut block = self.next_free(0);
        while block < self.blocks() && self.order_of(block) > 0 {
            block = self.next_free(block + (1 << self.order_of(block)));
        }
        block
    }

    /// Order of the chunk that holds a free block.
    fn order_of(&self, block: u32) -> u32 {
        let orders = 1..self.orders.len() as u32;
        orders.into_iter().find(|&k| self.orders[k as usize].get(block >> k)).unwrap_or(0)
    }

    /// Highest order of a chunk that begins at a block and ends within `count` ones.
    fn fitting_order(&self, block: u32, count: u32) -> u32 {
        let aligned = if block == 0 { u32::BITS } else { block.trailing_zeros() };
        aligned.min(count.ilog2()).min(self.orders.len() as u32 - 1)
    }

    /// Notes a free run inside one chunk that was dropped.
    fn note_free(&mut self, first: u32, count: u32) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let order = self.fitting_order(at, end - at);
            self.set_chunk(order, at >> order, true);
            at += 1 << order;
        }
    }

    /// Notes a free chunk, and joins it with its buddies.
    fn add_chunk(&mut self, mut order: u32, first: u32) {
        let mut chunk = first >> order;
        while order + 1 < self.orders.len() as u32 {
            let buddy = chunk ^ 1;
            if !self.is_chunk(order, buddy) {
                break;
            }
            self.set_chunk(order, buddy, false);
            (order, chunk) = (order + 1, chunk >> 1);
        }
        self.set_chunk(order, chunk, true);
    }

    /// Tell whether a chunk is noted at exactly this order.
    fn is_chunk(&self, order: u32, chunk: u32) -> bool {
        if order > 0 {
            return self.orders[order as usize].get(chunk);
        }
        self.is_free(chunk) && self.order_of(chunk) == 0
    }

    fn set_chunk(&mut self, order: u32, chunk: u32, is_free: bool) {
        if order > 0 {
            self.orders[order as usize].put(chunk, is_free);
        }
        if is_free {
            self.counts[order as usize] += 1;
        } else {
            self.counts[order as usize] -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
