//! Read cache: segments that hold what was read and what was read ahead.
//!
//! Models segments of equal length with least-recently-used replacement, each one contiguous
//! extent. Leaves out data that writes leave behind (a write only invalidates).
//!
//! Source: Ruemmler and Wilkes (1994), "Read-ahead" and "Caching"; `DiskSim` 4.0 manual (2008),
//! "Disk module", buffer segments.

/// A contiguous extent in the cache, in media sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First sector held.
    pub start: u64,
    /// First sector not held any more.
    pub end: u64,
    used: u64,
}

/// Knowledge of the cache about an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// All there.
    Full(usize),
    /// Starts in this segment, or where it ends.
    Partial(usize),
    /// Not there.
    Miss,
}

/// The segments.
#[derive(Clone, Debug)]
pub struct ReadCache {
    segments: Vec<Segment>,
    length: u64,
    clock: u64,
}

impl ReadCache {
    /// Cache of so many segments of so many media sectors.
    pub fn new(segments: usize, length: u64) -> Self {
        Self { segments: vec![Segment::default(); segments], length, clock: 0 }
    }

    /// Tell whether there is a cache at all.
    pub const fn is_on(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The segment as it is.
    pub fn segment(&self, index: usize) -> Segment {
        self.segments[index]
    }

    /// Looks an extent up.
    pub fn lookup(&self, start: u64, end: u64) -> Lookup {
        let mut best = Lookup::Miss;
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.start <= start && start < segment.end {
                if end <= segment.end {
                    return Lookup::Full(index);
                }
                best = Lookup::Partial(index);
            }
        }
        best
    }

    /// The segment that ends where an extent starts.
    pub fn continued(&self, start: u64) -> Option<usize> {
        let mut segments = self.segments.iter();
        segments.position(|segment| segment.end == start && segment.start < segment.end)
    }

    /// First sector from `end` on that no segment holds.
    pub fn held_until(&self, end: u64) -> u64 {
        let holds = |end: u64| self.segments.iter().find(|it| it.start <= end && end < it.end);
        let mut until = end;
        while let Some(segment) = holds(until) {
            until = segment.end;
        }
        until
    }

    /// Marks a segment as used now.
    pub fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.segments[index].used = self.clock;
    }

    /// A segment for new data: the least recently used one, now holding this extent's tail.
    pub fn allocate(&mut self, start: u64, end: u64) -> usize {
        let oldest = (0..self.segments.len()).min_by_key(|&index| self.segments[index].used);
        let index = oldest.unwrap_or(0);
        self.segments[index] = Segment { start, end: start, used: 0 };
        self.extend(index, end);
        self.touch(index);
        index
    }

    /// The segment has received data up to `end`; the oldest data leave when it overflows.
    pub fn extend(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(self.length));
    }

    /// Read-ahead after a read of this extent goes up to here: until the segment is full, but at
    /// least half a segment, since data that the host has got make room.
    pub const fn limit(&self, start: u64, end: u64) -> u64 {
        let full = start + self.length;
        let half = end + self.length / 2;
        if full > half { full } else { half }
    }

    /// Forgets what a write changes.
    pub fn invalidate(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                if segment.start < start {
                    segment.end = start;
                } else {
                    segment.start = end.min(segment.end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_segment_is_replaced() {
        let mut cache = ReadCache::new(2, 100);
        cache.allocate(0, 10);
        cache.allocate(1_000, 1_010);
        assert_eq!(cache.lookup(0, 10), Lookup::Full(0));
        cache.touch(0);
        cache.allocate(2_000, 2_010);
        assert_eq!(cache.lookup(1_000, 1_001), Lookup::Miss);
        assert_eq!(cache.lookup(0, 11), Lookup::Partial(0));
    }

    #[test]
    fn a_segment_keeps_its_newest_data() {
        let mut cache = ReadCache::new(1, 100);
        let index = cache.allocate(0, 60);
        cache.extend(index, 130);
        assert_eq!(cache.segment(index).start, 30);
        assert_eq!(cache.lookup(29, 40), Lookup::Miss);
    }

    #[test]
    fn segments_continue_each_other() {
        let mut cache = ReadCache::new(3, 100);
        cache.allocate(60, 90);
        cache.allocate(0, 60);
        cache.allocate(91, 100);
        assert_eq!([30, 60, 90, 200].map(|end| cache.held_until(end)), [90, 90, 90, 200]);
    }

    #[test]
    fn writes_invalidate() {
        let mut cache = ReadCache::new(2, 100);
        cache.allocate(0, 60);
        cache.allocate(500, 560);
        cache.invalidate(40, 50);
        cache.invalidate(490, 510);
        assert_eq!(cache.lookup(0, 40), Lookup::Full(0));
        assert_eq!(cache.lookup(50, 60), Lookup::Miss);
        assert_eq!(cache.lookup(510, 560), Lookup::Full(1));
    }
}
