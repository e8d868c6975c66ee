//! Seek history: one bit for each of the last 32 requests of a queue.
//!
//! Source: Linux 4.1 block/cfq-iosched.c: more than 800 sectors away is a seek; without a head, a
//! request below 64 sectors counts instead; more than 4 of 32 make a queue seeky.

use iolab_model::Sector;

use crate::api::request::Request;

/// Distance above which a request is a seek, in sectors.
const FAR_SECTORS: u64 = 800;
/// Length below which a request on a device without a head counts as a seek, in sectors.
const SMALL_SECTORS: u32 = 64;
/// A queue with more seeks than this among the last 32 is seeky.
const SEEKY_ABOVE: u32 = 32 / 8;

/// The last 32 requests of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeks {
    /// One bit per request, the newest lowest.
    pub history: u32,
    last_end: Option<Sector>,
}

impl Seeks {
    /// Notes a request.
    pub fn note(&mut self, request: &Request, is_rotational: bool) {
        let is_seek = if is_rotational {
            let distance =
                self.last_end.map_or(0, |last_end| request.sector.0.abs_diff(last_end.0));
            distance > FAR_SECTORS
        } else {
            request.sectors < SMALL_SECTORS
        };
        self.history = self.history << 1 | u32::from(is_seek);
        self.last_end = Some(request.end());
    }

    /// Tell whether the queue mostly seeks.
    pub fn is_seeky(self) -> bool {
        self.history.count_ones() > SEEKY_ABOVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::cfq::tests::request_at;

    #[test]
    fn five_seeks_make_a_queue_seeky() {
        let mut seeks = Seeks::default();
        // The first has no predecessor; 800 sectors are near, 801 are far.
        for (sector, history) in [(5_000, 0), (5_808, 0), (6_617, 1)] {
            seeks.note(&request_at(sector, 8), true);
            assert_eq!(seeks.history, history, "after {sector}");
        }
        for step in 1..=4 {
            assert!(!seeks.is_seeky(), "after {step} seeks");
            seeks.note(&request_at(step * 1_000_000, 8), true);
        }
        assert!(seeks.is_seeky());
    }

    #[test]
    fn without_a_head_small_requests_count() {
        let mut seeks = Seeks::default();
        seeks.note(&request_at(0, 64), false);
        assert_eq!(seeks.history, 0);
        seeks.note(&request_at(64, 63), false);
        assert_eq!(seeks.history, 1);
    }
}
