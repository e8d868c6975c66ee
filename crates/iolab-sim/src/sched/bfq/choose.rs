//! Choice of the better one of two requests to serve next.

use iolab_model::Sector;

use crate::api::bio::Flags;
use crate::api::request::{RequestId, Requests};

/// Distance that the head may go back, and its price.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackSeek {
    /// Farthest, in sectors.
    pub(super) max: u64,
    /// A backward distance counts this many times.
    pub(super) penalty: u64,
}

impl BackSeek {
    /// Cost of going from `last` to `sector`; `None` beyond the limit ("wrapped").
    const fn cost(self, sector: Sector, last: Sector) -> Option<u64> {
        if sector.0 >= last.0 {
            Some(sector.0 - last.0)
        } else if sector.0 + self.max >= last.0 {
            Some((last.0 - sector.0) * self.penalty)
        } else {
            None
        }
    }

    /// The better of two requests for a head at `last`: synchronous, then metadata, then near.
    pub(super) fn better(
        self,
        requests: &Requests,
        first: Option<RequestId>,
        second: Option<RequestId>,
        last: Sector,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (first, second) else {
            return first.or(second);
        };
        let (one, two) = (&requests[a], &requests[b]);
        if one.is_sync() != two.is_sync() {
            return if one.is_sync() { first } else { second };
        }
        let is_meta = one.flags.contains(Flags::META);
        if is_meta != two.flags.contains(Flags::META) {
            return if is_meta { first } else { second };
        }
        let is_first_better = match (self.cost(one.sector, last), self.cost(two.sector, last)) {
            (Some(a), Some(b)) if a == b => one.sector >= two.sector,
            (Some(a), Some(b)) => a < b,
            (None, None) => one.sector <= two.sector,
            (a, _) => a.is_some(),
        };
        if is_first_better { first } else { second }
    }
}
