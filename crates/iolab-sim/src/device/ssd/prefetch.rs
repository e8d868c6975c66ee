//! Read-ahead of the drive: recognises sequential readers and fetches whole superpages for them.
//!
//! A reader is sequential when its second request in a row starts where the one before ended. Then
//! the superpages ahead of it are read, up to a number of them. A fetched superpage is kept until
//! its reader has passed it, or its reader's place is taken by a newer one. A write or trim into it
//! makes it void.

use super::ftl::NONE;

/// Readers that are followed at a time.
const READERS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Unit where its next request would start.
    next: u32,
    /// Requests in a row so far.
    run: u32,
    /// First unit that has not been fetched for it.
    ahead: u32,
    /// Time at which it was last seen, counted in requests.
    seen: u64,
}

/// Part of a superpage, fetched or being fetched.
#[derive(Debug, Default)]
pub struct Segment {
    /// First unit.
    pub start: u32,
    /// First unit after it; equal to `start` if the segment is unused.
    pub end: u32,
    /// Page reads under way.
    pub pending: u32,
    /// True if its content may not be used any more.
    is_void: bool,
    reader: usize,
    /// Commands that wait for it, and how many bytes of it they want.
    pub waiters: Vec<(u32, u32)>,
}

impl Segment {
    const fn is_unused(&self) -> bool {
        self.start == self.end
    }
}

/// Readers and segments.
#[derive(Debug)]
pub struct Prefetch {
    depth: u32,
    superpage: u32,
    limit: u32,
    readers: Vec<Reader>,
    segments: Vec<Segment>,
    in_use: u32,
    requests: u64,
    /// Requests' parts served from segments.
    pub hits: u64,
}

impl Prefetch {
    /// Fetches up to `depth` superpages ahead, on a drive of `limit` units.
    pub fn new(depth: u32, superpage: u32, limit: u32) -> Self {
        let reader = Reader { next: NONE, run: 0, ahead: 0, seen: 0 };
        let count = if depth == 0 { 0 } else { READERS * (depth as usize + 2) };
        Self {
            depth,
            superpage,
            limit,
            readers: vec![reader; READERS],
            segments: (0..count).map(|_| Segment::default()).collect(),
            in_use: 0,
            requests: 0,
            hits: 0,
        }
    }

    /// A request for units `start..end`: which reader it belongs to, if that one is sequential.
    pub fn observe(&mut self, start: u32, end: u32) -> Option<usize> {
        if self.depth == 0 {
            return None;
        }
        self.requests += 1;
        let found = self.readers.iter().position(|reader| reader.next == start);
        let index = found.unwrap_or_else(|| {
            let oldest = self.readers.iter().enumerate().min_by_key(|(_, reader)| reader.seen);
            oldest.map_or(0, |(index, _)| index)
        });
        if found.is_none() {
            self.abandon(index, NONE);
            self.readers[index].run = 0;
        }
        let reader = &mut self.readers[index];
        reader.next = end;
        reader.run = reader.run.saturating_add(1);
        reader.seen = self.requests;
        if reader.run == 1 {
            reader.ahead = end;
        }
        let is_sequential = reader.run >= 2;
        reader.ahead = reader.ahead.max(end);
        (is_sequential && end < self.limit).then_some(index)
    }

    /// The next segment to fetch for a reader, if it is not far enough ahead.
    pub fn extend(&mut self, index: usize) -> Option<usize> {
        let Reader { next, ahead, .. } = self.readers[index];
        let goal = next.saturating_add(self.depth * self.superpage).min(self.limit);
        if ahead >= goal {
            return None;
        }
        self.abandon(index, next);
        let free = self.segments.iter().position(Segment::is_unused)?;
        let end = ((ahead / self.superpage + 1) * self.superpage).min(self.limit);
        let segment = &mut self.segments[free];
        debug_assert!(segment.waiters.is_empty(), "an unused segment has no waiters");
        (segment.start, segment.end, segment.pending) = (ahead, end, 0);
        (segment.is_void, segment.reader) = (false, index);
        self.in_use += 1;
        self.readers[index].ahead = end;
        Some(free)
    }

    /// The segment that holds a unit.
    pub fn find(&self, unit: u32) -> Option<usize> {
        if self.in_use == 0 {
            return None;
        }
        let holds =
            |segment: &Segment| (segment.start..segment.end).contains(&unit) && !segment.is_void;
        self.segments.iter().position(holds)
    }

    /// A segment.
    pub fn segment(&mut self, index: usize) -> &mut Segment {
        &mut self.segments[index]
    }

    /// One page of a segment has arrived; true if it was the last one.
    pub fn arrived(&mut self, index: usize) -> bool {
        self.segments[index].pending -= 1;
        self.segments[index].pending == 0
    }

    /// Frees a segment that is void and complete; call after serving its waiters.
    pub fn settle(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.is_void && segment.pending == 0 && !segment.is_unused() {
            segment.end = segment.start;
            self.in_use -= 1;
        }
    }

    /// The units `start..end` were written or trimmed.
    pub fn invalidate(&mut self, start: u32, end: u32) {
        if self.in_use == 0 {
            return;
        }
        for index in 0..self.segments.len() {
            let segment = &mut self.segments[index];
            if segment.start < end && start < segment.end {
                segment.is_void = true;
                self.settle(index);
            }
        }
    }

    /// Voids the segments of a reader that end at or before `passed`.
    fn abandon(&mut self, reader: usize, passed: u32) {
        if self.in_use == 0 {
            return;
        }
        for index in 0..self.segments.len() {
            let segment = &mut self.segments[index];
            if !segment.is_unused() && segment.reader == reader && segment.end <= passed {
                segment.is_void = true;
                self.settle(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_in_a_row_starts_whole_superpages() {
        let mut prefetch = Prefetch::new(2, 16, 100);
        assert_eq!(prefetch.observe(4, 8), None);
        let reader = prefetch.observe(8, 12).unwrap();
        let mut ranges = Vec::new();
        while let Some(index) = prefetch.extend(reader) {
            let segment = prefetch.segment(index);
            ranges.push((segment.start, segment.end));
        }
        // Two superpages ahead of unit 12 end at 44; the fetch is rounded up to a superpage.
        assert_eq!(ranges, [(12, 16), (16, 32), (32, 48)]);
        assert!(prefetch.find(20).is_some() && prefetch.find(48).is_none());
        prefetch.invalidate(20, 21);
        assert_eq!(prefetch.find(20), None);
        assert!(prefetch.find(40).is_some());
    }

    #[test]
    fn random_requests_start_nothing() {
        let mut prefetch = Prefetch::new(2, 16, 1_000);
        for start in [7, 3, 900, 45, 31] {
            assert_eq!(prefetch.observe(start, start + 1), None);
        }
    }
}
