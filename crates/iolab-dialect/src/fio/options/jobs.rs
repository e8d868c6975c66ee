//! Options of jobs: how many, when they begin and end, how fast they go.

use super::done_rows;
use crate::fio::row::{Kind, Row};
use crate::fio::value::TimeUnit::{S, Us};
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Choice, Count, Counts, Flag, Sizes, Text, Time, TimeRange};

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Jobs";
    "name": Text, "", T1, "name in results and in names of files", Done => |job, value| {
        job.name = value.text();
        if job.name.is_empty() {
            let remedy = "write name=X";
            return Err(crate::diagnostic::Problem::new("a job without a name", remedy));
        }
        Ok(())
    };
    "description": Text, "", T1, "a text that is shown with the results", Done => |job, value| {
        job.description = Some(value.text());
        Ok(())
    };
    "kb_base": Count(1000, 1024), "1024", T1, "what k means: 1024 or 1000", Done => |job, value| {
        if !matches!(value.number(), 1000 | 1024) {
            let what = format!("kb_base={}", value.number());
            return Err(crate::diagnostic::Problem::new(what, "write 1000 or 1024"));
        }
        job.kb_base = value.number();
        Ok(())
    };
    "unit_base": Count(0, 8), "0", T1, "8: rates in bytes", Differs("bytes") => |_, value| {
        match value.number() {
            0 | 8 => Ok(()),
            other => {
                let what = format!("unit_base={other} is not done");
                Err(crate::diagnostic::Problem::new(what, "leave it out: rates are in bytes"))
            }
        }
    };
    "numjobs": Count(1, 4096), "1", T1, "clones, each of which does all of it", Done =>
        |job, value| {
            job.clones = value.number();
            Ok(())
        };
    "thread": Flag, "0", T1, "clones are threads, not processes",
        Differs("one job that wants threads makes them all threads; a note says so") =>
        |job, value| {
            job.is_thread = value.flag();
            Ok(())
        };
    "group_reporting": Flag, "0", T1, "one result for the jobs of a group", Done => |job, value| {
        job.is_group_reported = value.flag();
        Ok(())
    };
    "new_group": Flag, "0", T1, "a new group of results begins", Done => |job, value| {
        job.begins_group = value.flag();
        Ok(())
    };
    "stonewall" | "wait_for_previous": Flag, "0", T1, "begins when all earlier jobs have ended",
        Done => |job, value| {
            job.is_stonewalled = value.flag();
            Ok(())
        };
    "exitall": Flag, "0", T2, "when one job ends all that run with it end, whichever says so",
        Done => |job, value| {
            job.ends_all = value.flag();
            Ok(())
        };
    "exit_what": Choice(&["group", "stonewall", "all"]), "group", T2,
        "who ends with the first job that ends, under exitall",
        Differs("all that run at once; all is refused where jobs follow behind a stonewall") =>
        |job, value| {
            job.ends_later_ones = value.word() == 2;
            Ok(())
        };
    "exec_prerun": Text, "", T2,
        "a command that runs before the job, its output in NAME.prerun.txt",
        Differs("only with --allow-exec; before the first job begins, once for each clone") =>
        |job, value| {
            job.command_before = Some(value.text());
            Ok(())
        };
    "exec_postrun": Text, "", T2,
        "a command that runs after the job, its output in NAME.postrun.txt",
        Differs("only with --allow-exec; after the last job has ended, once for each clone") =>
        |job, value| {
            job.command_after = Some(value.text());
            Ok(())
        };
    "exitall_on_error": Flag, "0", T2, "all jobs end with one that fails",
        Differs("all that run at once always do") => |job, value| {
            job.ends_on_error = value.flag();
            Ok(())
        };
    "cpuload": Count(0, 100), "0", T2, "percent of a CPU that ioengine=cpuio burns", Done =>
        |job, value| {
            job.cpu_percent = value.number();
            Ok(())
        };
    "cpuchunks": Time(Us), "50000", T2, "length of a burst of ioengine=cpuio", Done =>
        |job, value| {
            job.cpu_chunk_ns = value.number().max(1000);
            Ok(())
        };
    "cpumode": Choice(&["noop", "qsort"]), "noop", T2, "how ioengine=cpuio burns the CPU",
        Differs("by reading the clock, in either mode") => |_, _| Ok(());
    "ioscheduler": Text, "", T2, "I/O scheduler of the device, put back afterwards",
        Differs("the same for all jobs; in a study it is the factor --scheduler") =>
        |job, value| {
            job.scheduler = Some(value.text());
            Ok(())
        };
    "cgroup": Text, "", T2, "control group that the clones run in",
        Differs("a name that jobs share; the group itself is iolab's own, and removed afterwards. \
                 Limits of a group of that name do not count. Needs root, and jobs that are \
                 processes: one file and size, not posixaio or null; refused in simulation") =>
        |job, value| {
            job.control_group = Some(value.text()).filter(|name| !name.is_empty());
            Ok(())
        };
    "cgroup_weight": Count(100, 1000), "", T2,
        "weight of the control group; schedulers other than bfq honour none", Done =>
        |job, value| {
            job.control_group_weight = Some(value.number() as u32);
            Ok(())
        };
    "cgroup_nodelete": Flag, "0", T2, "the control group stays",
        Ignored("whatever iolab makes on the machine is removed") => |_, _| Ok(());
    "startdelay": TimeRange(S), "0", T1, "begins so much later",
        Differs("counted from the stonewall, not from the beginning of the run; clones of a range \
                 begin one after the other, evenly") =>
        |job, value| {
            job.delay_ns = value.range();
            Ok(())
        };
    "runtime" | "timeout": Time(S), "0", T1,
        "ends at the latest after so long", Done => |job, value| {
        job.runtime_ns = value.number();
        Ok(())
    };
    "time_based": Flag, "0", T1, "goes on until the runtime is over", Done => |job, value| {
        job.is_time_based = value.flag();
        Ok(())
    };
    "ramp_time": Time(S), "0", T1, "runs so long before it is measured",
        Done => |job, value| {
            job.ramp_ns = value.number();
            Ok(())
        };
    "rate": Sizes, "0", T1, "bytes per second of each direction",
        Done =>
        |job, value| {
            for (place, rate) in value.three().into_iter().enumerate() {
                job.rate[place] = rate.unwrap_or(job.rate[place]);
            }
            Ok(())
        };
    "rate_iops": Counts(i64::MAX), "0", T1, "transfers per second of each direction",
        Done => |job, value| {
            for (place, rate) in value.three().into_iter().enumerate() {
                job.rate_iops[place] = rate.unwrap_or(job.rate_iops[place]);
            }
            Ok(())
        };
    "rate_process": Choice(&["linear", "poisson"]), "linear", T2,
        "distances of starts under a rate",
        Done => |job, value| {
            job.is_poisson = value.word() == 1;
            Ok(())
        };
    "cpumask": Text, "", T2, "CPUs as a mask: 5 or 0x5 are CPU 0 and CPU 2",
        Differs("the same as a list in cpus_allowed") => |job, value| {
            job.cpus = Some(cpus_of_mask(&value.text())?);
            Ok(())
        };
    "stat_type": Choice(&["stat", "lstat", "statx"]), "stat", T2, "which call asks about a file",
        Ignored("a file is asked about by statx(2), and a link is not followed") => |_, _| Ok(());
    "thinktime": Time(Us), "0", T1, "pause after every thinktime_blocks transfers", Done =>
        |job, value| {
            job.think_ns = value.number();
            // fio counts it in 32 bits.
            if job.think_ns / 1000 > u64::from(u32::MAX) {
                let what = "a pause of more than 4294967295 us (71 minutes)".to_owned();
                return Err(crate::diagnostic::Problem::new(what, "write a shorter one"));
            }
            Ok(())
        };
    "thinktime_blocks": Count(1, i64::MAX), "1", T1, "transfers between two pauses",
        Differs("with several under way up to iodepth more or less") =>
        |job, value| {
            job.think_blocks = Some(value.number());
            Ok(())
        };
    "thinktime_blocks_type": Choice(&["complete", "issue"]), "complete", T2,
        "what is counted between two pauses: transfers that ended, or that began",
        Differs("issue only with one transfer under way, where both are the same") =>
        |job, value| {
            job.is_thought_at_issue = value.word() == 1;
            Ok(())
        };
    "thinktime_spin": Time(Us), "0", T2, "first part of a pause, which burns the CPU",
        Done => |job, value| {
            job.pauses.burning_ns = value.number();
            Ok(())
        };
    "thinktime_iotime": Time(S), "0", T2,
        "time between two pauses; beside thinktime_blocks whichever is over first",
        Done => |job, value| {
            job.pauses.every_ns = value.number();
            Ok(())
        };
    "rate_ignore_thinktime": Flag, "0", T2,
        "under a rate a pause is not made up for", Done => |job, value| {
            job.pauses.delays_schedule = value.flag();
            Ok(())
        };
    "nice": Count(-20, 19), "0", T2, "priority of the CPU, -20 first",
        Differs("of processes, not of threads; below 0 with the right to") => |job, value| {
            job.nice = value.signed();
            Ok(())
        };
    "prio": Count(0, 7), "", T2, "priority of I/O: 0 first, 7 last", Done => |job, value| {
        job.prio = Some(value.number());
        Ok(())
    };
    "prioclass": Count(0, 3), "", T2, "class of priority: 1 real time, 2 best effort, 3 idle",
        Done => |job, value| {
            job.prio_class = Some(value.number());
            Ok(())
        };
    "cpus_allowed": Text, "", T2, "CPUs that the clones may run on: 0-3,6",
        Done => |job, value| {
            job.cpus = Some(value.text());
            Ok(())
        };
    "cpus_allowed_policy": Choice(&["shared", "split"]), "shared", T2, "how CPUs are dealt",
        Done => |job, value| {
            job.is_cpu_split = value.word() == 1;
            Ok(())
        };
    "wait_for": Text, "", T1, "begins when all clones of an earlier job have ended",
        Differs("as a stonewall, if that job is the last before it") => |job, value| {
            job.wait_for = Some(value.text());
            Ok(())
        };
    "threads": Count(0, i64::MAX), "", T1, "clients of fio's built-in workload tiobench",
        Ignored("only profile=tiobench reads it; clones are numjobs=") => |_, _| Ok(());
    "clocksource": Choice(&["gettimeofday", "clock_gettime", "cpu"]), "", T1, "the clock",
        Ignored("the clock is the kernel's monotonic one") => |_, _| Ok(());
    "flow": Count(0, MAX_FLOW), "0", T2, "transfers in proportion to those of other jobs",
        Differs("in proportion to jobs that run at once, transfer by transfer") => |job, value| {
            job.flow = value.number();
            Ok(())
        };
    "flow_sleep": Time(Us), "0", T2, "pause of who is ahead",
        Ignored("who is ahead waits until the others have caught up") => |_, _| Ok(());
    "flow_watermark": Count(0, i64::MAX), "", T2, "slack of the proportion, in old versions",
        Ignored("fio itself ignores it") => |_, _| Ok(());
    "flow_id": Count(0, i64::MAX), "0", T2, "jobs of the same number share a proportion",
        Done => |job, value| {
            job.flow_id = value.number();
            Ok(())
        };
};

/// Largest share of a flow.
const MAX_FLOW: i64 = 1_000_000;

/// The list of CPUs that a mask means.
fn cpus_of_mask(text: &str) -> Result<String, crate::diagnostic::Problem> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let read = hex.map_or_else(|| text.parse::<u64>(), |digits| u64::from_str_radix(digits, 16));
    let mask = read.ok().filter(|mask| *mask > 0).ok_or_else(|| {
        let what = format!("cpumask={text} is no mask of CPUs");
        crate::diagnostic::Problem::new(what, "write a number as 0x3, or cpus_allowed=0-1")
    })?;
    let list = (0..64).filter(|cpu| mask >> cpu & 1 == 1).map(|cpu| cpu.to_string());
    Ok(list.collect::<Vec<_>>().join(","))
}
