//! Sectors that a write of one row reads and writes: a pure function.
//!
//! A row is cut into slices of its height: one for the whole unit, or one per column of
//! `granularity`, or, with a member lost, where the set of touched units changes. Each slice is
//! written in its own way; only touched ranges are transferred, and the parity range is the union
//! of the touched ranges in the slice. In a slice with units that are touched in different places
//! reconstruction reads what is missing of that union, so it can read less than the rule counted.
//!
//! Sources: Patterson, Gibson and Katz (SIGMOD 1988); Chen et al. (1994); Linux drivers/md/raid5.c
//! (behaviour: counts, tie); the Solstice `DiskSuite` and `VxVM` guides (half-stripe rule).

use super::geometry::{Geometry, Role};
use crate::volume::parameters::{Tie, WriteRule};
use crate::volume::ranges::Ranges;
use crate::volume::transfer::Transfers;

/// Rule of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Quantity that is compared.
    pub write_rule: WriteRule,
    /// Equal counts.
    pub tie: Tie,
    /// Height of the columns in sectors; divides the unit.
    pub granularity: u32,
    /// RAID 6 may read-modify-write.
    pub raid6_rmw: bool,
}

/// Method by which a slice of a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All data units are new: nothing is read.
    FullStripe,
    /// Old data and old parity are read.
    ReadModify,
    /// The data that stay are read.
    Reconstruct,
    /// A lost unit that stays is computed first: everything else is read.
    Recover,
    /// No parity left to update.
    DataOnly,
}

/// Sectors to read, then to write.
#[derive(Clone, Debug, Default)]
pub struct RowPlan {
    /// Before the first write.
    pub reads: Transfers,
    /// After the last read.
    pub writes: Transfers,
    /// Sectors that enter or leave XOR computations.
    pub xor_sectors: u64,
    /// Written sectors of parity.
    pub parity_sectors: u64,
    /// Sectors of data that have no disk to go to.
    pub lost_sectors: u64,
    /// The way of the first slice, which stands for the row in the counters.
    pub method: Option<Method>,
    breaks: Vec<u64>,
    union: Ranges,
}

/// A row to be written: which sectors of which data unit, and who is missing.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite<'a> {
    /// Arrangement.
    pub geometry: Geometry,
    /// Row.
    pub row: u64,
    /// Touched sectors of each data unit, from its start.
    pub touched: &'a [Ranges],
    /// Role of the member that is lost.
    pub lost: Option<Role>,
}

impl RowPlan {
    /// Replaces the plan by the one for `write`.
    pub fn make(&mut self, rule: Rule, write: RowWrite<'_>) {
        self.reads.clear();
        self.writes.clear();
        (self.xor_sectors, self.parity_sectors, self.lost_sectors) = (0, 0, 0);
        self.method = None;
        let mut breaks = core::mem::take(&mut self.breaks);
        write.slices(rule, &mut breaks);
        for slice in breaks.windows(2) {
            if let Some(method) = write.method(rule, slice[0], slice[1]) {
                self.method = self.method.or(Some(method));
                self.emit(method, write, slice[0], slice[1]);
            }
        }
        self.breaks = breaks;
    }

    /// Commands: reads and writes.
    pub const fn counts(&self) -> (usize, usize) {
        (self.reads.len(), self.writes.len())
    }

    fn emit(&mut self, method: Method, write: RowWrite<'_>, from: u64, to: u64) {
        let mut union = core::mem::take(&mut self.union);
        union.clear();
        for (a, b) in write.touched.iter().flat_map(|unit| unit.within(from, to)) {
            union.add(a, b);
        }
        for index in 0..write.geometry.data() {
            self.emit_data(method, write, index, &union);
        }
        for role in write.parities() {
            for (a, b) in union.iter() {
                let part = write.geometry.transfer(write.row, role, a, b);
                if method == Method::ReadModify {
                    self.reads.push(part);
                    self.xor_sectors += b - a;
                }
                self.writes.push(part);
                self.parity_sectors += b - a;
                self.xor_sectors += b - a;
            }
        }
        if method == Method::Recover {
            for (a, b) in union.iter() {
                self.reads.push(write.geometry.transfer(write.row, Role::P, a, b));
                self.xor_sectors += b - a;
            }
        }
        self.union = union;
    }

