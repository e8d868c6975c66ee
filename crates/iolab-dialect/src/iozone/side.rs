//! Files beside the report: offsets and latencies (-Q), histograms (-+z), times (-+T).
//!
//! Names, columns and units are those of files that version 3.489 wrote. What happened comes in
//! parts from the front end; each part answers with the name of a file and what is appended to it.
//! Left out: the original's other limits of the last bands of a histogram; here a band ends where
//! its label says.

use std::fmt::Write as _;

use iolab_workload::preset::IozoneTest;
use iolab_workload::preset::IozoneTest as T;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::plan::Plan;
use super::typed::Typed;

/// Choice of these files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneSideFiles")]
pub struct Side {
    /// -Q.
    pub has_latencies: bool,
    /// -+z.
    pub has_histograms: bool,
    /// -+T.
    pub has_stamps: bool,
    /// Tests whose single operations must be known.
    pub logged: Vec<IozoneTest>,
    /// Upper limits of the bands of a histogram; what is above the last one has a band of its own.
    pub limits_ns: Vec<u64>,
}

impl Side {
    /// Choice that the options make.
    pub fn of(typed: &Typed, tests: &[IozoneTest]) -> Self {
        let is_throughput = typed.is_throughput();
        let shown = &typed.shown;
        let has_latencies = shown.has_latencies;
        let has_histograms = shown.has_histograms && is_throughput;
        // Alone the original writes files of the first two tests only.
        let is_first = |test: &&IozoneTest| {
            is_throughput || matches!(test, T::Write | T::Rewrite | T::Read | T::Reread)
        };
        let is_logged = has_latencies || has_histograms;
        Self {
            has_latencies,
            has_histograms,
            has_stamps: shown.has_stamps && is_throughput,
            logged: tests.iter().filter(is_first).filter(|_| is_logged).copied().collect(),
            limits_ns: if has_histograms { limits_ns() } else { Vec::new() },
        }
    }
}

/// A child of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneChild")]
pub struct Who {
    /// The test.
    pub test: IozoneTest,
    /// Number of the child.
    pub child: usize,
    /// In the mix: it writes.
    pub is_writer: bool,
}

/// A part of what happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "IozoneSidePart")]
pub enum Part {
    /// Operations, in the order of their ends.
    Operations {
        /// Worker that did them.
        who: Who,
        /// True if none came before them.
        is_first: bool,
        /// Offset, time in ns, bytes.
        operations: Vec<(u64, u64, u64)>,
        /// Nothing follows: times in user space, in the kernel, and on the clock, in ns.
        times_ns: Option<(u64, u64, u64)>,
    },
    /// Number of operations in each band.
    Histogram {
        /// Worker that did them.
        who: Who,
        /// One more than there are limits.
        counts: Vec<u64>,
    },
    /// Times at which a test began and ended, as ctime(3) writes them.
    Stamps {
        /// Worker that ran it.
        who: Who,
        /// Its beginning.
        began: String,
        /// Its end.
        ended: String,
    },
}

/// Name of the file and what is appended to it, as JSON.
pub fn render(plan: &Plan, part: &Part) -> String {
    let is_alone = plan.show.throughput.is_none();
    let (name, text) = match part {
        Part::Operations { who, is_first, operations, times_ns } => {
            let code = code(*who);
            let name =
                if is_alone { code.to_owned() } else { format!("Child_{}_{code}", who.child) };
            let mut text = if *is_first { head(who.test, is_alone) } else { String::new() };
            rows(&mut text, operations);
            if let (Some(times), true) = (times_ns, is_alone) {
                text += &foot(*times);
            }
            (format!("{name}.dat"), text)
        }
        Part::Histogram { who, counts } => {
            (format!("Iozone_histogram_child_{}.txt", who.child), histogram(*who, counts))
        }
        Part::Stamps { who, began, ended } => {
            let (start, finish) = stamp(*who);
            let line = |what: String, when: &str| format!("{what:<25} {when}\n");
            let text = line(format!("{start} start:"), began)
                + &line(format!("{finish} finished:"), ended);
            (format!("Child_{}.log", who.child), text)
        }
    };
    json!({ "name": name, "text": text }).to_string()
}

/// Name of the file of a test.
fn code(who: Who) -> &'static str {
    match who.test {
        T::Write => "wol",
        T::Rewrite => "rwol",
        T::Read => "rol",
        T::Reread => "rrol",
        T::BackwardRead => "revol",
        T::StrideRead => "strol",
        T::RandomWrite => "randwol",
        T::Mix if who.is_writer => "randwol",
        T::RandomRead | T::Mix => "randrol",
        T::Pwrite | T::Repwrite => "pwol",
        T::Pread | T::Repread => "prol",
        T::Fwrite | T::Frewrite => "fwol",
        T::Fread | T::Freread => "frol",
        other => other.name(),
    }
}

