//! The depth of write-back throttling: one number of requests, halved or doubled by steps.
//!
//! Source: Linux 6.18 block/blk-rq-qos.c (behaviour).

/// Requests that may be under way at step 0 (Linux 6.18 block/blk-wbt.c: `RWB_DEF_DEPTH`).
const DEPTH_AT_REST: u32 = 16;

/// A depth that is halved when reads are slow and doubled when nobody reads.
#[derive(Clone, Copy, Debug)]
pub struct ScaledDepth {
    /// Requests that the queue takes in all.
    queue: u32,
    /// Above 0: that many halvings. Below 0: that many doublings.
    step: i32,
    /// The last doubling reached the limit.
    is_at_top: bool,
    most: u32,
}

impl ScaledDepth {
    /// At rest, in a queue of this depth.
    pub fn new(queue: u32) -> Self {
        let mut depth = Self { queue, step: 0, is_at_top: false, most: 0 };
        depth.settle();
        depth
    }

    /// Requests that those in a hurry may have under way.
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// Halvings (above 0) or doublings (below 0).
    pub const fn step(&self) -> i32 {
        self.step
    }

    /// Tell whether quiet windows bring it back to rest. A queue of two requests is left at one of
    /// them after a doubling: neither direction is possible from there.
    pub const fn can_return(&self) -> bool {
        self.step > 0 || (self.step < 0 && self.most > 1)
    }

    /// Doubles; answers whether that was possible.
    pub fn grow(&mut self) -> bool {
        if self.is_at_top {
            return false;
        }
        self.step -= 1;
        self.is_at_top = self.settle();
        true
    }

    /// Halves (a depth beyond rest falls back to rest at once); answers whether that was possible.
    pub fn shrink(&mut self) -> bool {
        self.shrink_to(if self.step < 0 { 0 } else { self.step + 1 })
    }

    /// One step down, also from beyond rest.
    pub fn ease(&mut self) -> bool {
        self.shrink_to(self.step + 1)
    }

    fn shrink_to(&mut self, step: i32) -> bool {
        if self.most == 1 {
            return false;
        }
        self.step = step;
        self.is_at_top = false;
        self.settle();
        true
    }

    /// Computes the depth of the step; answers whether no doubling can raise it further.
    fn settle(&mut self) -> bool {
        if self.queue == 1 {
            // One request waits while the device works, unless reads suffer.
            self.most = if self.step > 0 { 1 } else { 2 };
            return self.step <= 0;
        }
        let rest = DEPTH_AT_REST.min(self.queue);
        let beyond_first = u64::from(rest - 1);
        if self.step >= 0 {
            self.most = 1 + (beyond_first >> self.step.min(31)) as u32;
            return false;
        }
        let doubled = 1 + (beyond_first << self.step.unsigned_abs().min(31));
        // Three quarters of the queue at most (Linux 6.18 block/blk-rq-qos.c).
        let top = u64::from(self.queue) * 3 / 4;
        self.most = doubled.min(top) as u32;
        doubled > top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_down_to_one_and_no_further() {
        let mut depth = ScaledDepth::new(256);
        let mut seen = vec![depth.most()];
        while depth.shrink() {
            seen.push(depth.most());
        }
        assert_eq!(seen, [16, 8, 4, 2, 1]);
        assert_eq!(depth.step(), 4);
    }

    #[test]
    fn doubles_up_to_three_quarters_of_the_queue() {
        let mut depth = ScaledDepth::new(128);
        let mut seen = vec![];
        while depth.grow() {
            seen.push(depth.most());
        }
        assert_eq!(seen, [31, 61, 96]);
        assert!(depth.shrink(), "slow reads end a boost at once");
        assert_eq!((depth.step(), depth.most()), (0, 16));
    }

    #[test]
    fn eases_a_boost_step_by_step() {
        let mut depth = ScaledDepth::new(128);
        assert!(depth.grow() && depth.grow() && depth.ease());
        assert_eq!((depth.step(), depth.most()), (-1, 31));
    }

    #[test]
    fn shallow_queues() {
        let mut one = ScaledDepth::new(1);
        assert_eq!(one.most(), 2, "one at the device, one ready");
        assert!(one.shrink());
        assert_eq!(one.most(), 1);
        let mut two = ScaledDepth::new(2);
        assert!(two.grow());
        assert_eq!((two.most(), two.step()), (1, -1));
        assert!(!two.can_return() && !two.ease() && !two.grow());
        assert_eq!(ScaledDepth::new(4).most(), 4);
    }
}
