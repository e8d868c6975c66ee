//! Output of fio: all forms of the results, one behind the other.

use super::command::Format;
use super::plan::Plan;
use super::result::{DeviceRequests, RowResult};
use super::{json, normal, terse};

/// Version as it stands in fio's results.
pub const VERSION: &str = concat!("iolab-", env!("CARGO_PKG_VERSION"));

/// Standard output before a run: what text for people begins with, whatever stands before it.
pub fn heads(plan: &Plan) -> String {
    let is_text = plan.show.formats.contains(&Format::Normal);
    if is_text { normal::heads(&plan.show) } else { String::new() }
}

/// Standard output after a run: terse results, then JSON, then text, in whatever order they were
/// asked for, and each once, as fio has it.
pub fn render(plan: &Plan, row: &RowResult) -> String {
    let show = &plan.show;
    let is_asked = |format| show.formats.contains(&format);
    let mut text = String::new();
    if is_asked(Format::Terse) {
        text += &terse::terse(show, row);
    }
    let has_bins = is_asked(Format::JsonPlus);
    if has_bins || is_asked(Format::Json) {
        text += &json::json(show, row, has_bins);
    }
    if is_asked(Format::Normal) {
        text += &normal::normal(show, row);
    }
    text
}

/// A device over all phases.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Time with at least one request.
    pub io_ticks_ns: u64,
    /// Merges and times of its requests; 0 where they were not counted.
    pub requests: DeviceRequests,
    /// Percent of the time.
    pub util: f64,
}

impl Disk {
    /// Sums of the times of its requests, in the milliseconds of fio: reads, writes, all.
    pub fn ticks_ms(&self) -> [u64; 3] {
        let DeviceRequests { read_ticks_ns, write_ticks_ns, in_queue_ns, .. } = self.requests;
        [read_ticks_ns, write_ticks_ns, in_queue_ns].map(|ns| ns / 1_000_000)
    }
}

/// All devices.
pub fn disks(row: &RowResult) -> Vec<Disk> {
    let mut found: Vec<Disk> = Vec::new();
    let elapsed: u64 = row.phases.iter().map(|phase| phase.elapsed_ns).sum();
    for device in row.phases.iter().flat_map(|phase| &phase.devices) {
        let index = found.iter().position(|disk| disk.name == device.name).unwrap_or_else(|| {
            found.push(Disk { name: device.name.clone(), ..Disk::default() });
            found.len() - 1
        });
        found[index].reads += device.reads;
        found[index].writes += device.writes;
        found[index].io_ticks_ns += device.io_ticks_ns;
        let (sum, one) = (&mut found[index].requests, device.requests.unwrap_or_default());
        sum.read_merges += one.read_merges;
        sum.write_merges += one.write_merges;
        sum.read_ticks_ns += one.read_ticks_ns;
        sum.write_ticks_ns += one.write_ticks_ns;
        sum.in_queue_ns += one.in_queue_ns;
    }
    for disk in &mut found {
        disk.util = (100.0 * disk.io_ticks_ns as f64 / elapsed.max(1) as f64).min(100.0);
    }
    found
}
