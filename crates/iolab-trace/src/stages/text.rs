//! Stages and summary as tables for people.

use std::fmt::Write as _;

use super::calls::CallRow;
use super::groups::DIRECTIONS;
use super::report::{DeviceRow, GroupRow, Report, SeekRow, StageRow};

const HEAD: &str =
    "stage       count       min      mean       p50       p90       p99     p99.9       max";

/// A duration in at most nine columns, with its unit.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        // What would be rounded to a thousand has the next unit.
        ns if ns < 999.995e3 => format!("{:.2} us", ns / 1e3),
        ns if ns < 999.995e6 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// A number of bytes with its unit.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

fn push_stages(out: &mut String, rows: &[StageRow]) {
    let _ = writeln!(out, "  {HEAD}");
    for row in rows {
        let whole = |ns: u64| duration(ns as f64);
        let _ = writeln!(
            out,
            "  {:5} {:11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            row.stage,
            row.count,
            whole(row.min_ns),
            duration(row.mean_ns),
            whole(row.p50_ns),
            whole(row.p90_ns),
            whole(row.p99_ns),
            whole(row.p999_ns),
            whole(row.max_ns)
        );
    }
}

/// All stages, per device and per group.
pub fn stages(report: &Report) -> String {
    let mut out = String::new();
    push_faults(&mut out, report);
    if report.devices.len() != 1 {
        let _ = writeln!(out, "all devices");
        push_stages(&mut out, &report.stages);
    }
    for device in &report.devices {
        let _ =
            writeln!(out, "{}device {}", if out.is_empty() { "" } else { "\n" }, device.title());
        push_stages(&mut out, &device.stages);
        push_counts(&mut out, device);
        push_depths(&mut out, device, report.span_ns);
        push_places(&mut out, device);
        for group in &device.groups {
            let _ = writeln!(out, "\n device {}, {}", device.title(), group_line(group));
            push_stages(&mut out, &group.stages);
        }
    }
    push_layers(&mut out, report);
    out
}

