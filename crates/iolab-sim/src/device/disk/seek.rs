//! Seek curve: time to travel a number of cylinders.
//!
//! Models a curve in two pieces (acceleration, then coasting), optionally with measured times for
//! the shortest distances, or a table with linear interpolation. Leaves out differences between
//! directions and between reads and writes (see the settling time of the mechanism).
//!
//! Source: Ruemmler and Wilkes (1994), "Seeking"; Worthington and others (1994) for tables.

use iolab_model::Ns;

use crate::error::SimError;

/// The curve in two pieces, milliseconds over cylinders.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoPieces {
    /// `a` and `b` of `a + b * sqrt(d)`, for `d` below the boundary.
    pub short: [f64; 2],
    /// `c` and `e` of `c + e * d`, from the boundary on.
    pub long: [f64; 2],
    /// First distance of the long piece.
    pub boundary: u32,
    /// Measured times of the distances 1, 2, ...; they replace the curve.
    pub first: Vec<f64>,
}

/// Seek time for every distance that exists on the disk.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    times: Vec<u32>,
    /// Least time of this distance and all longer ones: what a search may rely on.
    floors: Vec<u32>,
}

/// Nanoseconds of a time in milliseconds.
fn nanoseconds(ms: f64) -> u32 {
    (ms * 1e6).round().clamp(0.0, 4e9) as u32
}

impl SeekCurve {
    /// From the curve in two pieces.
    pub fn from_pieces(pieces: &TwoPieces, cylinders: u32) -> Self {
        let time = |distance: u32| {
            if distance == 0 {
                0.0
            } else if let Some(&measured) = pieces.first.get(distance as usize - 1) {
                measured
            } else if distance < pieces.boundary {
                pieces.short[0] + pieces.short[1] * f64::from(distance).sqrt()
            } else {
                pieces.long[0] + pieces.long[1] * f64::from(distance)
            }
        };
        Self::of((0..cylinders).map(|distance| nanoseconds(time(distance))).collect())
    }

    /// From rows of distance and milliseconds; beyond the last row the last slope goes on.
    pub fn from_table(rows: &[Vec<f64>], cylinders: u32) -> Self {
        let at = |row: usize| (rows[row][0], rows[row][1]);
        let time = |distance: u32| {
            if distance == 0 {
                return 0.0;
            }
            let distance = f64::from(distance);
            let after = rows.partition_point(|row| row[0] < distance);
            let right = after.clamp(1, rows.len() - 1);
            let ((x0, y0), (x1, y1)) = (at(right - 1), at(right));
            y0 + (y1 - y0) * (distance - x0) / (x1 - x0)
        };
        Self::of((0..cylinders).map(|distance| nanoseconds(time(distance))).collect())
    }

    fn of(times: Vec<u32>) -> Self {
        let mut floors = times.clone();
        for index in (0..floors.len().saturating_sub(1)).rev() {
            floors[index] = floors[index].min(floors[index + 1]);
        }
        Self { times, floors }
    }

    /// Refuses a table that is not one.
    pub fn check_table(subject: &str, rows: &[Vec<f64>]) -> Result<(), SimError> {
        let wrong = |problem: String| SimError::Inconsistent {
            subject: subject.to_owned(),
            problem,
            remedy: "list distances from 1 upwards, each once, with times above 0".to_owned(),
        };
        if rows.len() < 2 {
            return Err(wrong("`seek_table` has fewer than two rows".to_owned()));
        }
        for (index, row) in rows.iter().enumerate() {
            let is_next = index == 0 || rows[index - 1][0] < row[0];
            if !is_next || row[0] < 1.0 || row[0].fract() != 0.0 || row[1] <= 0.0 {
                let problem = format!("`seek_table` row {} ({}, {})", index + 1, row[0], row[1]);
                return Err(wrong(problem));
            }
        }
        Ok(())
    }

    /// Time to travel `distance` cylinders.
    #[inline]
    pub fn time(&self, distance: u32) -> u64 {
        u64::from(self.times[distance as usize])
    }

    /// No seek of this distance or more is shorter than that.
    #[inline]
    pub fn floor(&self, distance: u32) -> u64 {
        u64::from(self.floors[distance as usize])
    }

    /// Mean seek between two uniformly distributed cylinders.
    pub fn mean(&self) -> Ns {
        let cylinders = self.times.len() as f64;
        let sum: f64 = self
            .times
            .iter()
            .enumerate()
            .map(|(distance, &time)| (cylinders - distance as f64) * f64::from(time))
            .sum();
        Ns((2.0 * sum / (cylinders * cylinders)).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_interpolate_and_go_on() {
        let rows = vec![vec![1.0, 1.0], vec![3.0, 2.0], vec![5.0, 2.5]];
        let curve = SeekCurve::from_table(&rows, 9);
        let times: Vec<u64> = (0..9).map(|distance| curve.time(distance)).collect();
        let expected =
            [0, 1_000_000, 1_500_000, 2_000_000, 2_250_000, 2_500_000, 2_750_000, 3_000_000];
        assert_eq!(times[..8], expected);
    }

    #[test]
    fn floors_hold_for_all_longer_distances() {
        let rows = vec![vec![1.0, 2.0], vec![2.0, 1.5], vec![3.0, 2.5]];
        let curve = SeekCurve::from_table(&rows, 4);
        assert_eq!(curve.time(1), 2_000_000);
        assert_eq!(curve.floor(1), 1_500_000);
        assert_eq!(curve.floor(3), 2_500_000);
    }

    #[test]
    fn mean_distance_of_uniform_cylinders_is_a_third() {
        let slope =
            TwoPieces { short: [0.0; 2], long: [0.0, 0.01], boundary: 0, first: Vec::new() };
        let curve = SeekCurve::from_pieces(&slope, 3_000);
        // Mean distance (N^2 - 1) / (3 N) = 1000 cylinders at 10 us each.
        assert!(curve.mean().0.abs_diff(10_000_000) < 2_000, "{}", curve.mean());
    }

    #[test]
    fn tables_out_of_order_are_refused() {
        let rows = vec![vec![2.0, 1.0], vec![1.0, 2.0]];
        let error = SeekCurve::check_table("x", &rows).unwrap_err().to_string();
        assert!(error.contains("row 2 (1, 2)"), "{error}");
    }
}
