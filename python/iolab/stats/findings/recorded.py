"""Kinds of findings that are recorded before judging: by plan, agent, simulator, store, import."""

from __future__ import annotations

from typing import Final

from iolab.stats.finding import FindingKind
from iolab.stats.findings.sections import FAILING, GENERATOR, MACHINE, MEMORY, NOISE, STUDY, TABLE

RECORDED: Final[tuple[FindingKind, ...]] = (
    FindingKind(
        "direct_on_tmpfs",
        MEMORY,
        "direct I/O on tmpfs: the kernel accepts it, it is memory all the same",
        "another directory",
        scope="trial",
    ),
    FindingKind(
        "cache_not_cold",
        MEMORY,
        "more than 1 % of the file's pages were still resident after they had been dropped",
        "another process maps the file? On tmpfs nothing can be dropped",
        scope="cell",
    ),
    FindingKind(
        "cache_not_warm",
        MEMORY,
        "less than 95 % resident after the file had been read once",
        "the file is larger than memory or than the limit; take it as a partly warm result",
        scope="cell",
    ),
    FindingKind(
        "cache_unknown",
        MEMORY,
        "neither cachestat nor mincore answered",
        "treat the number as neither cold nor warm",
        scope="cell",
    ),
    FindingKind(
        "loop_not_direct",
        MEMORY,
        "the image of the loop testbed goes through the host's page cache",
        "an `--image-dir` on ext4 or xfs",
    ),
    FindingKind(
        "cpu_bound",
        GENERATOR,
        "the processors were busy 90 % of the time available to the workers",
        "it measures processor and memory; a faster device would change nothing",
        scope="cell",
    ),
    FindingKind(
        "depth_not_reached",
        GENERATOR,
        "fewer than half of the operations asked for were in flight on average (service times "
        "over elapsed time, Little's law)",
        "buffered ops end when they are submitted: use `--direct`; else another stream is the "
        "bottleneck",
        scope="cell",
    ),
    FindingKind(
        "libaio_buffered",
        GENERATOR,
        "the engine `libaio` without direct I/O: its calls wait for each operation",
        "`--direct`, or `--engine io_uring`",
    ),
    FindingKind(
        "sqpoll_cpu",
        GENERATOR,
        "the engine `io_uring_sqpoll`: a kernel thread per worker keeps a CPU busy",
        "compare the CPU time, too; one CPU more per worker",
        severity="note",
    ),
    FindingKind(
        "depth_clamped",
        GENERATOR,
        "the engine cannot keep so many in flight",
        "`--engine io_uring`",
        scope="trial",
    ),
    FindingKind(
        "short_phase",
        GENERATOR,
        "the timed region lasted less than 20 ms",
        "a larger file",
        scope="cell",
    ),
    FindingKind(
        "verifying",
        GENERATOR,
        "reads were compared with what was written; throughput includes that work",
        "compare only with the same `verify` level",
        severity="note",
    ),
    FindingKind(
        "verify_failed",
        GENERATOR,
        "a block came back wrong: which, where, how",
        "do not trust the device before you know why",
        scope="trial",
    ),
    FindingKind(
        "knob_changed",
        MACHINE,
        "the kernel made another value of the one that was written (rounding to pages or ticks)",
        "judge by the value in effect; it is in the record",
        scope="knob",
    ),
    FindingKind(
        "knob_unverified",
        MACHINE,
        "a value was written and cannot be read back (a driver's depth needs debugfs)",
        "mount debugfs",
        scope="knob",
    ),
    FindingKind(
        "nr_requests_is_driver_depth",
        MACHINE,
        "`nr_requests` under `none` is the depth of the driver",
        "compare schedulers at one `driver_queue_depth`",
        scope="knob",
    ),
    FindingKind(
        "setting_without_effect",
        MACHINE,
        "a knob is held that changes nothing in the study, such as `read_ahead_kb` with direct I/O",
        "leave it out",
        severity="note",
        scope="knob",
    ),
    FindingKind(
        "factor_hardly_felt",
        MACHINE,
        "`wbt_lat_usec` where all files are direct: it holds back buffered writes; at most a "
        "file system's own writes feel it",
        "`--buffered`",
        scope="knob",
    ),
    FindingKind(
        "tunable_without_effect",
        MACHINE,
        "a tunable of one scheduler is varied together with other schedulers",
        "compare it under its own scheduler only",
        scope="knob",
    ),
    FindingKind(
        "unsafe_mount",
        MACHINE,
        "`barrier=0`, `nobarrier`: data is lost on power failure",
        "not where data matters",
    ),
    FindingKind(
        "nested_loop",
        MACHINE,
        "the image lies on another loop device",
        "an `--image-dir` on a disk",
    ),
    FindingKind(
        "no_block_device",
        MACHINE,
        "no block device was found under the directory",
        "a directory on a disk's file system; else there are no knobs and no device counters",
    ),
    FindingKind(
        "store_on_tested_device",
        MACHINE,
        "the results lie on the file system that is measured (they are written between trials "
        "only)",
        "`--out` on another disk",
    ),
    FindingKind(
        "watchdog_replaced",
        MACHINE,
        "the process that restores after a kill had died when the trial was to begin; another "
        "took its place",
        "nothing for the numbers; see who kills or stops processes",
        severity="note",
        scope="trial",
    ),
    FindingKind(
        "watchdog_stopped",
        MACHINE,
        "the process that restores after a kill had been stopped by a signal when the trial "
        "was to begin",
        "nothing for the numbers; see who kills or stops processes",
        severity="note",
        scope="trial",
    ),
    FindingKind(
        "no_digests",
        MACHINE,
        "an iolab before schema 3 stored the study: a changed bit in its file would not be noticed",
        "keep an archive of it",
    ),
    FindingKind(
        "digests_made_later",
        MACHINE,
        "such a study was continued; its digests are younger than its records",
        "nothing, if its disk was always sound",
        severity="note",
    ),
    FindingKind(
        "not_cleaned",
        MACHINE,
        "files of a trial could not be removed at once",
        "nothing; it is tried again at the end",
        severity="note",
        scope="trial",
    ),
    FindingKind(
        "cpu_steal",
        NOISE,
        "the host took more than 1 % of the CPU time during the trial",
        "a machine of its own; more rounds",
        scope="trial",
    ),
    FindingKind(
        "cpu_pressure",
        NOISE,
        "tasks waited for a CPU more than 10 % of the time during the trial",
        "stop other programs; fewer workers than CPUs",
        scope="trial",
    ),
    FindingKind(
        "io_pressure",
        NOISE,
        "somebody waited for I/O more than 20 % of the ten seconds before the trial. After "
        "the first trial that may be the study itself",
        "stop other programs that read or write",
        scope="trial",
    ),
    FindingKind(
        "load",
        NOISE,
        "load above twice the number of CPUs before the trial",
        "stop other programs",
        scope="trial",
    ),
    FindingKind(
        "stopped",
        NOISE,
        "the agent, or what it measures with, was stopped by a signal (SIGSTOP) for seconds "
        "during the trial",
        "do not trust that trial",
        scope="trial",
    ),
    FindingKind(
        "governor",
        NOISE,
        "the CPU governor is not `performance`",
        "`cpupower frequency-set -g performance`",
        scope="knob",
    ),
    FindingKind(
        "deep_idle",
        NOISE,
        "an idle state that takes more than 50 µs to leave is enabled; at depth 1 that is a "
        "device of its own",
        "`cpupower idle-set -D 50`",
        scope="knob",
    ),
    FindingKind(
        "many_treatments",
        STUDY,
        "more than 64 treatments in a round",
        "drop levels or split the study",
        scope="treatment",
    ),
    FindingKind(
        "cut_off",
        STUDY,
        "a stream's time was over before its operations were done: its time to completion is "
        "longer than shown",
        "let the workload run longer, or give it fewer operations",
        scope="cell",
    ),
    FindingKind(
        "rate_missed",
        STUDY,
        "more than 1 % of a rated stream's operations were due and not begun when its time "
        "was over; they count as late, and its response times hold the least that they waited",
        "throughput is what it reached",
        scope="cell",
    ),
    FindingKind(
        "names_cost_nothing",
        STUDY,
        "a simulated stack has no file system: making, finding and removing names takes no time",
        "compare what is read and written; for names use `--on loop:1g`",
        severity="note",
        scope="cell",
    ),
    FindingKind(
        "trace_lost_events",
        STUDY,
        "the kernel dropped block events while a trace was recorded: counts and stage times are "
        "those of the rest",
        "`--events issue-complete` records fewer; or trace a shorter trial",
        scope="trial",
    ),
    FindingKind(
        "trace_ends_early",
        STUDY,
        "a trace ends before its trial: the disk was full, or the recorder had to stop",
        "make room, or trace a shorter trial",
        scope="trial",
    ),
    FindingKind(
        "whole_device",
        STUDY,
        "a partition was to be traced: events are recorded of the whole device",
        "sectors tell the parts apart",
        severity="note",
        scope="trial",
    ),
    FindingKind(
        "nothing_stored",
        STUDY,
        "the study ran on `null:`: operations complete at once, and what was measured is iolab "
        "itself",
        "measure on `loop:`, `dir:` or `device:`",
    ),
    FindingKind(
        "records_grouped",
        STUDY,
        "one call moves several records (IOzone's tests `pwritev` and `preadv`: up to 16): "
        "operations per second and latencies are those of groups",
        "compare them with themselves, or throughput with others",
        severity="note",
        scope="cell",
    ),
    FindingKind(
        "fixed_order",
        STUDY,
        "rows of a command line of IOzone ran in the order of its table, in every round",
        "to choose a size, `iolab compare` sizes: their order is random",
        severity="note",
    ),
    FindingKind(
        "simulated",
        STUDY,
        "nothing was measured on a device: title of the model, number of its parameters per "
        "provenance",
        "`iolab sim profiles NAME` prints every number with its source",
        severity="note",
    ),
    FindingKind(
        "factor_without_effect",
        STUDY,
        "a varied factor changes nothing in a part of the study, for a reason that is named: "
        "direct I/O and `cache`, `memory_limit`, `read_ahead_kb`, `vm.dirty_*`; durability "
        "and flushes where only reading is timed; tests with calls of their own. Those cells "
        "are shown, not pooled, and in no family of tests; a factor that changes nothing "
        "anywhere is refused",
        "vary it where it matters",
        scope="knob",
    ),
    FindingKind(
        "foreign_file",
        MACHINE,
        "a trial was refused: a file of the name that it needs exists and was not made by iolab",
        "name another file, or allow it with `--overwrite`",
    ),
    FindingKind(
        "asked_in_vain",
        MACHINE,
        "an operation asked for something that its way to the data does not have; it ran without",
        "compare it with buffered operations only, or leave it out",
    ),
    FindingKind(
        "change_not_made",
        MACHINE,
        "a workload ended before a change in its course was due",
        "let it run longer, or change earlier",
        scope="knob",
    ),
    FindingKind(
        "content_not_checked",
        MACHINE,
        "a rehearsal without root: the device was not read, so that nothing is known of what "
        "lies on it",
        "rehearse as root",
        severity="note",
    ),
    FindingKind(
        "not_steady",
        MACHINE,
        "random writes were not steady after the last round of preconditioning",
        "read the rounds over time, or use longer rounds",
    ),
    FindingKind(
        "weight_without_effect",
        STUDY,
        "`cgroup_weight` is set where nothing honours weights: neither bfq nor io.cost",
        "`--scheduler bfq`",
        scope="knob",
    ),
    FindingKind(
        "faults_injected",
        FAILING,
        "the stack file makes commands fail, and some did",
        "nothing: that is what was asked",
        severity="note",
        scope="trial",
    ),
    FindingKind(
        "member_lost",
        FAILING,
        "a member of a volume failed a write and was dropped; the volume runs degraded",
        "look at the trial from that time on alone",
        scope="trial",
    ),
    FindingKind(
        "reads_repaired",
        FAILING,
        "other members of a volume answered reads that one could not",
        "such a read took the time of several",
        scope="trial",
    ),
    FindingKind(
        "imported",
        TABLE,
        "always: file, checksum and lines of the source",
        "each trial keeps the lines it came from",
        severity="note",
        is_quoting=True,
    ),
    FindingKind(
        "order_unknown",
        TABLE,
        "always: a table does not say in which order its runs were made",
        "levels are compared as independent samples; if all runs of a level came first, drift "
        "looks like a difference",
    ),
    FindingKind(
        "environment_unknown",
        TABLE,
        "always: machine, kernel, device and cache are known only as far as the table says",
        "see its source before applying an answer",
    ),
    FindingKind(
        "single_runs",
        TABLE,
        "some value is a single run",
        "measure each several times, in random order",
        scope="cell",
    ),
    FindingKind(
        "runs_counted",
        TABLE,
        "no column says the run; rows of the same thing were counted",
        "`--map run=COLUMN`",
        severity="note",
    ),
    FindingKind(
        "derived_rows",
        TABLE,
        "rows that were not printed but worked out",
        "they are left out",
        severity="note",
    ),
    FindingKind(
        "missing_values",
        TABLE,
        "rows without a value",
        "cells with fewer than half of the runs of the fullest are not pooled",
    ),
    FindingKind(
        "missing_unexplained",
        TABLE,
        "rows without a value and without a note",
        "write the reason into a column `notes`",
    ),
    FindingKind(
        "noted_values",
        TABLE,
        "values with a note of the source",
        "read the notes",
        severity="note",
    ),
    FindingKind(
        "mixed_average",
        TABLE,
        "an average over operations of different kinds",
        "judge each operation alone",
        bars_answer=True,
    ),
    FindingKind(
        "confounded",
        TABLE,
        "another factor changes whenever the compared one does",
        "measure every level with the same other factor",
        bars_answer=True,
    ),
    FindingKind(
        "not_judged",
        TABLE,
        "units of which it is not known whether more or less is better",
        "use known units, or names of metrics",
    ),
    FindingKind(
        "ratios_without_base",
        TABLE,
        "values are ratios without their base case",
        "import the absolute values",
    ),
    FindingKind(
        "printed_mean",
        TABLE,
        "a printed mean does not agree with the runs beside it",
        "find out which number is the misprint",
    ),
    FindingKind(
        "littles_law",
        TABLE,
        "mean queue, rate and time of an iostat table do not agree",
        "take the three as good to the difference that is named",
    ),
)
