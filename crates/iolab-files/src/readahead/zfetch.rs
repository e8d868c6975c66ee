//! Reading ahead of `ZFS`: several sequential readers of a file, each with a distance that doubles.
//!
//! Source: `dmu_zfetch.c` of `OpenZFS` (described, not copied). Left out: readers that go
//! backwards, and strides.

use iolab_model::Ns;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRules {
    /// Most streams of a file.
    pub streams_max: u32,
    /// Records ahead of a stream at most.
    pub records_max: u64,
    /// A stream that was not used for so long may be replaced.
    pub reap: Ns,
    /// Requests of so many bytes are not read ahead.
    pub request_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Record after the last one that was used.
    next: u64,
    /// Record after the last one that was read ahead.
    ahead: u64,
    /// Distance, in records.
    distance: u64,
    used: Ns,
}

/// Streams of a file.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    streams: Vec<Stream>,
}

impl Fetch {
    /// A use of some records; answers those to be read ahead, if any.
    pub fn access(
        &mut self,
        now: Ns,
        (first, end): (u64, u64),
        file_records: u64,
        rules: &FetchRules,
    ) -> Option<(u64, u64)> {
        // The record that was used last, once more.
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.next == first + 1) {
            stream.used = now;
            if end <= stream.next {
                return None;
            }
        }
        let follows = |stream: &&mut Stream| stream.next == first || stream.next == first + 1;
        let Some(stream) = self.streams.iter_mut().find(follows) else {
            self.begin(now, end, file_records, rules);
            return None;
        };
        stream.used = now;
        stream.next = end;
        stream.distance = (stream.distance * 2).min(rules.records_max);
        let from = stream.ahead.max(end);
        let until = (end + stream.distance).min(file_records);
        stream.ahead = stream.ahead.max(until);
        (from < until).then_some((from, until))
    }

    /// A new stream, if there is room for one.
    fn begin(&mut self, now: Ns, end: u64, file_records: u64, rules: &FetchRules) {
        let most = (file_records / rules.records_max.max(1)).clamp(1, u64::from(rules.streams_max));
        if self.streams.len() as u64 >= most {
            let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used);
            let Some((place, stream)) = oldest else { return };
            if now.since(stream.used) < rules.reap {
                return;
            }
            self.streams.swap_remove(place);
        }
        self.streams.push(Stream { next: end, ahead: end, distance: 1, used: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: FetchRules = FetchRules {
        streams_max: 8,
        records_max: 256,
        reap: Ns::from_ms(2_000),
        request_bytes: 1 << 20,
    };

    #[test]
    fn the_distance_of_a_sequential_reader_doubles_up_to_its_limit() {
        let mut fetch = Fetch::default();
        let seen: Vec<_> =
            (0..12).map(|at| fetch.access(Ns(at), (at, at + 1), 1000, &RULES)).collect();
        let expected = [
            None,
            Some((2, 4)),
            Some((4, 7)),
            Some((7, 12)),
            Some((12, 21)),
            Some((21, 38)),
            Some((38, 71)),
            Some((71, 136)),
            Some((136, 265)),
            Some((265, 266)),
            Some((266, 267)),
            Some((267, 268)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_same_record_again_and_jumps_read_nothing() {
        let mut fetch = Fetch::default();
        for at in [5, 5, 5, 90, 7, 300] {
            assert_eq!(fetch.access(Ns(1), (at, at + 1), 1000, &RULES), None);
        }
        assert_eq!(fetch.access(Ns(2), (6, 7), 1000, &RULES), Some((7, 9)), "goes on after 5");
    }

    #[test]
    fn streams_interleave_and_a_small_file_has_one() {
        let mut fetch = Fetch::default();
        assert_eq!(fetch.access(Ns(1), (0, 1), 4096, &RULES), None);
        assert_eq!(fetch.access(Ns(2), (2000, 2001), 4096, &RULES), None);
        assert_eq!(fetch.access(Ns(3), (1, 2), 4096, &RULES), Some((2, 4)));
        assert_eq!(fetch.access(Ns(4), (2001, 2002), 4096, &RULES), Some((2002, 2004)));
        let mut small = Fetch::default();
        assert_eq!(small.access(Ns(1), (0, 1), 100, &RULES), None);
        assert_eq!(small.access(Ns(2), (50, 51), 100, &RULES), None);
        assert_eq!(small.access(Ns(3), (51, 52), 100, &RULES), None, "no room for a second one");
        let late = Ns::from_ms(2_010);
        assert_eq!(small.access(late, (60, 61), 100, &RULES), None);
        assert_eq!(small.access(late, (61, 62), 100, &RULES), Some((62, 64)), "the first is old");
    }
}
