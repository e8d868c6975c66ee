//! Distance between two distributions, and the small fits that calibration needs.
//!
//! The demerit figure is the root mean square horizontal distance between two distribution curves
//! (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer, 1994); quantiles
//! are interpolated linearly between order statistics at positions `q * (n - 1)`.

/// Quantiles that the demerit figure compares: multiples of 10^-4.
const QUANTILES: u32 = 10_000;

fn sorted(sample: &[f64]) -> Vec<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Quantile `q` (0 to 1) of an ascending sample that is not empty.
pub fn quantile(ascending: &[f64], q: f64) -> f64 {
    let position = q * (ascending.len() - 1) as f64;
    let below = position.floor();
    let index = below as usize;
    let next = ascending[(index + 1).min(ascending.len() - 1)];
    ascending[index] + (position - below) * (next - ascending[index])
}

/// Median of a sample that is not empty.
pub fn median(sample: &[f64]) -> f64 {
    quantile(&sorted(sample), 0.5)
}

/// Mean of a sample; 0 if it is empty.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / (sample.len() as f64).max(1.0)
}

/// Demerit figure, in the unit of the samples (neither of which may be empty).
pub fn demerit(real: &[f64], simulated: &[f64]) -> f64 {
    let (real, simulated) = (sorted(real), sorted(simulated));
    let squares = (1..QUANTILES).map(|step| {
        let q = f64::from(step) / f64::from(QUANTILES);
        let distance = quantile(&real, q) - quantile(&simulated, q);
        distance * distance
    });
    (squares.sum::<f64>() / f64::from(QUANTILES - 1)).sqrt()
}

/// Demerit figure over the mean of the real sample.
pub fn relative_demerit(real: &[f64], simulated: &[f64]) -> f64 {
    demerit(real, simulated) / mean(real)
}

/// Kolmogorov-Smirnov distance: the largest vertical distance between two distribution curves, and
/// where it is reached first.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j) = (0, 0);
    let (mut largest, mut place) = (0.0, 0.0);
    while i < a.len() && j < b.len() {
        let at = a[i].min(b[j]);
        while i < a.len() && a[i] <= at {
            i += 1;
        }
        while j < b.len() && b[j] <= at {
            j += 1;
        }
        let distance = (i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs();
        if distance > largest {
            (largest, place) = (distance, at);
        }
    }
    (largest, place)
}

/// A point of a fit.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Place of the value.
    pub x: f64,
    /// Measured value.
    pub y: f64,
    /// Weight of the value.
    pub weight: f64,
}

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "FittedLine")]
pub struct Line {
    /// Value at 0.
    pub intercept: f64,
    /// Rise per unit.
    pub slope: f64,
}

impl Line {
    /// Value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// Least squares with weights; the points must lie at two places at least.
    pub fn fit(points: &[Point]) -> Self {
        let total: f64 = points.iter().map(|p| p.weight).sum();
        let x = points.iter().map(|p| p.weight * p.x).sum::<f64>() / total;
        let y = points.iter().map(|p| p.weight * p.y).sum::<f64>() / total;
        let above: f64 = points.iter().map(|p| p.weight * (p.x - x) * (p.y - y)).sum();
        let below: f64 = points.iter().map(|p| p.weight * (p.x - x) * (p.x - x)).sum();
        let slope = above / below;
        Self { intercept: y - slope * x, slope }
    }

    /// Sum of the weighted squares of what the line misses.
    pub fn error(&self, points: &[Point]) -> f64 {
        let square = |p: &Point| p.weight * (p.y - self.at(p.x)) * (p.y - self.at(p.x));
        points.iter().map(square).sum()
    }
}

/// Depth at which a closed queue turns from latency-bound to rate-bound: `rate * latency`.
pub fn knee(latency_s: f64, rate_max: f64) -> f64 {
    latency_s * rate_max
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;

    fn uniform(to: f64, name: &str) -> Vec<f64> {
        let mut stream = Seed(1).stream(name, 0);
        (0..100_000).map(|_| to * stream.unit()).collect()
    }

    #[test]
    fn cal_1_equal_samples_have_no_distance_and_a_shift_is_its_length() {
        let sample = uniform(10.0, "real");
        let shifted: Vec<f64> = sample.iter().map(|x| x + 1.0).collect();
        assert!(demerit(&sample, &sample).abs() < 1e-12);
        assert!(kolmogorov_smirnov(&sample, &sample).0.abs() < 1e-12);
        assert!((demerit(&sample, &shifted) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn cal_2_two_uniform_distributions() {
        // With the distributions themselves: quantiles 10 q and 12 q, distance 2 q.
        let grid = |to: f64| (0..=10_000).map(|i| to * f64::from(i) / 1e4).collect::<Vec<_>>();
        let exact = demerit(&grid(10.0), &grid(12.0));
        assert!((exact - 2.0 / 3.0_f64.sqrt()).abs() < 1e-4, "{exact}");
        let (real, simulated) = (uniform(10.0, "real"), uniform(12.0, "simulated"));
        assert!((demerit(&real, &simulated) - 1.1547).abs() < 0.05);
        assert!((relative_demerit(&real, &simulated) - 0.231).abs() < 0.01);
        let (distance, at) = kolmogorov_smirnov(&real, &simulated);
        assert!((distance - 1.0 / 6.0).abs() < 0.01, "{distance}");
        assert!((at - 10.0).abs() < 0.5, "{at}");
    }

    #[test]
    fn cal_3_line_through_two_sizes() {
        let point = |x, y| Point { x, y, weight: 1.0 };
        let line = Line::fit(&[point(4.0, 199.4), point(32.0, 212.8)]);
        assert!((line.slope - 13.4 / 28.0).abs() < 1e-12);
        assert!((line.intercept - 197.5).abs() < 0.05);
        assert!((line.at(8.0) - 201.3).abs() < 0.05);
        assert!((line.at(16.0) - 205.1).abs() < 0.05);
    }

    #[test]
    fn cal_4_knee() {
        assert!((knee(100e-6, 80_000.0) - 8.0).abs() < 1e-12);
    }

    #[test]
    fn weights_count_like_repetitions() {
        let point = |x, y, weight| Point { x, y, weight };
        let weighted = [point(0.0, 0.0, 2.0), point(1.0, 3.0, 1.0), point(2.0, 1.0, 1.0)];
        let repeated = [
            point(0.0, 0.0, 1.0),
            point(0.0, 0.0, 1.0),
            point(1.0, 3.0, 1.0),
            point(2.0, 1.0, 1.0),
        ];
        let (a, b) = (Line::fit(&weighted), Line::fit(&repeated));
        assert!((a.slope - b.slope).abs() < 1e-12 && (a.intercept - b.intercept).abs() < 1e-12);
    }
}