/// A number and what it counts, as in `1 bio` and `2 bios`.
fn counted(number: u64, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

fn group_line(group: &GroupRow) -> String {
    let queued = match group.queued.count {
        0 => String::new(),
        count => format!("{} in, ", counted(count, "bio")),
    };
    format!(
        "{}: {queued}{} completed, {:.1} % of the bytes",
        group.name,
        bytes(group.completed.bytes),
        100.0 * group.bytes_share
    )
}

fn push_counts(out: &mut String, device: &DeviceRow) {
    let counts = &device.counts;
    let queued = DIRECTIONS.iter().zip(&counts.queued).filter(|(_, amount)| amount.count > 0);
    let queued: Vec<String> = queued
        .map(|(name, amount)| format!("{} {name} ({})", amount.count, bytes(amount.bytes)))
        .collect();
    let queued = if queued.is_empty() {
        "not known: the trace has no bio that enters the queue".to_owned()
    } else {
        queued.join(", ")
    };
    let _ = writeln!(out, "  queued     {queued}");
    let _ = writeln!(
        out,
        "  requests   {} issued ({}), {} completed ({}), {} requeued, {} with an error",
        counts.issued.count,
        bytes(counts.issued.bytes),
        counts.completed.count,
        bytes(counts.completed.bytes),
        counts.requeues,
        counts.errors
    );
    let _ = writeln!(
        out,
        "  merges     {} at the end of a request, {} at its front, {} of requests; {}",
        counts.back_merges.count,
        counts.front_merges.count,
        counts.joined,
        counted(counts.splits, "split")
    );
    push_flushes(out, device);
    if counts.plugs + counts.unplugs + counts.timer_unplugs > 0 {
        let _ = writeln!(
            out,
            "  plugs      {} set, {} taken away, {} by a timer; plugged for {}",
            counts.plugs,
            counts.unplugs,
            counts.timer_unplugs,
            duration(device.plugged_ns as f64)
        );
    }
    if counts.completed_unknown + counts.forgotten > 0 {
        let _ = writeln!(
            out,
            "  left out   {} of what began before the trace or was lost, {} given up",
            counted(counts.completed_unknown, "completion"),
            counted(counts.forgotten, "bio")
        );
    }
}

/// Flushes of the device's cache, which no share of a bio's time holds.
fn push_flushes(out: &mut String, device: &DeviceRow) {
    let counts = &device.counts;
    if counts.flushes + counts.flushes_issued == 0 {
        return;
    }
    let row = device.stages.iter().find(|row| row.stage == super::Stage::Flush);
    let time = row.map_or(String::new(), |row| {
        format!(
            ": p50 {}, p99 {}, at most {}, together {}",
            duration(row.p50_ns as f64),
            duration(row.p99_ns as f64),
            duration(row.max_ns as f64),
            duration(row.sum_ns as f64)
        )
    });
    let asked = counted(counts.flushes, "bio");
    if counts.flushes_issued == 0 {
        let _ =
            writeln!(out, "  flushes    {asked} asked for one; the trace has none of the device");
        return;
    }
    let _ = writeln!(
        out,
        "  flushes    {} of the device's cache ({asked} asked for one){time}",
        counts.flushes_issued
    );
}

/// Faults of the trace that keep its figures from being whole.
fn push_faults(out: &mut String, report: &Report) {
    if report.gaps > 0 {
        let _ = writeln!(
            out,
            "events were lost at {}: counts are too low, and what was under way there is left out",
            counted(report.gaps, "place")
        );
    }
    if report.times_back > 0 {
        let _ = writeln!(
            out,
            "the time goes back at {}: times across such a place are wrong",
            counted(report.times_back, "event")
        );
    }
}

fn push_depths(out: &mut String, device: &DeviceRow, span_ns: u64) {
    let (all, inside) = (&device.outstanding, &device.in_flight);
    let waiting = match all.max {
        0 => "in the queue not known".to_owned(),
        most => format!(
            "{:.2} bios in the mean, {most} at most (by Little's law {:.2})",
            all.mean, device.outstanding_by_little
        ),
    };
    let (mean, most) = (inside.mean, inside.max);
    let _ =
        writeln!(out, "  depth      {waiting}; in the device {mean:.2} requests, {most} at most");
    if device.counts.completed.count == 0 {
        let _ = writeln!(out, "  idle       not known: the trace has no end of a request");
        return;
    }
    let _ = writeln!(
        out,
        "  idle       {} of {} ({:.1} %)",
        duration(device.idle_ns as f64),
        duration(span_ns as f64),
        100.0 * device.idle_ns as f64 / span_ns.max(1) as f64
    );
}

fn push_places(out: &mut String, device: &DeviceRow) {
    let mut push = |name: &str, row: &SeekRow| {
        let mark = if row.is_mode_rough { "about " } else { "" };
        let _ = writeln!(
            out,
            "  {name} {:.1} % sequential; distance in sectors (512 bytes): mean {:.1}, median {}, \
             p90 {}, most often {} ({mark}{} of {})",
            100.0 * row.sequential_share,
            row.mean_sectors,
            row.p50_sectors,
            row.p90_sectors,
            row.mode_sectors,
            row.mode_count,
            row.count
        );
    };
    if let Some(row) = &device.queue_seeks {
        push("order in  ", row);
    }
    if let Some(row) = &device.issue_seeks {
        push("order out ", row);
    }
}

/// The most important figures of each device, and who used it.
pub fn summary(report: &Report) -> String {
    let mut out = String::new();
    let events = counted(report.events, "event");
    let _ = writeln!(out, "{events} in {}", duration(report.span_ns as f64));
    push_faults(&mut out, report);
    let seconds = report.span_ns.max(1) as f64 / 1e9;
    for device in &report.devices {
        let rates = match device.counts.completed.count {
            0 => "rates are not known: the trace has no end of a request".into(),
            _ if report.span_ns == 0 => {
                "rates are not known: all events of the trace have one time".into()
            }
            completed => format!(
                "{:.1} requests/s, {}/s",
                completed as f64 / seconds,
                bytes((device.counts.transferred_bytes() as f64 / seconds) as u64)
            ),
        };
        let _ = writeln!(out, "\ndevice {}: {rates}", device.title());
        push_shares(&mut out, device);
        push_counts(&mut out, device);
        push_depths(&mut out, device, report.span_ns);
        push_places(&mut out, device);
        // Whoever issued a flush alone has no bytes.
        let used = device.groups.iter().filter(|it| it.queued.count + it.completed.count > 0);
        for group in used {
            let row = |stage| group.stages.iter().find(move |row| row.stage == stage);
            let whole = row(super::Stage::Q2C).map(|row| ("whole time", row));
            let time = whole.or(row(super::Stage::D2C).map(|row| ("in the device", row)));
            let time = time.map_or(String::new(), |(name, row)| {
                format!(
                    "; {name} p50 {}, p99 {}",
                    duration(row.p50_ns as f64),
                    duration(row.p99_ns as f64)
                )
            });
            let _ = writeln!(out, "  process    {}{time}", group_line(group));
        }
    }
    push_layers(&mut out, report);
    out
}

/// System calls and events of other layers, if there are any.
fn push_layers(out: &mut String, report: &Report) {
    if !report.calls.is_empty() {
        let _ = writeln!(out, "\nsystem calls");
        let head = "  call                 count  errors      bytes      mean       p50       p99 \
                    \x20     max       sum";
        let _ = writeln!(out, "{head}");
        report.calls.iter().for_each(|row| push_call(out, row));
    }
    if !report.points.is_empty() {
        let _ = writeln!(out, "\nevents of other layers");
        for row in &report.points {
            let _ = writeln!(out, "  {:11} {}", row.count, row.name);
        }
    }
}

fn push_call(out: &mut String, row: &CallRow) {
    let whole = |ns: u64| duration(ns as f64);
    let _ = writeln!(
        out,
        "  {:15} {:>10} {:>7} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        row.name,
        row.count,
        row.errors,
        bytes(row.bytes),
        duration(row.mean_ns),
        whole(row.p50_ns),
        whole(row.p99_ns),
        whole(row.max_ns),
        whole(row.sum_ns)
    );
}

/// Shares of a bio's time: the stages that follow each other, as shares of the whole.
fn push_shares(out: &mut String, device: &DeviceRow) {
    use super::Stage::{D2C, G2I, I2D, M2D, Q2C, Q2D, Q2G, Q2M};
    let row = |stage| device.stages.iter().find(move |row| row.stage == stage);
    let told = |row: &StageRow| {
        format!(
            "p50 {}, p99 {}, at most {}",
            duration(row.p50_ns as f64),
            duration(row.p99_ns as f64),
            duration(row.max_ns as f64)
        )
    };
    let Some(whole) = row(Q2C) else {
        if let Some(inside) = row(D2C) {
            let _ = writeln!(out, "  in the device (D2C) {}; the wait is not known", told(inside));
        }
        return;
    };
    let share = |row: &StageRow| 100.0 * row.sum_ns as f64 / whole.sum_ns.max(1) as f64;
    let listed = |stages: &[super::Stage]| {
        let rows = stages.iter().filter_map(|stage| row(*stage));
        let parts: Vec<String> =
            rows.map(|row| format!("{} {:.1} %", row.stage, share(row))).collect();
        parts.join(", ")
    };
    let _ = writeln!(out, "  whole time {}", told(whole));
    if let (Some(before), Some(inside)) = (row(Q2D), row(D2C)) {
        let _ = writeln!(
            out,
            "  of it      {:.1} % before the device (Q2D), {:.1} % in it (D2C)",
            share(before),
            share(inside)
        );
        let parts = listed(&[Q2G, G2I, Q2M, I2D, M2D]);
        if !parts.is_empty() {
            let _ = writeln!(out, "  of Q2D     {parts} of the whole time");
        }
    } else {
        let parts = listed(&[Q2G, G2I, Q2M, I2D, M2D, Q2D, D2C]);
        if !parts.is_empty() {
            let _ = writeln!(out, "  of it      {parts}");
        }
    }
}
