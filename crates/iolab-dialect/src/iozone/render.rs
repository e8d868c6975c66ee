//! Output of `IOzone`: banner, table, throughput blocks. Layouts are those of version 3.489.
//!
//! Left out: its title and list of authors, in whose place stand our own.

use std::fmt::Write as _;

use iolab_workload::preset::IozoneTest as T;

use super::plan::{Plan, Row, Throughput};
use super::result::{Event, PhaseResult, RowResult};
use super::typed::Unit;
use super::{report, side};

/// Text that is printed at an event.
pub fn render(plan: &Plan, event: &Event) -> String {
    match event {
        Event::Begin { began, version, machine } => begin(plan, began, version, machine),
        Event::Row(result) => row(plan, result),
        Event::End { rows } => end(plan, rows),
        Event::Sheets { rows } => {
            serde_json::to_string(&report::sheets(plan, rows)).expect("sheets have only text keys")
        }
        Event::Side(part) => side::render(plan, part),
    }
}

fn begin(plan: &Plan, began: &str, version: &str, machine: &str) -> String {
    let show = &plan.show;
    let mut text = format!(
        "\tiolab iozone: file I/O as IOzone measures it\n\t        Version {version}\n\n\
         \tRun began: {began}\n\n"
    );
    for line in &show.banner {
        let _ = writeln!(text, "\t{line}");
    }
    if show.has_machine {
        let _ = writeln!(text, "\n\tMachine = {machine}");
    }
    let _ = writeln!(text, "\tCommand line used: {}", show.command);
    if show.unit == Unit::KiloBytes {
        text += "\tOutput is in kBytes/sec\n";
    }
    for line in &show.time_lines {
        let _ = writeln!(text, "\t{line}");
    }
    text += "\tTime Resolution = 0.000001 seconds.\n";
    let _ = writeln!(text, "\tProcessor cache size set to {} kBytes.", show.cache_kb);
    let _ = writeln!(text, "\tProcessor cache line size set to {} bytes.", show.cache_line);
    let _ = writeln!(text, "\tFile stride size set to {} * record size.", show.stride);
    for line in &show.last_lines {
        let _ = writeln!(text, "\t{line}");
    }
    match &show.throughput {
        Some(throughput) => text += &throughput_head(throughput),
        None => text += &head(plan),
    }
    text
}

fn throughput_head(throughput: &Throughput) -> String {
    let Throughput { child, range, children } = throughput;
    let mut text = String::new();
    if let Some((lower, upper)) = range {
        let _ = writeln!(text, "\tMin process = {lower} \n\tMax process = {upper} ");
    }
    let plural = match (child.as_str(), children) {
        (_, 1) => child.clone(),
        ("process", _) => "processes".to_owned(),
        (other, _) => format!("{other}s"),
    };
    text + &format!("\tThroughput test with {children} {plural}\n")
}

/// Names and widths of the columns in the two lines above the table.
fn head(plan: &Plan) -> String {
    let columns = plan.show.columns;
    let top = ["", "", "", "", "", "", "random", "random", "bkwd", "record", "stride"];
    let bottom = [
        "kB", "reclen", "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite",
        "read",
    ];
    let streams = ["fwrite", "frewrite", "fread", "freread"];
    let positioned = ["pwrite", "repwrite", "pread", "repread"];
    let mut lines = String::new();
    for names in [&top[..], &bottom[..]] {
        let is_bottom = names[0] == "kB";
        let shown = |name| if is_bottom { name } else { "" };
        let count = if columns.is_short { 6 } else { names.len() };
        let mut line = String::new();
        for (name, width) in names[..count].iter().zip([16, 8, 9, 9, 8, 10, 8, 10, 9, 10, 10]) {
            // The formats of the original: "%16s%8s%9s%9s%8s%10s%8s %9s%9s %9s %9s".
            let _ = write!(line, "{name:>width$}");
        }
        if !columns.is_short {
            for name in streams {
                let _ = write!(line, "{:>9}", if columns.has_streams { shown(name) } else { "" });
            }
        }
        if columns.has_positioned {
            for (name, width) in positioned.into_iter().zip([8, 9, 8, 10]) {
                let _ = write!(line, "{:>width$}", shown(name));
            }
        }
        if columns.has_vectored {
            for name in ["pwritev", "preadv"] {
                let _ = write!(line, "{:>9}", shown(name));
            }
        }
        lines += &line;
        lines.push('\n');
    }
    lines
}

/// Tests of a group of columns, the format of each value, and the blanks if none was selected.
type Group = (&'static [T], &'static [usize], usize);

