//! Options of the logs.

use core::num::NonZeroU64;

use super::done_rows;
use crate::diagnostic::Problem;
use crate::fio::iolog;
use crate::fio::row::{Kind, Row};
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Count, Flag, Prefix, Size, Text};

/// Longest window.
const MS_MAX: i64 = 1 << 40;

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Logs";
    "write_bw_log": Prefix, "", T1, "log of bandwidth, PREFIX_bw.N.log; alone: the job's name",
        Done => |job, value| {
            job.logs.bandwidth = Some(value.text());
            Ok(())
        };
    "write_lat_log": Prefix, "", T1, "logs of latencies, PREFIX_lat.N.log, clat and slat",
        Differs("with engines that wait for each transfer slat is empty and clat is lat, as in \
                 fio") =>
        |job, value| {
            job.logs.latency = Some(value.text());
            Ok(())
        };
    "write_iops_log": Prefix, "", T1, "log of transfers per second, PREFIX_iops.N.log",
        Done => |job, value| {
            job.logs.iops = Some(value.text());
            Ok(())
        };
    "write_hist_log": Prefix, "", T2, "log of histograms, PREFIX_clat_hist.N.log",
        Differs("needs log_hist_msec") => |job, value| {
            job.logs.histogram = Some(value.text());
            Ok(())
        };
    "log_avg_msec": Count(0, MS_MAX), "0", T1, "ms of a window of the logs; 0: every transfer",
        Differs("windows are of exactly this length") => |job, value| {
            job.logs.window_ms = value.number();
            Ok(())
        };
    "log_hist_msec": Count(0, MS_MAX), "0", T2, "ms of a window of the log of histograms",
        Differs("windows are of exactly this length") => |job, value| {
            job.logs.histogram_ms = value.number();
            Ok(())
        };
    "log_hist_coarseness": Count(0, 6), "0", T2, "2^N of fio's 1856 buckets are told together",
        Done => |job, value| {
            job.logs.coarseness = value.number() as u32;
            Ok(())
        };
    "log_max_value": Flag, "0", T1, "the largest latency of a window, not the mean",
        Differs("rates are always those of the window") => |job, value| {
            job.logs.is_maximum = value.flag();
            Ok(())
        };
    "log_offset": Flag, "0", T1, "a column of offsets", Done => |job, value| {
        job.logs.has_offsets = value.flag();
        Ok(())
    };
    "log_unix_epoch": Flag, "0", T1, "times since 1970", Done => |job, value| {
        job.logs.is_unix_time = value.flag();
        Ok(())
    };
    "per_job_logs": Flag, "1", T1, "a log for each clone; 0: the clones follow each other in one",
        Differs("0 writes the file anew, where fio adds to what is there") => |job, value| {
            job.logs.is_shared = !value.flag();
            Ok(())
        };
    "log_entries": Count(0, i64::MAX), "1024", T1, "first size of a log in memory",
        Ignored("logs take no memory") => |_, _| Ok(());
    "write_iolog": Text, "", T1, "a log of all transfers, trims and flushes, version 3",
        Differs("clones follow each other by time in one log; `sync_file_range` is called sync, \
                 because fio does not read it; no lines between passes where files are closed") =>
        |job, value| {
            job.logs.iolog = Some(value.text());
            Ok(())
        };
    "read_iolog": Text, "", T1,
        "a recording that is done again: a log, version 2 or 3, or one by blktrace",
        Differs("operations begin at their recorded times since the beginning; a recording of a \
                 device needs replay_redirect") => |job, value| {
            job.replay.file = Some(value.text());
            Ok(())
        };
    "replay_no_stall": Flag, "0", T1, "a log is done again without its pauses", Done =>
        |job, value| {
            job.replay.has_no_pauses = value.flag();
            Ok(())
        };
    "replay_time_scale": Count(1, 1_000_000), "100", T1,
        "percent of the recorded speed: 50 takes twice as long", Done => |job, value| {
            job.replay.time_percent = Some(value.number());
            Ok(())
        };
    "replay_scale": Count(1, i64::MAX), "1", T1,
        "number by which the places of a replay are divided", Done => |job, value| {
            job.replay.divisor = NonZeroU64::new(value.number());
            Ok(())
        };
    "replay_align": Size, "0", T1,
        "unit to whose multiples the places of a replay are rounded down, a power of 2", Done =>
        |job, value| {
            let unit = value.number();
            if unit > 0 && !unit.is_power_of_two() {
                let what = format!("replay_align={unit} is no power of 2");
                return Err(Problem::new(what, "use 512, 4k or another power of 2"));
            }
            job.replay.unit_bytes = NonZeroU64::new(unit);
            Ok(())
        };
    "replay_redirect": Text, "", T1, "the file that a log is done again on", Done =>
        |job, value| {
            job.replay.redirect = Some(value.text());
            Ok(())
        };
    "replay_skip": Text, "", T1, "directions of a log that are left out: read,write,trim,sync",
        Done => |job, value| {
            job.replay.skip = iolog::skipped(&value.text())?;
            Ok(())
        };
};
