//! A closed loop on a layer: so many requests always under way, each followed by the next.

use std::collections::VecDeque;

use iolab_model::{Ns, Sector};

use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;

/// Command of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) operation: Operation,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// Result of a loop.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Response times in order of completion, in ns; waiting for a place in the device counts.
    pub(super) responses: Vec<f64>,
    /// Duration of the whole.
    pub(super) elapsed: Ns,
}

/// Begins long after boot.
const EPOCH: Ns = Ns::from_seconds(1_000);

/// Runs `count` requests with `depth` of them outstanding; `next` makes the asks.
pub(super) fn run(
    layer: &mut dyn Layer,
    depth: u32,
    count: usize,
    mut next: impl FnMut() -> Ask,
) -> Taken {
    let room = layer.info().depth.min(depth);
    let mut begun = vec![EPOCH; depth as usize];
    let mut waiting: VecDeque<u32> = (0..depth).collect();
    let mut responses = Vec::with_capacity(count);
    let mut done = Vec::new();
    let (mut now, mut in_flight) = (EPOCH, 0);
    while responses.len() < count {
        while in_flight < room
            && let Some(id) = waiting.pop_front()
        {
            let Ask { operation, sector, sectors } = next();
            let (flags, submitter) = (Flags::SYNC, Submitter::default());
            let (id, sector) = (BioId(id), Sector(sector));
            let bio = Bio { id, operation, sector, sectors, flags, submitter, segments: 0 };
            layer.submit(now, &bio);
            in_flight += 1;
        }
        now = layer.next_event().max(now);
        assert!(now < Ns::MAX, "a device with work has a next event");
        layer.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            in_flight -= 1;
            responses.push(now.since(begun[id.0 as usize]).0 as f64);
            begun[id.0 as usize] = now;
            waiting.push_back(id.0);
        }
    }
    Taken { responses, elapsed: now.since(EPOCH) }
}
