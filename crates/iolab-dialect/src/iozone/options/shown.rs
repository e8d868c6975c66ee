//! Options about reports, files beside them, checks and replays. Facts: `IOzone` 3.489.

use super::super::typed::Unit;
use super::{Row, flag, value};
use crate::diagnostic::Problem;
use crate::option::Standing::{Differs, Done};

const SHOWN: &str = "Reports and checks";

pub(super) const ROWS: &[Row] = &[
    flag("-R", SHOWN, "the Excel report as text", Done, |t, _| {
        t.shown.has_report = true;
        t.say("Excel chart generation enabled")
    }),
    value(
        ("-b", "FILE"),
        SHOWN,
        "the Excel report as a file: BIFF2, or .xlsx by its name",
        Differs("whether it can be written is known before the first test"),
        |t, g| {
            if g.value.is_empty() {
                return Err(Problem::new("-b '' is no file", "name one, for instance -b out.xls"));
            }
            t.shown.workbook = Some(g.value.to_owned());
            Ok(())
        },
    ),
    flag("-O", SHOWN, "results in operations per second", Done, |t, _| {
        t.shown.unit = Unit::Operations;
        t.say("OPS Mode. Output is in operations per second.")
    }),
    flag("-N", SHOWN, "results in microseconds per operation", Done, |t, _| {
        t.shown.unit = Unit::Microseconds;
        t.say("Microseconds/op Mode. Output is in microseconds per operation.")
    }),
    flag("-C", SHOWN, "throughput mode: what each child moved", Done, |t, _| {
        t.shown.has_children = true;
        Ok(())
    }),
    flag(
        "-+u",
        SHOWN,
        "CPU use",
        Differs("of the timed region; of child processes from their start to their end"),
        |t, _| {
            t.shown.has_cpu = true;
            t.say("CPU utilization Resolution = 0.000 seconds.")?;
            t.say("CPU utilization Excel chart enabled")
        },
    ),
    value(
        ("-V", "N"),
        SHOWN,
        "verify all that is read",
        Differs("blocks that know their file, place and age; N only tells runs apart"),
        |t, g| {
            let pattern: u32 = g.number("the number of a pattern")?;
            t.how.verify = Some(pattern);
            t.say(&format!("Verify Mode. Pattern {:x}", (pattern & 255) * 0x0101_0101))?;
            t.say("Performance measurements are invalid in this mode.")
        },
    ),
    flag("-+d", SHOWN, "verify, with data that differ from record to record", Done, |t, _| {
        t.how.verify = Some(0);
        t.say(">>> I/O Diagnostic mode enabled. <<<")?;
        t.say("Performance measurements are invalid in this mode.")
    }),
    flag(
        "-Q",
        SHOWN,
        "files of offset and latency of each operation, in the current directory",
        Differs("offsets of fwrite and fread are true ones, the original's are 0"),
        |t, _| {
            t.shown.has_latencies = true;
            t.say("Offset/latency files enabled.")
        },
    ),
    flag(
        "-+z",
        SHOWN,
        "throughput mode: files of latency histograms, in the current directory",
        Differs("a band ends where its label says; the original's last ones do not"),
        |t, _| {
            t.shown.has_histograms = true;
            t.say("Histogram summary enabled.")
        },
    ),
    flag(
        "-+T",
        SHOWN,
        "throughput mode: files of times, in the current directory",
        Done,
        |t, _| {
            t.shown.has_stamps = true;
            Ok(())
        },
    ),
    value(
        ("-X", "FILE"),
        SHOWN,
        "test 0 writes what FILE lists: offset, bytes and perhaps milliseconds before, a line each",
        Differs("a line that is none is an error; pauses are slept"),
        |t, g| {
            t.how.replays.write = Some(g.value.to_owned());
            t.say(&format!("Using write telemetry file \"{}\"", g.value))
        },
    ),
    value(
        ("-Y", "FILE"),
        SHOWN,
        "test 1 reads what FILE lists, as -X",
        Differs("a line that is none is an error; pauses are slept"),
        |t, g| {
            t.how.replays.read = Some(g.value.to_owned());
            t.say(&format!("Using read telemetry file \"{}\"", g.value))
        },
    ),
    flag("-h", SHOWN, "this text", Done, |t, _| {
        t.is_help = true;
        Ok(())
    }),
    flag("-v", SHOWN, "the version", Done, |t, _| {
        t.is_version = true;
        Ok(())
    }),
];
