//! Depth sweep: random 4 KiB reads with 1 to 128 outstanding, and the knee of the closed queue.

use serde::Serialize;

use super::closed_loop::{Ask, run};
use super::findings::Bench;
use crate::api::bio::Operation;
use crate::compare::{knee, mean};
use crate::error::SimError;

/// Requests per point.
const REQUESTS: usize = 4_000;
/// 1, 2, 4 ... 128.
const DEPTHS: u32 = 8;

/// One depth.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct DepthPoint {
    /// Requests outstanding.
    pub depth: u32,
    /// Requests per second.
    pub rate: f64,
    /// Mean response, in us.
    pub response_us: f64,
}

/// Rate over depth.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DepthSweep {
    /// Mean response at depth 1 (R0), in us.
    pub alone_us: f64,
    /// Highest rate, per second.
    pub rate_max: f64,
    /// Depth at which latency and rate meet: the product of both.
    pub knee: f64,
    /// Every depth.
    pub points: Vec<DepthPoint>,
}

/// Measures.
pub(super) fn sweep(bench: &Bench) -> Result<DepthSweep, SimError> {
    let mut points = Vec::with_capacity(DEPTHS as usize);
    for step in 0..DEPTHS {
        let depth = 1 << step;
        let mut device = bench.device()?;
        let places = device.info().capacity.0 / 8;
        let mut stream = bench.seed.stream("probe depth", u64::from(step));
        let taken = run(&mut *device, depth, REQUESTS, || Ask {
            operation: Operation::Read,
            sector: stream.below(places) * 8,
            sectors: 8,
        });
        let rate = taken.responses.len() as f64 / taken.elapsed.as_seconds();
        points.push(DepthPoint { depth, rate, response_us: mean(&taken.responses) / 1e3 });
    }
    let alone_us = points[0].response_us;
    let rate_max = points.iter().map(|p| p.rate).fold(0.0, f64::max);
    Ok(DepthSweep { alone_us, rate_max, knee: knee(alone_us * 1e-6, rate_max), points })
}
