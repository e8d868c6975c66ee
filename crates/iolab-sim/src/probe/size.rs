//! Size sweep: depth 1, 4 KiB to 1 MiB, and the line `t = a + b * size` through the medians.

use serde::Serialize;

use super::closed_loop::{Ask, run};
use super::findings::Bench;
use crate::api::bio::Operation;
use crate::compare::{Line, Point, median};
use crate::error::SimError;

/// Requests per point.
const REQUESTS: usize = 300;
/// Powers of two from 4 KiB to 1 MiB.
const SIZES: usize = 9;

/// One size.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct SizePoint {
    /// Size, in KiB.
    pub kib: u32,
    /// Median response, in us.
    pub median_us: f64,
    /// Residual of the line, in us.
    pub residual_us: f64,
}

/// One kind of access.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SizeSweep {
    /// `random` or `sequential`.
    pub pattern: &'static str,
    /// `read` or `write`.
    pub direction: &'static str,
    /// Time of a request without data (a), in us.
    pub fixed_us: f64,
    /// Rate beyond that (1/b), in MB/s; absent where size costs nothing.
    pub rate_mb_s: Option<f64>,
    /// Every size.
    pub points: Vec<SizePoint>,
}

/// All four kinds of access.
pub(super) fn sweeps(bench: &Bench) -> Result<Vec<SizeSweep>, SimError> {
    let kinds = [
        ("random", "read", Operation::Read),
        ("sequential", "read", Operation::Read),
        ("random", "write", Operation::Write),
        ("sequential", "write", Operation::Write),
    ];
    kinds.into_iter().map(|kind| sweep(bench, kind)).collect()
}

fn sweep(
    bench: &Bench,
    (pattern, direction, operation): (&'static str, &'static str, Operation),
) -> Result<SizeSweep, SimError> {
    let mut points = Vec::with_capacity(SIZES);
    for step in 0..SIZES {
        let sectors = 8_u32 << step;
        let mut device = bench.device()?;
        let info = device.info();
        if sectors > info.max_sectors {
            break;
        }
        let places = info.capacity.0 / u64::from(sectors);
        let mut stream = bench.seed.stream("probe size", step as u64);
        let mut place = stream.below(places / 2);
        let taken = run(&mut *device, 1, REQUESTS, || {
            place = if pattern == "random" { stream.below(places) } else { place + 1 };
            Ask { operation, sector: place * u64::from(sectors), sectors }
        });
        // The first requests of a sequence still have to get there.
        let median = median(&taken.responses[REQUESTS / 10..]);
        points.push(Point {
            x: f64::from(sectors / 2),
            y: median,
            weight: 1.0 / (median * median),
        });
    }
    let line = Line::fit(&points);
    let rate = 1_024.0 / line.slope * 1e3;
    let in_us = |p: &Point| SizePoint {
        kib: p.x as u32,
        median_us: p.y / 1e3,
        residual_us: (p.y - line.at(p.x)) / 1e3,
    };
    Ok(SizeSweep {
        pattern,
        direction,
        fixed_us: line.intercept / 1e3,
        // Below a nanosecond per KiB there is no rate to speak of.
        rate_mb_s: (line.slope > 1.0).then_some(rate),
        points: points.iter().map(in_us).collect(),
    })
}