/// "%9lld%9lld" and so on; " %9lld" is a width of 10.
const GROUPS: &[Group] = &[
    (&[T::Write, T::Rewrite], &[9, 9], 18),
    (&[T::Read, T::Reread], &[9, 9], 18),
    (&[T::RandomRead, T::RandomWrite], &[9, 9], 18),
    (&[T::BackwardRead], &[9], 9),
    (&[T::RecordRewrite], &[10], 10),
    (&[T::StrideRead], &[10], 10),
];
const STREAMS: &[Group] =
    &[(&[T::Fwrite, T::Frewrite], &[9, 9], 18), (&[T::Fread, T::Freread], &[9, 9], 17)];
const POSITIONED: &[Group] =
    &[(&[T::Pwrite, T::Repwrite], &[9, 9], 18), (&[T::Pread, T::Repread], &[8, 9], 18)];
const VECTORED: &[Group] = &[(&[T::Pwritev], &[9], 9), (&[T::Preadv], &[9], 9)];

fn row(plan: &Plan, result: &RowResult) -> String {
    let Some(planned) = plan.rows.get(result.index) else { return String::new() };
    if let Some(throughput) = &plan.show.throughput {
        return throughput_table(plan, throughput, planned, result);
    }
    let columns = plan.show.columns;
    let mut text = format!("{:>16}{:>8}", planned.file_kb, planned.record_kb);
    let groups = if columns.is_short { &GROUPS[..2] } else { GROUPS };
    let mut all: Vec<&Group> = groups.iter().collect();
    if columns.has_streams && !columns.is_short {
        all.extend(STREAMS);
    }
    if columns.has_positioned {
        all.extend(POSITIONED);
    }
    if columns.has_vectored {
        all.extend(VECTORED);
    }
    let mut measured = result.phases.iter();
    for (tests, widths, blanks) in all {
        if !planned.tests.contains(&tests[0]) {
            text += &" ".repeat(*blanks);
            continue;
        }
        for (test, &width) in tests.iter().zip(*widths) {
            if !planned.tests.contains(test) {
                let _ = write!(text, "{:>width$}", 0);
                continue;
            }
            let Some(phase) = measured.next() else {
                // The row ends where it failed.
                text.push('\n');
                return text;
            };
            let number = phase.cell(plan);
            if width == 10 {
                let _ = write!(text, " {number:>9}");
            } else {
                let _ = write!(text, "{number:>width$}");
            }
        }
    }
    if columns.is_fwrite_blank {
        text += &" ".repeat(STREAMS[0].2);
    }
    text.push('\n');
    text
}

/// Noun of a phase in the two first lines of its block, with the width of the number before it.
pub fn noun(test: T) -> (&'static str, usize) {
    match test {
        T::Write => ("initial writers", 2),
        T::Rewrite => ("rewriters", 2),
        T::Read => ("readers", 2),
        T::Reread => ("re-readers", 1),
        T::BackwardRead => ("reverse readers", 1),
        T::StrideRead => ("stride readers", 1),
        T::RandomRead => ("random readers", 1),
        T::Mix => ("mixed workload", 1),
        T::RandomWrite => ("random writers", 1),
        T::Pwrite => ("pwrite writers", 1),
        T::Pread => ("pread readers", 1),
        T::Fwrite => ("fwriters", 2),
        T::Fread => ("freaders", 2),
        other => (other.name(), 1),
    }
}

fn throughput_table(
    plan: &Plan,
    throughput: &Throughput,
    planned: &Row,
    result: &RowResult,
) -> String {
    let records = match planned.record_kb {
        0 => "telemetry controlled".to_owned(),
        kb => format!("{kb} kByte"),
    };
    let mut text = format!(
        "\tEach {} writes a {} kByte file in {records} records\n",
        throughput.child, planned.file_kb
    );
    for (index, phase) in result.phases.iter().enumerate() {
        text += &block(plan, throughput, phase, index == 0);
    }
    if !result.is_failed {
        text += "\n\n";
    }
    text
}

/// Min, max and mean of what the children did, as the original counts them.
struct Extremes {
    min: f64,
    max: f64,
    mean: f64,
    moved_min: f64,
}

