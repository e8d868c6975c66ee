//! The summaries at the end of blkparse's text: per CPU and device, and per program (`-s`).
//!
//! Source of the layout: recorded output of blkparse 1.2.0 without a locale's separators. Counts
//! are those of blkparse, in KiB per direction with the odd bytes kept apart, and wrap as its do: a
//! request that is put back on another CPU than the one that issued it takes from that CPU's sum.
//! Difference: the longest waits of `-s` are not told (0 without `-t`, as in blkparse).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::event::{Action, Device, Event};

const READ: usize = 0;
const WRITE: usize = 1;
/// Programs that are counted; a trace that has more is damaged.
const PROGRAMS_MAX: usize = 1 << 14;
/// Devices that are counted, and CPUs of each.
const DEVICES_MAX: usize = 256;
const CPUS_MAX: usize = 1024;

/// A number of requests and their bytes.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    kib: u64,
    odd: u64,
}

impl Sum {
    fn add(&mut self, bytes: u32) {
        self.count += 1;
        self.kib = self.kib.wrapping_add(u64::from(bytes >> 10));
        self.odd = self.odd.wrapping_add(u64::from(bytes & 1023));
    }

    fn take_back(&mut self, bytes: u32) {
        self.kib = self.kib.wrapping_sub(u64::from(bytes >> 10));
        self.odd = self.odd.wrapping_sub(u64::from(bytes & 1023));
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.kib = self.kib.wrapping_add(other.kib);
        self.odd = self.odd.wrapping_add(other.odd);
    }

    const fn whole_kib(&self) -> u64 {
        self.kib.wrapping_add(self.odd >> 10)
    }
}

/// Counts of a group, by direction.
#[derive(Clone, Default)]
struct Counts {
    queued: [Sum; 2],
    issued: [Sum; 2],
    requeued: [u64; 2],
    completed: [Sum; 2],
    merged: [Sum; 2],
    pc_queued: [Sum; 2],
    pc_issued: [Sum; 2],
    pc_requeued: [u64; 2],
    pc_completed: [u64; 2],
    unplugs: u64,
    timer_unplugs: u64,
}

