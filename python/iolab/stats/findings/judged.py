"""Kinds of findings that judging makes, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from iolab.stats.caveats import (
    about_cells,
    about_equal_levels,
    about_gaps,
    about_looks,
    about_metric,
    about_nested,
    about_position,
    about_promises,
    about_rejected,
    about_resumes,
    about_spread,
    about_trials,
    about_unknown_metrics,
    about_width,
    past_the_cache,
    past_the_generator,
)
from iolab.stats.caveats_of_simulation import about_surprises
from iolab.stats.caveats_of_time import about_time
from iolab.stats.caveats_of_values import about_values
from iolab.stats.environment import about_environment
from iolab.stats.finding import FindingKind
from iolab.stats.findings.sections import ESTIMATES, GENERATOR, MEMORY, OVER_TIME, STUDY
from iolab.stats.knob_changes import change_closing, change_findings
from iolab.stats.neighbours import about_neighbours
from iolab.stats.request_time import line_findings, request_time_closing
from iolab.stats.slices import about_slices
from iolab.stats.upper_bound import bound_findings, upper_bound_closing

JUDGED: Final[tuple[FindingKind, ...]] = (
    FindingKind(
        "failed_trials",
        STUDY,
        "trials failed; their rounds are left out of the comparisons they belong to",
        "the reason stands with each trial",
        weight="comparison",
        scope="trial",
        find=about_trials,
    ),
    FindingKind(
        "unfinished",
        STUDY,
        "planned trials were interrupted or not run",
        "`--resume`",
        scope="trial",
        find=about_trials,
    ),
    FindingKind(
        "few_rounds",
        STUDY,
        "the plan has fewer than five rounds, or the headline rests on fewer and its rounds "
        "are not all equal (of a simulation they may be)",
        "more `--rounds` or `--budget`, with `--resume`",
        weight="comparison",
        find=about_trials,
        is_of_rounds=True,
        is_of_plan=True,
    ),
    FindingKind(
        "page_cache",
        MEMORY,
        "50 % or more of the bytes asked for by reads (or writes) never reached the device "
        "during the timed region. The cell is labelled, and the sentence says that it "
        "compares memory",
        "`--direct`; or `--cache cold` for reads, `--fsync timed` for writes; or a "
        "`--memory-limit` below the file size",
        weight="meaning",
        scope="cell",
        find=about_cells,
        next_step=past_the_cache,
    ),
    FindingKind(
        "generator_bound",
        GENERATOR,
        "20 % or more of the workers' time was the harness itself (its cost per op is "
        "measured before each phase)",
        "larger records; or read the number as a lower bound",
        weight="meaning",
        scope="cell",
        find=about_cells,
        next_step=past_the_generator,
    ),
    FindingKind(
        "incomplete_rounds",
        STUDY,
        "trials were left out of the headline because their round misses a value",
        "resume, or see why trials failed",
        scope="trial",
        find=about_cells,
        is_of_rounds=True,
    ),
    FindingKind(
        "cells_excluded",
        STUDY,
        "levels do not meet in every cell: a level was never measured there (no record is "
        "larger than its file), or its trials failed. Ratios rest on the cells that both "
        "levels have, absolute values and the best set on those that all have",
        "drop levels that one side cannot do",
        scope="cell",
        find=about_gaps,
        is_of_rounds=True,
    ),
    FindingKind(
        "warm_up",
        OVER_TIME,
        "throughput rises in steps by more than 10 %, then stays",
        "longer trials, or begin them warm; the mean holds part of the warm-up",
        scope="trial",
        find=about_time,
    ),
    FindingKind(
        "decay",
        OVER_TIME,
        "it falls by more than 10 % and does not come back: a full cache, a device that "
        "collects garbage",
        "that is a finding; longer trials if the end is what matters",
        scope="trial",
        find=about_time,
    ),
    FindingKind(
        "cyclic",
        OVER_TIME,
        "it goes up and down with a period that repeats three times",
        "trials of many cycles",
        scope="trial",
        find=about_time,
    ),
    FindingKind(
        "never_steady",
        OVER_TIME,
        "none of these, and the last half is not steady by SNIA's rule (range 20 %, fitted "
        "change 10 %)",
        "longer trials, a quieter machine",
        scope="trial",
        find=about_time,
    ),
    FindingKind(
        "stalls",
        OVER_TIME,
        "a slice completed less than a tenth of the median slice (joined until that one "
        "completes five operations); where the median slice is a stall itself, less than a "
        "hundredth of the slice at the upper tenth. Quiet slices that fill more than a "
        "quarter of a trial and come back in cycles are its rhythm (`cyclic`), no stall. "
        "Below forty slices: two empty ones or more in a row in which twenty operations were "
        "to be expected. Every stall of any trial counts, also silence to the end of a "
        "stream's time; the longest are named with stream, level, when and trial",
        "averages hide stalls; look at throughput over time and at the longest latencies",
        scope="trial",
        find=about_time,
    ),
    FindingKind(
        "outliers",
        STUDY,
        "a trial lies more than five scaled median deviations from its like; it is named with "
        "its conditions",
        "look at what else happened in that trial",
        scope="trial",
        find=about_values,
        is_quoting=True,
    ),
    FindingKind(
        "two_modes",
        STUDY,
        "trials of one treatment fall into two groups further apart than the margin",
        "find what has two states: where files lie, which core, a cache",
        scope="treatment",
        find=about_values,
        is_quoting=True,
    ),
    FindingKind(
        "closed_loop",
        STUDY,
        "percentiles of a stream that waits for each answer hide waiting: longest, gap and "
        "time-weighted p99 are told",
        "judge waiting by these, or give the stream a rate",
        scope="cell",
        find=about_values,
        is_quoting=True,
    ),
    FindingKind(
        "environment_changed",
        STUDY,
        "trials ran on more than one kernel, processor or machine; rounds that span the "
        "change are named. `--resume` refuses that unless `--allow-other-machine` is given",
        "run it again on one machine if a round spans the change; else ratios are fair, "
        "absolute values are not",
        weight="comparison",
        find=about_environment,
    ),
    FindingKind(
        "conditions_changed",
        STUDY,
        "clock source, governor, turbo, SMT, huge pages or the kernel's command line changed "
        "between trials",
        "run it again on one machine if a round spans the change; else ratios are fair, "
        "absolute values are not",
        weight="comparison",
        find=about_environment,
    ),
    FindingKind(
        "planned_looks",
        STUDY,
        "the study looks before its end (`looks`): intervals are wider than 95 % until then",
        "nothing; do not look in between",
        severity="note",
        find=about_looks,
        is_in_methods=True,
    ),
    FindingKind(
        "seen_before",
        STUDY,
        "the study was resumed after its results were seen: its words have less error to spend",
        "nothing; each further look costs more rounds",
        severity="note",
        find=about_resumes,
    ),
    FindingKind(
        "stalls_in_slices",
        STUDY,
        'an operation outlasted its slice of a study in alternating slices (`design = "pairs"`); '
        "it was finished and charged to its level",
        "compare whole trials if stalls are the question",
        severity="note",
        find=about_slices,
    ),
    FindingKind(
        "carry_over",
        STUDY,
        "slices after one of the same level differ from those after another level's (p < .01)",
        "compare whole trials: slices are too short for what is compared",
        weight="comparison",
        find=about_slices,
    ),
    FindingKind(
        "adjacent_trials",
        STUDY,
        'the compared levels ran next to each other (`design = "adjacent"`): how far apart their '
        "timed regions were, what a trial makes before included",
        "noise that lives for seconds cancels in neighbours; smaller files bring them closer",
        severity="note",
        find=about_neighbours,
    ),
    FindingKind(
        "run_delay",
        STUDY,
        "whole trials, six rounds or more: the headline ratio with the workers' run delay (ready "
        "to run, and no processor) as covariate, if that interval is at least 5 % narrower and "
        "the levels do not differ in it (p < .05)",
        "it changes no word; processors that are free make the plain ratio as good",
        severity="note",
        find=about_neighbours,
    ),
    FindingKind(
        "wanted_width",
        STUDY,
        "the study ends by the width of its intervals (`width`): what the pilot asked for, "
        "and what was reached",
        "`--resume` with more rounds or budget if it is not reached",
        severity="note",
        find=about_width,
    ),
    FindingKind(
        "promises",
        STUDY,
        "levels of the compared factor differ in what survives a power cut",
        "choose among those that keep what you need",
        weight="meaning",
        find=about_promises,
    ),
    FindingKind(
        "equal_levels",
        STUDY,
        "two levels of the compared factor are one setting under two names",
        "any difference between them is noise; leave one out",
        weight="meaning",
        find=about_equal_levels,
    ),
    FindingKind(
        "equal_in_model",
        STUDY,
        "a simulation: levels did the same to the last digit in every round: what they decide "
        "differently never came up",
        "more requests in flight than the drive takes at once",
        scope="cell",
        find=about_surprises,
    ),
    FindingKind(
        "far_apart",
        STUDY,
        "a simulation: levels differ fivefold or more; what an operation takes on either side "
        "is said, and the mechanism: seeks, caches, idle time, merges",
        "read the order of the requests (`iolab sim trace`); do not expect as much of a real "
        "device",
        scope="cell",
        find=about_surprises,
    ),
    FindingKind(
        "metric_missing",
        STUDY,
        "the metric asked for is not known of both sides of a comparison; another one carries "
        "the verdict",
        "a p99 needs 1,000 operations, a p99.9 10,000: run longer, or choose another metric",
        weight="meaning",
        find=about_metric,
    ),
    FindingKind(
        "rounds_by_seed",
        STUDY,
        "a simulation: rounds differ only by seed, and where nothing depends on it an "
        "interval has no width",
        "an interval is what the seed can change, not the distance from a real device",
        severity="note",
        find=about_spread,
    ),
    FindingKind(
        "position_effect",
        STUDY,
        "results change from the first to the last place of a round (p < .01)",
        "levels are not favoured, for the order is random; let the machine warm up",
        find=about_position,
    ),
    FindingKind(
        "value_rejected",
        STUDY,
        "a value of zero has no ratio",
        "look at that trial",
        scope="trial",
        find=about_rejected,
    ),
    FindingKind(
        "nested_factor",
        STUDY,
        "a factor that only some treatments have was averaged over",
        "compare it in a study of its own",
        find=about_nested,
    ),
    FindingKind(
        "unknown_metric",
        STUDY,
        "a metric of another version was not judged",
        "use the version that recorded it",
        find=about_unknown_metrics,
    ),
    FindingKind(
        "change_midway",
        ESTIMATES,
        "a knob was changed while a workload ran: each stream after against before, with an "
        "interval over trials",
        "one trial is no experiment: run more rounds",
        severity="result",
        scope="knob",
        title="Changed while it ran (after / before, above 1 = more)",
        derive=change_findings,
        closing=change_closing,
        has_rows=True,
    ),
    FindingKind(
        "request_time",
        ESTIMATES,
        'record size is a factor: the line "time per request = a + b x record size" of every '
        "treatment, with intervals",
        "read what a request costs however small it is, and what each byte adds",
        severity="result",
        scope="treatment",
        title="Time per request = a + b x record size [95 % intervals]",
        derive=line_findings,
        closing=request_time_closing,
        has_rows=True,
        charts=("request_time",),
    ),
    FindingKind(
        "upper_bound",
        ESTIMATES,
        "a bound of a throughput is known: the load generator alone, the data sheet "
        "(`specification`), or memory",
        "a result near a bound measures that bound; one above it came from a cache",
        severity="result",
        scope="cell",
        title="Upper bounds",
        derive=bound_findings,
        closing=upper_bound_closing,
    ),
)
