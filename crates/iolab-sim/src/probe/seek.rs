//! Seek sweep of a disk: mean access time over distance, less half a turn and what a request costs
//! without a seek; the curve in two pieces is fitted to it.

use serde::Serialize;

use super::closed_loop::{Ask, run};
use super::findings::Bench;
use crate::api::bio::Operation;
use crate::compare::{Line, Point, mean, median};
use crate::device::disk::geometry::Geometry;
use crate::error::SimError;

/// Pairs of reads per distance.
const PAIRS: usize = 6_000;
/// Longest distance over all cylinders; beyond, few places are left to start from.
const LONGEST: f64 = 0.97;
/// Least points of a piece.
const PIECE_MIN: usize = 3;

/// One distance.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct SeekPoint {
    /// Cylinders.
    pub distance: u32,
    /// Mean seek, in ms.
    pub seek_ms: f64,
    /// The fitted curve there, in ms.
    pub fitted_ms: f64,
}

/// The fitted curve: `a + b * sqrt(d)` below the boundary, `c + e * d` from it on.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SeekSweep {
    /// Turns per minute.
    pub rpm: f64,
    /// `a` (ms) and `b`.
    pub short: Line,
    /// `c` (ms) and `e`.
    pub long: Line,
    /// First distance of the long piece.
    pub boundary: u32,
    /// Mean over uniformly distributed pairs of cylinders, in ms.
    pub mean_ms: f64,
    /// Every distance.
    pub points: Vec<SeekPoint>,
}

impl SeekSweep {
    /// The fitted time for a distance above 0, in ms.
    pub fn at(&self, distance: u32) -> f64 {
        let distance_f = f64::from(distance);
        if distance < self.boundary {
            self.short.at(distance_f.sqrt())
        } else {
            self.long.at(distance_f)
        }
    }

    fn mean_of(&self, cylinders: u32) -> f64 {
        let n = f64::from(cylinders);
        let sum: f64 = (1..cylinders).map(|d| (n - f64::from(d)) * self.at(d)).sum();
        2.0 * sum / (n * n)
    }
}

/// Measures and fits.
pub(super) fn sweep(bench: &Bench, geometry: &Geometry) -> Result<SeekSweep, SimError> {
    let turn = turn(bench)?;
    let cylinders = geometry.cylinders();
    let at_rest = access(bench, geometry, 0)?;
    let mut measured: Vec<(u32, f64)> = Vec::new();
    // Geometric, four distances per doubling.
    let mut exact = 1.0_f64;
    while exact < f64::from(cylinders) * LONGEST {
        let distance = exact.round() as u32;
        if measured.last().is_none_or(|&(last, _)| distance > last) {
            measured.push((distance, (access(bench, geometry, distance)? - at_rest) / 1e6));
        }
        exact *= 2.0_f64.sqrt().sqrt();
    }
    let mut found = fit(&measured);
    found.rpm = 60e9 / turn;
    found.mean_ms = found.mean_of(cylinders);
    Ok(found)
}

/// Duration of a turn in ns: the same sector read again and again comes round once per turn.
fn turn(bench: &Bench) -> Result<f64, SimError> {
    let mut device = bench.device()?;
    let ask = Ask { operation: Operation::Read, sector: 0, sectors: 1 };
    let taken = run(&mut *device, 1, 100, || ask);
    Ok(median(&taken.responses[1..]))
}

/// Mean access time in ns over a distance, in both directions, from random places to random places.
///
/// With distance 0 it is what a request costs besides the seek: overhead, half a turn, transfer.
fn access(bench: &Bench, geometry: &Geometry, distance: u32) -> Result<f64, SimError> {
    let mut device = bench.device()?;
    let media_per_sector = (geometry.sectors() / device.info().capacity.0).max(1);
    let mut stream = bench.seed.stream("probe seek", u64::from(distance));
    let cylinders = geometry.cylinders();
    let mut cylinder = 0;
    let mut is_second = true;
    let taken = run(&mut *device, 1, 2 * PAIRS, || {
        is_second = !is_second;
        if is_second {
            cylinder += distance;
        } else {
            cylinder = stream.below(u64::from(cylinders - distance)) as u32;
        }
        let first = geometry.first_sector(cylinder);
        let track = u64::from(geometry.zone(first).track_sectors);
        let sector = (first + stream.below(track)) / media_per_sector;
        Ask { operation: Operation::Read, sector, sectors: 1 }
    });
    let second: Vec<f64> = taken.responses.iter().skip(1).step_by(2).copied().collect();
    Ok(mean(&second))
}

/// Both pieces; the boundary lies where splitting the points leaves the least error, and there
/// where the pieces are nearest to each other.
fn fit(measured: &[(u32, f64)]) -> SeekSweep {
    let point = |x: f64, y: f64| Point { x, y, weight: 1.0 };
    let short: Vec<Point> = measured.iter().map(|&(d, y)| point(f64::from(d).sqrt(), y)).collect();
    let long: Vec<Point> = measured.iter().map(|&(d, y)| point(f64::from(d), y)).collect();
    let tried = (PIECE_MIN..=measured.len() - PIECE_MIN).map(|split| {
        let pieces = (Line::fit(&short[..split]), Line::fit(&long[split..]));
        let penalty = if pieces.1.slope < 0.0 { f64::INFINITY } else { 0.0 };
        (pieces.0.error(&short[..split]) + pieces.1.error(&long[split..]) + penalty, split, pieces)
    });
    let best = tried.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are distances");
    let (_, split, (short, long)) = best;
    let gap = |d: &u32| (short.at(f64::from(*d).sqrt()) - long.at(f64::from(*d))).abs();
    let between = measured[split - 1].0 + 1..=measured[split].0;
    let boundary = between.min_by(|a, b| gap(a).total_cmp(&gap(b))).expect("not empty");
    let mut found = SeekSweep { rpm: 0.0, short, long, boundary, mean_ms: 0.0, points: Vec::new() };
    found.points = measured
        .iter()
        .map(|&(distance, seek_ms)| SeekPoint { distance, seek_ms, fitted_ms: found.at(distance) })
        .collect();
    found
}