impl Counts {
    fn add(&mut self, event: &Event) {
        let direction = usize::from(event.is_write());
        let bytes = event.bytes;
        match (event.action, event.is_packet()) {
            (Action::Queued, false) => self.queued[direction].add(bytes),
            (Action::Issued, false) => self.issued[direction].add(bytes),
            (Action::Completed, false) => self.completed[direction].add(bytes),
            (Action::BackMerged | Action::FrontMerged, false) => self.merged[direction].add(bytes),
            (Action::Requeued, false) => {
                self.requeued[direction] += 1;
                self.issued[direction].take_back(bytes);
            }
            (Action::Unplugged, false) => self.unplugs += 1,
            (Action::TimerUnplugged, false) => self.timer_unplugs += 1,
            (Action::Queued, true) => self.pc_queued[direction].add(bytes),
            (Action::Issued, true) => self.pc_issued[direction].add(bytes),
            (Action::Completed, true) => self.pc_completed[direction] += 1,
            (Action::Requeued, true) => {
                self.pc_requeued[direction] += 1;
                self.pc_issued[direction].take_back(bytes);
            }
            _ => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        for direction in [READ, WRITE] {
            self.queued[direction].merge(&other.queued[direction]);
            self.issued[direction].merge(&other.issued[direction]);
            self.requeued[direction] += other.requeued[direction];
            self.completed[direction].merge(&other.completed[direction]);
            self.merged[direction].merge(&other.merged[direction]);
            self.pc_queued[direction].merge(&other.pc_queued[direction]);
            self.pc_issued[direction].merge(&other.pc_issued[direction]);
            self.pc_requeued[direction] += other.pc_requeued[direction];
            self.pc_completed[direction] += other.pc_completed[direction];
        }
        self.unplugs += other.unplugs;
        self.timer_unplugs += other.timer_unplugs;
    }

    fn has_packets(&self) -> bool {
        [READ, WRITE].into_iter().any(|direction| {
            self.pc_queued[direction].count > 0
                || self.pc_issued[direction].count > 0
                || self.pc_requeued[direction] > 0
                || self.pc_completed[direction] > 0
        })
    }

    /// Appends the block; `depth` is that of the device, if the group has one.
    fn push(&self, title: &str, depth: Option<[u64; 2]>, text: &mut String) {
        let _ = writeln!(text, "{title}");
        push_sums(text, ["Reads Queued:   ", "Writes Queued:   "], &self.queued);
        push_sums(text, ["Read Dispatches:", "Write Dispatches:"], &self.issued);
        push_counts(text, ["Reads Requeued: ", "Writes Requeued: "], self.requeued);
        push_sums(text, ["Reads Completed:", "Writes Completed:"], &self.completed);
        push_sums(text, ["Read Merges:    ", "Write Merges:    "], &self.merged);
        if let Some([read, write]) = depth {
            let _ =
                writeln!(text, " Read depth:      {read:8}{:8}\t Write depth:      {write:8}", ' ');
        }
        if self.has_packets() {
            push_sums(text, ["PC Reads Queued:", "PC Writes Queued:"], &self.pc_queued);
            push_sums(text, ["PC Read Disp.:  ", "PC Write Disp.:  "], &self.pc_issued);
            push_counts(text, ["PC Reads Req.:  ", "PC Writes Req.:  "], self.pc_requeued);
            push_counts(text, ["PC Reads Compl.:", "PC Writes Compl.:"], self.pc_completed);
        }
        let _ = writeln!(
            text,
            " IO unplugs:      {:8}{:8}\t Timer unplugs:    {:8}",
            self.unplugs, ' ', self.timer_unplugs
        );
    }
}

/// A number in eight columns, with its unit; above a million in thousands.
fn scaled(mut number: u64, is_kib: bool) -> String {
    const SUFFIXES: [&str; 5] = ["", "K", "M", "G", "P"];
    let mut step = usize::from(is_kib);
    while number > 1_000_000 && step < SUFFIXES.len() - 1 {
        step += 1;
        number /= 1000;
    }
    format!("{number:8}{}", SUFFIXES[step])
}

fn push_sums(text: &mut String, labels: [&str; 2], sums: &[Sum; 2]) {
    for (direction, label) in labels.into_iter().enumerate() {
        let sum = &sums[direction];
        let (count, kib) = (scaled(sum.count, false), scaled(sum.whole_kib(), true));
        let end = if direction == READ { '\t' } else { '\n' };
        let _ = write!(text, " {label} {count}, {kib}iB{end}");
    }
}

fn push_counts(text: &mut String, labels: [&str; 2], counts: [u64; 2]) {
    let [read, write] = counts.map(|count| scaled(count, false));
    let _ = writeln!(text, " {} {read}\t\t {} {write}", labels[READ], labels[WRITE]);
}

/// One device.
#[derive(Default)]
struct OfDevice {
    device: Device,
    cpus: Vec<OfCpu>,
    /// Index of the CPU of the event before.
    latest: usize,
    depth: [u64; 2],
    depth_max: [u64; 2],
    first_ns: Option<u64>,
    last_ns: u64,
    events: u64,
    skips: u64,
    skipped: u64,
}

#[derive(Default)]
struct OfCpu {
    cpu: u32,
    counts: Counts,
    last_sequence: Option<u32>,
}

/// Counts of everything that has been printed.
#[derive(Default)]
pub struct Totals {
    devices: Vec<OfDevice>,
    programs: BTreeMap<u32, Counts>,
    has_programs: bool,
}

impl Totals {
    /// Counts per device and CPU, and per program if asked for.
    pub fn new(has_programs: bool) -> Self {
        Self { has_programs, ..Self::default() }
    }

    /// Counts an event; `is_shown` if it passed the filter.
    pub fn add(&mut self, event: &Event, since_begin_ns: u64, is_shown: bool) {
        let is_unknown = event.action == Action::Message && event.cgroup.is_some();
        let is_other =
            matches!(event.action, Action::NoteProcess | Action::NoteTime | Action::Point);
        if is_unknown || is_other {
            return;
        }
        let Some(index) = self.index_of(event.device) else { return };
        let device = &mut self.devices[index];
        device.last_ns = since_begin_ns;
        if is_shown {
            device.first_ns.get_or_insert(since_begin_ns);
            device.events += 1;
            device.count_depth(event);
        }
        let Some(cpu) = device.cpu(event.cpu) else { return };
        if !is_shown {
            return;
        }
        cpu.counts.add(event);
        if event.action != Action::Message {
            let last = cpu.last_sequence.replace(event.sequence);
            let expected = last.map(|last| u64::from(last) + 1);
            if let Some(expected) = expected.filter(|e| *e < u64::from(event.sequence)) {
                device.skips += 1;
                device.skipped += u64::from(event.sequence) - expected;
            }
        }
        if self.has_programs && self.programs.len() < PROGRAMS_MAX && is_of_program(event) {
            self.programs.entry(event.pid).or_default().add(event);
        }
    }

