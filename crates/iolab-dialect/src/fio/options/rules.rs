//! Options about what is measured while a job runs: steady rates, latencies, errors.

use super::done_rows;
use crate::diagnostic::Problem;
use crate::fio::row::{Kind, Row};
use crate::fio::rules::{Steady, ignored, longest};
use crate::fio::value::TimeUnit::{S, Us};
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Choice, Count, Counts, Flag, Floats, Sizes, Text, Time};

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Rules";
    "steadystate" | "ss": Text, "", T2,
        "ends when a rate is steady: iops, bw, iops_slope or bw_slope, and a limit, as iops:2%",
        Differs("each clone ends by its own rate; a rate that falls steeply is not steady") =>
        |job, value| {
            job.rules.steady = Some(Steady::read(&value.text())?);
            Ok(())
        };
    "steadystate_duration" | "ss_dur": Time(S), "0", T2,
        "seconds that the rate is judged over", Done => |job, value| {
            job.rules.steady_ns = value.number();
            Ok(())
        };
    "steadystate_ramp_time" | "ss_ramp": Time(S), "0", T2,
        "time before the first of them", Done => |job, value| {
            job.rules.steady_ramp_ns = value.number();
            Ok(())
        };
    "latency_target": Time(Us), "0", T2,
        "searches for the largest depth at which latencies are at most this",
        Differs("not beside a rate or ramp_time") => |job, value| {
            job.rules.target_ns = value.number();
            Ok(())
        };
    "latency_window": Time(Us), "0", T2, "how long a depth is tried", Done => |job, value| {
        job.rules.window_ns = value.number();
        Ok(())
    };
    "latency_percentile": Floats, "100", T2, "percent of transfers that must keep the target",
        Done => |job, value| {
            match value.floats().as_slice() {
                [percent] if *percent > 0.0 && *percent <= 100.0 => {
                    job.rules.percent = Some(*percent);
                    Ok(())
                }
                _ => {
                    let what = "latency_percentile is one number above 0, at most 100";
                    Err(Problem::new(what, "write latency_percentile=99"))
                }
            }
        };
    "latency_run": Flag, "0", T2, "the search goes on until something else ends the job", Done =>
        |job, value| {
            job.rules.goes_on = value.flag();
            Ok(())
        };
    "rate_min" | "ratemin": Sizes, "0", T2,
        "a job that moves fewer bytes per second in a cycle fails, after 2 s", Done =>
        |job, value| {
            let [reads, writes, _] = value.three();
            job.rules.least[0] = [reads.unwrap_or(0), writes.unwrap_or(0)];
            Ok(())
        };
    "rate_iops_min": Counts(i64::MAX), "0", T2,
        "a job that makes fewer transfers per second in a cycle fails, after 2 s", Done =>
        |job, value| {
            let [reads, writes, _] = value.three();
            job.rules.least[1] = [reads.unwrap_or(0), writes.unwrap_or(0)];
            Ok(())
        };
    "rate_cycle" | "ratecycle": Count(1, 1 << 32), "1000", T2,
        "ms over which the lowest rate is judged", Done => |job, value| {
            job.rules.cycle_ms = Some(value.number());
            Ok(())
        };
    "max_latency": Text, "0", T2,
        "a transfer that takes longer fails (us); one value, or reads,writes,trims",
        Done => |job, value| {
            job.rules.longest_ns = longest(&value.text(), job.kb_base)?;
            Ok(())
        };
    "continue_on_error":
        Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]), "none", T1,
        "which errors (EIO; of verify EILSEQ) end nothing",
        Differs("what failed is not counted as a transfer; wrong blocks still make the exit code 5")
        => |job, value| {
            job.rules.continues = match value.word() {
                1 => [true, false, false],
                2 => [false, true, false],
                3 => [true, true, false],
                4 => [false, false, true],
                5 | 7 => [true; 3],
                _ => [false; 3],
            };
            Ok(())
        };
    "ignore_error": Text, "", T2,
        "further errors that end nothing, of READS,WRITES,VERIFIES, several between colons",
        Differs("what failed is not counted as a transfer") => |job, value| {
            job.rules.ignored = ignored(&value.text())?;
            Ok(())
        };
    "error_dump": Flag, "0", T2, "each error is printed",
        Ignored("the results have their number and the first one") => |_, _| Ok(());
};
