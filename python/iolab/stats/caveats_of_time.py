"""Caveats of what trials did over time: warm-up, decay, cycles, no steady state, stalls.

A shape is a caveat where at least half of a level's trials (long enough to tell, and two of them)
have it: one odd trial is noise, a treatment that always decays is a finding. A stall is a caveat
wherever it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.stats.finding import About, Evidence, Finding
from iolab.stats.ledger import Ledger
from iolab.stats.longest_latencies import trial_text
from iolab.stats.metrics.metric import format_ns
from iolab.stats.secondary_types import StalledTrial, TimeCourse
from iolab.stats.verdict import StudyVerdict

TRIALS_MIN: Final = 2
NAMED_MAX: Final = 3
"""Stalls that the caveat names; verdict.json has more of them."""
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
        "Look at throughput over time: longer trials may get steady; on a real machine look for"
        " other work.",
    ),
)


def about_time(_: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield the doubts, with the number of trials (times operations) they were seen in."""
    look = verdict.closer
    courses = look.time_courses
    for shape, what, hint in _SHAPES:
        places = [course for course in courses if _is_typical(course, shape)]
        if places:
            count = sum(course.shapes[shape] for course in places)
            yield Finding(
                shape,
                f"trials {what} ({_named(places)}).",
                hint,
                count=count,
                evidence=(Evidence("trials", count), Evidence("places", len(places))),
                strength="suggested",
            )
    stalled = [course for course in courses if course.stalled_trials]
    if stalled and look.stalled:
        total = sum(course.stalled_trials for course in stalled)
        rest = total - min(NAMED_MAX, len(look.stalled))
        named = "; ".join(stall_text(s) for s in look.stalled[:NAMED_MAX])
        more = f"; {rest} more" if rest > 0 else ""
        message = f"trials stalled, with next to no completion: {named}{more}."
        hint = "Averages hide stalls: look at throughput over time and at the longest latencies."
        longest = look.stalled[0]
        yield Finding(
            "stalls",
            message,
            hint,
            count=total,
            evidence=(
                Evidence("longest", longest.longest_ns, "ns"),
                Evidence("began", longest.began_ns, "ns"),
                Evidence("share of its time", longest.share, "share"),
            ),
            about=About(
                "trial",
                workload=longest.workload,
                operation=longest.operation,
                level=longest.level or "",
                trial_id=longest.trial_id,
            ),
        )


def stall_text(s: StalledTrial) -> str:
    """Name a stall: stream, level, how long, since when, and the trial."""
    where = " · ".join(part for part in (s.operation, s.cell_label) if part)
    level = f" with {s.level}" if s.level else ""
    return (
        f"{where}{level} for {format_ns(s.longest_ns)} from {s.began_ns / 1e9:.3g} s on"
        f" ({trial_text(s.round, s.trial_id)}; {s.share * 100:.0f} % of its time)"
    )


def _is_typical(course: TimeCourse, shape: str) -> bool:
    """Tell whether at least half of the trials that can tell have this shape."""
    known = course.n_trials - course.shapes.get("too_short", 0)
    seen = course.shapes.get(shape, 0)
    return seen >= TRIALS_MIN and 2 * seen >= known


def _named(courses: Sequence[TimeCourse]) -> str:
    """Name the first place and count the others."""
    first = courses[0]
    level = f" with {first.level}" if first.level else ""
    rest = f" and {len(courses) - 1} more" if len(courses) > 1 else ""
    return f"{first.operation} in {first.workload}{level}{rest}"
