//! The columns of a record of slices, which grow and are cut together.

use iolab_drive::pump::SliceCount;
use iolab_model::Ns;

use crate::protocol::PairsSlices;

/// Position of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of the unit.
    pub unit: u32,
    /// Index of the cell.
    pub cell: usize,
    /// Index of the tenant.
    pub tenant: usize,
    /// Index of the device.
    pub device: usize,
}

/// Adds what the workers of a tenant did in a slice.
pub fn add(slices: &mut PairsSlices, at: Place, did: &[SliceCount], began: Ns) {
    let sum = |of: fn(&SliceCount) -> u64| did.iter().map(of).sum::<u64>();
    let first = did.iter().map(|count| count.begin_ns).min().unwrap_or(0);
    slices.unit.push(at.unit);
    slices.cell.push(at.cell as u32);
    slices.tenant.push(at.tenant as u32);
    slices.place.push(at.device as u32);
    slices.begin_ns.push(first.saturating_sub(began.0));
    slices.length_ns.push(sum(|count| count.end_ns - count.begin_ns));
    slices.ops.push(sum(|count| count.ops));
    slices.bytes.push(sum(|count| count.bytes));
    slices.longest_ns.push(did.iter().map(|count| count.longest_ns).max().unwrap_or(0));
    slices.workers.push(did.len() as u32);
}

/// Forgets all but the first `count`.
pub fn truncate(slices: &mut PairsSlices, count: usize) {
    let short = [
        &mut slices.unit,
        &mut slices.cell,
        &mut slices.tenant,
        &mut slices.place,
        &mut slices.workers,
    ];
    for column in short {
        column.truncate(count);
    }
    let long = [
        &mut slices.begin_ns,
        &mut slices.length_ns,
        &mut slices.ops,
        &mut slices.bytes,
        &mut slices.longest_ns,
    ];
    for column in long {
        column.truncate(count);
    }
}
