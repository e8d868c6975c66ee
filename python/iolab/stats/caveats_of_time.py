"""Caveats of what trials did over time: warm-up, decay, cycles, no steady state, stalls.

A shape is a caveat where at least half of a level's trials (long enough to tell, and two of them)
have it: one odd trial is noise, a treatment that always decays is a finding. A stall is a caveat
wherever it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.stats.closer import TimeCourse
from iolab.stats.metrics.metric import format_ns
from iolab.store.rows import Caveat

TRIALS_MIN: Final = 2
_SHAPES: Final = (
    (
        "warm_up",
        "warmed up: throughput rose in steps before it stayed",
        "Part of each value is the warm-up; let trials run longer, or begin them warm.",
    ),
    (
        "decay",
        "decayed: throughput fell and did not come back",
        "A cache filled up or the device began to clean up: that is a finding; look at throughput"
        " over time, and let trials run longer if the end is what matters.",
    ),
    (
        "cyclic",
        "went up and down in cycles",
        "Let trials span many cycles, or each value depends on where it was cut.",
    ),
    (
        "never_steady",
        "never became steady",
        "Look at throughput over time; longer trials, or a quieter machine.",
    ),
)


def about_time(courses: Sequence[TimeCourse]) -> Iterator[tuple[Caveat, int]]:
    """Yield the caveats, with the number of trials (times operations) they were seen in."""
    for shape, what, hint in _SHAPES:
        places = [course for course in courses if _is_typical(course, shape)]
        if places:
            count = sum(course.shapes[shape] for course in places)
            yield Caveat(shape, f"trials {what} ({_named(places)}).", hint), count
    stalled = [course for course in courses if course.stalled_trials]
    if stalled:
        worst = max(stalled, key=lambda course: course.stall_ns_longest)
        longest = format_ns(worst.stall_ns_longest)
        message = (
            f"trials stalled: up to {longest} with next to no completion"
            f" ({worst.stall_share_max * 100:.0f} % of a trial at most; {_named([worst])})."
        )
        hint = "Averages hide stalls: look at throughput over time and at the longest latencies."
        yield Caveat("stalls", message, hint), sum(course.stalled_trials for course in stalled)


def _is_typical(course: TimeCourse, shape: str) -> bool:
    """Whether at least half of the trials that can tell have this shape."""
    known = course.n_trials - course.shapes.get("too_short", 0)
    seen = course.shapes.get(shape, 0)
    return seen >= TRIALS_MIN and 2 * seen >= known


def _named(courses: Sequence[TimeCourse]) -> str:
    """Name the first place and count the others."""
    first = courses[0]
    level = f" with {first.level}" if first.level else ""
    rest = f" and {len(courses) - 1} more" if len(courses) > 1 else ""
    return f"{first.operation} in {first.workload}{level}{rest}"
