//! A picture of places over time in a fixed number of cells, whatever the number of accesses.
//!
//! Cells are powers of two wide. When an access lies outside, cells are joined in pairs until it
//! lies inside, so that nobody has to know the ranges before.

use serde::Serialize;

/// Counts of reads and writes in a cell.
type Cell = [u32; 2];

/// Counts of accesses by time and place; each number of cells is a power of two.
#[derive(Clone, Debug)]
pub struct Density {
    columns: usize,
    rows: usize,
    /// Row by row.
    cells: Vec<Cell>,
    /// Width of a cell along the time is two to this.
    time_shift: u32,
    /// Height of a cell is two to this.
    place_shift: u32,
}

/// The picture as data: rows of columns, from the first byte on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Picture {
    /// Width of a column, in nanoseconds if the trace has times, otherwise in accesses.
    pub column: u64,
    /// Height of a row in bytes.
    pub row_bytes: u64,
    /// Place of the lower edge of the first row in bytes.
    pub first_byte: u64,
    /// Number of reads by row and column; only from the first row with an access to the last one,
    /// and up to the last such column.
    pub reads: Vec<Vec<u32>>,
    /// Number of writes by row and column.
    pub writes: Vec<Vec<u32>>,
}

impl Density {
    /// An empty picture; both numbers are powers of two.
    pub fn new(columns: usize, rows: usize) -> Self {
        assert!(columns.is_power_of_two() && rows.is_power_of_two(), "cells are joined in pairs");
        Self { columns, rows, cells: vec![[0; 2]; columns * rows], time_shift: 0, place_shift: 9 }
    }

    /// Adds an access; `time` since the beginning, `offset` in bytes.
    ///
    /// Returns the column, and how often columns were joined for it.
    pub fn add(&mut self, time: u64, offset: u64, is_write: bool) -> (usize, u32) {
        let mut joined = 0;
        while time >> self.time_shift >= self.columns as u64 {
            self.join_columns();
            joined += 1;
        }
        while offset >> self.place_shift >= self.rows as u64 {
            self.join_rows();
        }
        let column = (time >> self.time_shift) as usize;
        let row = (offset >> self.place_shift) as usize;
        let cell = &mut self.cells[row * self.columns + column][usize::from(is_write)];
        *cell = cell.saturating_add(1);
        (column, joined)
    }

    fn join_columns(&mut self) {
        self.time_shift += 1;
        for row in self.cells.chunks_exact_mut(self.columns) {
            halved(row, |into, from| *into = sum(*into, from), [0; 2]);
        }
    }

    fn join_rows(&mut self) {
        self.place_shift += 1;
        let columns = self.columns;
        for row in 0..self.rows {
            for column in 0..columns {
                let below = row * 2 * columns + column;
                self.cells[row * columns + column] = if row * 2 < self.rows {
                    sum(self.cells[below], self.cells[below + columns])
                } else {
                    [0; 2]
                };
            }
        }
    }

    /// Width of a column.
    pub const fn column(&self) -> u64 {
        1 << self.time_shift
    }

    /// The picture, cut to the part with accesses.
    pub fn picture(&self) -> Picture {
        let is_used = |row: usize, column: usize| self.cells[row * self.columns + column] != [0; 2];
        let has_row = |row: &usize| (0..self.columns).any(|column| is_used(*row, column));
        let has_column = |column: &usize| (0..self.rows).any(|row| is_used(row, *column));
        let first = (0..self.rows).find(has_row).unwrap_or(0);
        let rows = (0..self.rows).rfind(has_row).map_or(0, |row| row + 1);
        let columns = (0..self.columns).rfind(has_column).map_or(0, |column| column + 1);
        let of = |direction: usize| {
            let cell =
                |row: usize, column: usize| self.cells[row * self.columns + column][direction];
            let line = |row: usize| (0..columns).map(|column| cell(row, column)).collect();
            (first..rows).map(line).collect()
        };
        Picture {
            column: self.column(),
            row_bytes: 1 << self.place_shift,
            first_byte: (first as u64) << self.place_shift,
            reads: of(0),
            writes: of(1),
        }
    }
}

fn sum(one: Cell, other: Cell) -> Cell {
    [one[0].saturating_add(other[0]), one[1].saturating_add(other[1])]
}

/// Joins a row in pairs: the first half has the sums, the second half is empty.
pub fn halved<T: Clone>(row: &mut [T], mut add: impl FnMut(&mut T, T), empty: T) {
    let length = row.len();
    for at in 0..length / 2 {
        let (mut left, right) = (row[at * 2].clone(), row[at * 2 + 1].clone());
        add(&mut left, right);
        row[at] = left;
    }
    row[length / 2..].fill(empty);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_is_in_one_cell_whatever_comes_later() {
        let mut density = Density::new(64, 16);
        for at in 0..1000_u64 {
            density.add(at * at, (at * 7919) % 5003 * 4096, at % 3 == 0);
        }
        let picture = density.picture();
        let sum = |cells: &[Vec<u32>]| cells.iter().flatten().sum::<u32>();
        assert_eq!((sum(&picture.reads), sum(&picture.writes)), (666, 334));
        assert!(picture.column * 64 > 999 * 999);
        assert!(picture.row_bytes * 16 > 5002 * 4096);
    }

    #[test]
    fn an_access_is_in_the_cell_of_its_time_and_place() {
        let mut density = Density::new(4, 4);
        density.add(0, 1 << 30, false);
        density.add(1000, (1 << 30) + (1 << 20), true);
        let picture = density.picture();
        let (column, row) = (1000 / picture.column, (1_u64 << 30) / picture.row_bytes);
        assert_eq!(picture.first_byte, row * picture.row_bytes);
        assert_eq!(picture.reads[0][0], 1);
        assert_eq!(picture.writes[0][column as usize], 1);
    }
}