/// The children's write test has a blank less, in the original.
fn head(test: IozoneTest, is_alone: bool) -> String {
    let gap = if test == T::Write && !is_alone { " " } else { "  " };
    format!("Offset in kBytes   Latency in microseconds{gap}Transfer size in bytes\n")
}

fn rows(text: &mut String, operations: &[(u64, u64, u64)]) {
    for (offset, ns, bytes) in operations {
        let micros = *ns as f64 / 1e3;
        let _ = writeln!(text, "{:>10} {micros:>10.0} {bytes:>10}", offset >> 10);
    }
}

fn foot((user, system, real): (u64, u64, u64)) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!(
        "\nSystem time {:>10.3} User time {:>10.3} Real {:>10.3}  (seconds)\n",
        seconds(system),
        seconds(user),
        seconds(real)
    )
}

/// The bands: labels, and the limits that they name.
const BANDS: &[&[(&str, u64)]] = &[
    &[("20us", 20), ("40us", 40), ("60us", 60), ("80us", 80), ("100us", 100)],
    &[("200us", 200), ("400us", 400), ("600us", 600), ("800us", 800), ("1ms", 1000)],
    &[("2ms", 2000), ("4ms", 4000), ("6ms", 6000), ("8ms", 8000), ("10ms", 10_000)],
    &[("12ms", 12_000), ("14ms", 14_000), ("16ms", 16_000), ("18ms", 18_000), ("20ms", 20_000)],
    &[("40ms", 40_000), ("60ms", 60_000), ("80ms", 80_000), ("100ms", 100_000)],
    &[
        ("200ms", 200_000),
        ("400ms", 400_000),
        ("600ms", 600_000),
        ("800ms", 800_000),
        ("1s", 1_000_000),
    ],
    &[
        ("2s", 2_000_000),
        ("4s", 4_000_000),
        ("6s", 6_000_000),
        ("8s", 8_000_000),
        ("10s", 10_000_000),
    ],
    &[
        ("20s", 20_000_000),
        ("40s", 40_000_000),
        ("60s", 60_000_000),
        ("80s", 80_000_000),
        ("120s", 120_000_000),
    ],
];
/// Label of the band above the last limit.
const REST: &str = "120+s";

fn limits_ns() -> Vec<u64> {
    BANDS.iter().flat_map(|band| band.iter().map(|(_, micros)| micros * 1000)).collect()
}

fn histogram(who: Who, counts: &[u64]) -> String {
    let mut text = format!("Child: {} Op: {}\n", who.child, operation(who));
    let mut counts = counts.iter();
    let rest: &[(&str, u64)] = &[(REST, 0)];
    for (number, band) in (1..).zip(BANDS.iter().copied().chain([rest])) {
        let _ = write!(text, "Band {number}:   ");
        for (label, _) in band {
            let count = counts.next().copied().unwrap_or(0);
            let _ = write!(text, "{label:>5}:{count:<8}");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Name of a test above a histogram.
fn operation(who: Who) -> &'static str {
    match who.test {
        T::Write => "write",
        T::Rewrite => "Rewrite",
        T::Read => "Read",
        T::Reread => "Reread",
        T::BackwardRead => "Read Backwards",
        T::StrideRead => "Stride Read",
        T::RandomWrite => "Random Write",
        T::Mix if who.is_writer => "Random Write",
        T::RandomRead | T::Mix => "Random Read",
        T::Pwrite | T::Repwrite => "Pwrite",
        T::Pread | T::Repread => "Pread",
        T::Fwrite | T::Frewrite => "Fwrite",
        T::Fread | T::Freread => "Fread",
        other => other.name(),
    }
}

/// Words for a begin and an end: two tests are spelt differently there.
fn stamp(who: Who) -> (&'static str, &'static str) {
    let same = |name| (name, name);
    match who.test {
        T::Write => same("Write test"),
        T::Rewrite => same("Rewrite test"),
        T::Read => same("Read test"),
        T::Reread => same("Reread test"),
        T::BackwardRead => same("Reverse read"),
        T::StrideRead => same("Stride test"),
        T::RandomWrite => same("Random write"),
        T::Mix if who.is_writer => same("Random write"),
        T::RandomRead | T::Mix => same("Random read"),
        T::Pwrite | T::Repwrite => same("Pwrite test"),
        T::Pread | T::Repread => same("Pread test"),
        T::Fwrite | T::Frewrite => ("fwrite test", "Fwrite test"),
        T::Fread | T::Freread => ("fread test", "Fread test"),
        other => same(other.name()),
    }
}
