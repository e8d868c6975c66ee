//! Choice of the request that is better served now, seen from a position.
//!
//! Ahead costs its distance, a short way back costs a multiple of it, and what lies further back
//! "wraps": it waits for the next sweep.
//!
//! Source: Linux 4.1 block/cfq-iosched.c; the rule is that of the anticipatory scheduler.

use iolab_model::Sector;

use crate::api::bio::Flags;
use crate::api::request::{Request, RequestId, Requests};

/// Distance that a request may lie back, and its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackSeek {
    /// Longest distance, in sectors.
    pub sectors_max: u64,
    /// Cost of a backward sector in forward sectors.
    pub penalty: u64,
}

impl BackSeek {
    /// Cost of going to `sector`; nothing if it wraps.
    fn cost(self, sector: Sector, from: Sector) -> Option<u64> {
        match from.0.checked_sub(sector.0) {
            None | Some(0) => Some(sector.0 - from.0),
            Some(back) if back <= self.sectors_max => Some(back.saturating_mul(self.penalty)),
            Some(_) => None,
        }
    }

    /// Tell whether `first` goes before `second`.
    fn prefers(self, first: &Request, second: &Request, from: Sector) -> bool {
        if first.is_sync() != second.is_sync() {
            return first.is_sync();
        }
        if is_urgent(first) != is_urgent(second) {
            return is_urgent(first);
        }
        match (self.cost(first.sector, from), self.cost(second.sector, from)) {
            (Some(a), Some(b)) if a == b => first.sector >= second.sector,
            (Some(a), Some(b)) => a < b,
            (None, None) => first.sector <= second.sector,
            (first_cost, _) => first_cost.is_some(),
        }
    }

    /// The better of two candidates.
    pub fn better(
        self,
        requests: &Requests,
        candidates: (Option<RequestId>, Option<RequestId>),
        from: Sector,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = candidates else {
            return candidates.0.or(candidates.1);
        };
        if first == second || self.prefers(&requests[first], &requests[second], from) {
            Some(first)
        } else {
            Some(second)
        }
    }
}

/// Tell whether a request is boosted (`REQ_PRIO`: what file systems set on metadata reads).
pub(super) fn is_urgent(request: &Request) -> bool {
    request.flags.contains(Flags::PRIORITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::cfq::tests::request_at;

    const DEFAULT: BackSeek = BackSeek { sectors_max: 32_768, penalty: 2 };

    fn best(sectors: [u64; 2], from: u64) -> u64 {
        let mut requests = Requests::default();
        let [a, b] = sectors.map(|sector| requests.add(request_at(sector, 8)));
        let chosen = DEFAULT.better(&requests, (Some(a), Some(b)), Sector(from)).unwrap();
        requests[chosen].sector.0
    }

    #[test]
    fn backward_costs_twice_and_far_back_wraps() {
        assert_eq!(best([1_500, 900], 1_000), 900);
        assert_eq!(best([1_199, 900], 1_000), 1_199);
        // Equal costs: the higher sector, in both orders.
        assert_eq!(best([1_200, 900], 1_000), 1_200);
        assert_eq!(best([900, 1_200], 1_000), 1_200);
        // 32768 sectors back is allowed, one more wraps and loses against anything ahead.
        assert_eq!(best([200_000, 67_232], 100_000), 67_232);
        assert_eq!(best([200_000, 67_231], 100_000), 200_000);
        // Two that wrap: the lower, where the next sweep begins.
        assert_eq!(best([5, 3], 1_000_000), 3);
        assert_eq!(best([3, 5], 1_000_000), 3);
    }

    #[test]
    fn urgent_goes_before_near_and_sync_before_urgent() {
        let mut requests = Requests::default();
        let near = requests.add(request_at(1_000, 8));
        let mut boosted = request_at(90_000, 8);
        boosted.flags = Flags::PRIORITY;
        let boosted = requests.add(boosted);
        let mut write = request_at(1_000, 8);
        write.operation = crate::Operation::Write;
        write.flags = Flags::PRIORITY;
        let write = requests.add(write);
        let better = |a, b| DEFAULT.better(&requests, (Some(a), Some(b)), Sector(1_000));
        assert_eq!(better(near, boosted), Some(boosted));
        assert_eq!(better(write, near), Some(near));
        assert_eq!(better(near, near), Some(near));
    }
}