    fn emit_data(&mut self, method: Method, write: RowWrite<'_>, index: u16, union: &Ranges) {
        let unit = &write.touched[usize::from(index)];
        let role = Role::Data(index);
        let is_lost = write.lost == Some(role);
        for (a, b) in union.iter() {
            for (a, b) in unit.within(a, b) {
                let part = write.geometry.transfer(write.row, role, a, b);
                if is_lost {
                    self.lost_sectors += b - a;
                } else {
                    self.writes.push(part);
                }
                if method == Method::ReadModify || method == Method::Recover {
                    debug_assert!(!is_lost, "a lost unit cannot be read");
                    self.reads.push(part);
                    self.xor_sectors += b - a;
                }
                self.xor_sectors += if method == Method::DataOnly { 0 } else { b - a };
            }
            if matches!(method, Method::Reconstruct | Method::Recover) && !is_lost {
                for (a, b) in unit.missing(a, b) {
                    self.reads.push(write.geometry.transfer(write.row, role, a, b));
                    self.xor_sectors += b - a;
                }
            }
        }
    }
}

impl RowWrite<'_> {
    /// Parities that have a disk.
    fn parities(self) -> impl Iterator<Item = Role> {
        let all = [Role::P, Role::Q].into_iter().take(usize::from(self.geometry.parities));
        all.filter(move |&role| self.lost != Some(role))
    }

    /// Borders of slices, ascending, both ends of the unit included.
    fn slices(self, rule: Rule, breaks: &mut Vec<u64>) {
        let unit = u64::from(self.geometry.unit);
        breaks.clear();
        breaks.extend([0, unit]);
        let granularity = u64::from(rule.granularity);
        for (from, to) in self.touched.iter().flat_map(Ranges::iter) {
            if self.lost.is_some() {
                breaks.extend([from, to]);
            } else if granularity < unit {
                for border in [from, to] {
                    let column = border / granularity * granularity;
                    breaks.extend([column, border.next_multiple_of(granularity)]);
                }
            }
        }
        breaks.sort_unstable();
        breaks.dedup();
    }

    /// Method for the slice; nothing if it is not touched.
    fn method(self, rule: Rule, from: u64, to: u64) -> Option<Method> {
        let data = u64::from(self.geometry.data());
        let touched = self.touched.iter().filter(|unit| unit.touches(from, to)).count() as u64;
        let full = self.touched.iter().filter(|unit| unit.covers(from, to)).count() as u64;
        let parities = self.parities().count() as u64;
        if touched == 0 {
            return None;
        }
        if parities == 0 {
            return Some(Method::DataOnly);
        }
        if full == data {
            return Some(Method::FullStripe);
        }
        let is_rmw_allowed = rule.raid6_rmw || self.geometry.parities == 1;
        if let Some(Role::Data(lost)) = self.lost {
            return Some(match self.touched[usize::from(lost)].covers(from, to) {
                true => Method::Reconstruct,
                false if is_rmw_allowed => Method::ReadModify,
                false => Method::Recover,
            });
        }
        let is_rmw = is_rmw_allowed
            && match rule.write_rule {
                WriteRule::ReadCount => match (touched + parities).cmp(&(data - full)) {
                    core::cmp::Ordering::Less => true,
                    core::cmp::Ordering::Equal => rule.tie == Tie::ReadModify,
                    core::cmp::Ordering::Greater => false,
                },
                WriteRule::HalfStripe => 2 * self.touched_sectors(from, to) < data * (to - from),
            };
        Some(if is_rmw { Method::ReadModify } else { Method::Reconstruct })
    }

    fn touched_sectors(self, from: u64, to: u64) -> u64 {
        let parts = self.touched.iter().flat_map(|unit| unit.within(from, to));
        parts.map(|(a, b)| b - a).sum()
    }
}