    fn index_of(&mut self, device: Device) -> Option<usize> {
        if self.devices.first().is_some_and(|first| first.device == device) {
            return Some(0);
        }
        if let Some(at) = self.devices.iter().position(|known| known.device == device) {
            return Some(at);
        }
        if self.devices.len() >= DEVICES_MAX {
            return None;
        }
        self.devices.push(OfDevice { device, ..OfDevice::default() });
        Some(self.devices.len() - 1)
    }

    /// Appends the blocks of all programs, sorted by name and pid.
    pub fn push_programs(&self, names: &mut crate::names::Names, text: &mut String) {
        let mut sorted: Vec<(String, u32)> = Vec::new();
        for pid in self.programs.keys() {
            let name = names.of(*pid).unwrap_or(b"unknown");
            sorted.push((String::from_utf8_lossy(name).into_owned(), *pid));
        }
        sorted.sort();
        for (name, pid) in sorted {
            self.programs[&pid].push(&format!("{name} ({pid})"), None, text);
            for what in ["Allocation wait:", "Dispatch wait:  ", "Completion wait:"] {
                let _ = writeln!(text, " {what} {:8}{:8}\t {what}  {:8}", 0, ' ', 0);
            }
        }
        text.push('\n');
    }

    /// Appends the blocks of all devices; `names` tells by which names devices go, in order.
    pub fn push_devices(&self, names: &[(Device, String)], text: &mut String) {
        let place = |device: &OfDevice| names.iter().position(|(known, _)| *known == device.device);
        let mut order: Vec<&OfDevice> = self.devices.iter().collect();
        order.sort_by_key(|device| place(device).unwrap_or(usize::MAX));
        for (index, device) in order.into_iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            let fallback = device.device.to_string();
            device.push(place(device).map_or(&fallback, |at| &names[at].1), text);
        }
    }
}

/// Events that are counted for a program.
const fn is_of_program(event: &Event) -> bool {
    matches!(
        event.action,
        Action::Queued
            | Action::Issued
            | Action::Completed
            | Action::Requeued
            | Action::BackMerged
            | Action::FrontMerged
            | Action::Unplugged
            | Action::TimerUnplugged
    )
}

impl OfDevice {
    /// Counts of a CPU; `None` if there are too many.
    fn cpu(&mut self, number: u32) -> Option<&mut OfCpu> {
        if self.cpus.get(self.latest).is_none_or(|latest| latest.cpu != number) {
            let known = self.cpus.iter().position(|cpu| cpu.cpu == number);
            self.latest = known.unwrap_or(self.cpus.len());
            if known.is_none() {
                if self.cpus.len() == CPUS_MAX {
                    return None;
                }
                self.cpus.push(OfCpu { cpu: number, ..OfCpu::default() });
            }
        }
        self.cpus.get_mut(self.latest)
    }

    fn count_depth(&mut self, event: &Event) {
        let direction = usize::from(event.is_write());
        let depth = &mut self.depth[direction];
        match event.action {
            Action::Issued => {
                *depth += 1;
                self.depth_max[direction] = self.depth_max[direction].max(*depth);
            }
            Action::Completed | Action::Requeued => *depth = depth.saturating_sub(1),
            _ => {}
        }
    }

    fn push(&self, name: &str, text: &mut String) {
        let mut total = Counts::default();
        let mut cpus: Vec<&OfCpu> = self.cpus.iter().collect();
        cpus.sort_by_key(|cpu| cpu.cpu);
        for OfCpu { cpu, counts, .. } in cpus {
            total.merge(counts);
            counts.push(&format!("CPU{cpu} ({name}):"), Some(self.depth_max), text);
        }
        if self.cpus.len() > 1 {
            text.push('\n');
            total.push(&format!("Total ({name}):"), None, text);
        }
        let ms = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)) / 1_000_000;
        let [read, write] = total.completed.map(|sum| {
            sum.kib.wrapping_mul(1000).wrapping_add(sum.odd).checked_div(ms).unwrap_or(0)
        });
        let _ = writeln!(text, "\nThroughput (R/W): {read}KiB/s / {write}KiB/s");
        let _ = writeln!(text, "Events ({name}): {} entries", self.events);
        let all = self.events + self.skipped;
        let share = if all == 0 { 0.0 } else { 100.0 * self.skipped as f64 / all as f64 };
        let _ = writeln!(text, "Skips: {} forward ({} - {share:5.1}%)", self.skips, self.skipped);
    }
}