impl Extremes {
    fn of(plan: &Plan, phase: &PhaseResult) -> Self {
        let children: Vec<(f32, f32)> =
            phase.workers.iter().map(|worker| phase.child(worker, plan)).collect();
        // The original takes a running minimum of 0 for "none yet".
        let least = |values: &mut dyn Iterator<Item = f32>| {
            let is_compat = plan.common.is_compat;
            values.fold(None, |least: Option<f32>, value| match least {
                Some(least) if (is_compat && least != 0.0 && value >= least) => Some(least),
                Some(least) if !is_compat && value >= least => Some(least),
                _ => Some(value),
            })
        };
        let rates = || children.iter().map(|(_, rate)| *rate);
        Self {
            min: f64::from(least(&mut rates()).unwrap_or(0.0)),
            max: f64::from(rates().fold(0.0, f32::max)),
            mean: phase.children_rate(plan) / children.len().max(1) as f64,
            moved_min: f64::from(least(&mut children.iter().map(|(m, _)| *m)).unwrap_or(0.0)),
        }
    }
}

fn block(plan: &Plan, throughput: &Throughput, phase: &PhaseResult, is_first: bool) -> String {
    let unit = if plan.show.unit == Unit::Operations { "ops" } else { "kB" };
    let (noun, width) = noun(phase.name);
    let (count, child) = (phase.workers.len(), &throughput.child);
    let is_stream = matches!(phase.name, T::Fwrite | T::Fread);
    let tabs = if phase.name == T::Read { "\t\t" } else { "\t" };
    let parent_tabs = if is_stream { "\t\t" } else { tabs };
    let moved: f64 = phase.workers.iter().map(|w| f64::from(phase.child(w, plan).0)).sum();
    // The original counts from the release of the last child until all of them have gone.
    let seen_ns = phase.parent_ns.unwrap_or(phase.elapsed_ns);
    let delay_ns = plan.show.start_delay_ns.saturating_mul(count.saturating_sub(1) as u64);
    let parent = moved / (seen_ns.saturating_sub(delay_ns).max(1) as f64 / 1e9);
    let children = phase.children_rate(plan);
    let Extremes { min, max, mean, moved_min } = Extremes::of(plan, phase);
    let seen = |who: &str, tabs: &str, rate: f64| {
        format!("\t{who} throughput for {count:>width$} {noun} {tabs}= {rate:>10.2} {unit}/sec\n")
    };
    let mut text = format!(
        "\n{}{}\
         \tMin throughput per {child} \t\t\t= {min:>10.2} {unit}/sec \n\
         \tMax throughput per {child} \t\t\t= {max:>10.2} {unit}/sec\n\
         \tAvg throughput per {child} \t\t\t= {mean:>10.2} {unit}/sec\n\
         \tMin xfer \t\t\t\t\t= {moved_min:>10.2} {unit}\n",
        seen("Children see", tabs, children),
        seen("Parent sees", parent_tabs, parent),
    );
    if plan.show.has_cpu {
        let wall = phase.workers.iter().map(|w| w.elapsed_ns).max().unwrap_or(0) as f64 / 1e9;
        let letter = if is_first { 'U' } else { 'u' };
        let _ = write!(
            text,
            "\tCPU {letter}tilization: Wall time {wall:>8.3}    CPU time {:>8.3}    \
             CPU utilization {:>6.2} %\n\n",
            phase.cpu_ns as f64 / 1e9,
            phase.cpu_percent()
        );
    }
    if plan.show.has_children {
        text += &each_child(plan, phase, unit);
    }
    text
}

fn each_child(plan: &Plan, phase: &PhaseResult, unit: &str) -> String {
    let mut text = String::new();
    let mut workers: Vec<_> = phase.workers.iter().collect();
    workers.sort_by_key(|worker| worker.child);
    for worker in workers {
        let (moved, rate) = phase.child(worker, plan);
        let _ = write!(
            text,
            "\tChild[{}] xfer count = {moved:>10.2} {unit}, Throughput = {rate:>10.2} {unit}/sec",
            worker.child
        );
        if plan.show.has_cpu {
            // Only the sum is known: each child gets the share of its time.
            let all_ns: u64 = phase.workers.iter().map(|w| w.elapsed_ns).sum();
            let share = worker.elapsed_ns as f64 / all_ns.max(1) as f64;
            let (wall, cpu) = (worker.elapsed_ns as f64 / 1e9, phase.cpu_ns as f64 / 1e9 * share);
            let percent = if wall > 0.0 { 100.0 * cpu / wall } else { 0.0 };
            let _ = write!(text, ", wall={wall:>6.3}, cpu={cpu:>6.3}, %={percent:>6.2}");
        }
        text.push('\n');
    }
    text
}

fn end(plan: &Plan, rows: &[RowResult]) -> String {
    let complete = "\niozone test complete.\n";
    match (&plan.show.throughput, plan.show.has_report) {
        (_, false) => complete.to_owned(),
        (Some(_), true) => report::throughput_text(plan, rows) + complete,
        (None, true) => complete.to_owned() + &report::table_text(plan, rows),
    }
}
