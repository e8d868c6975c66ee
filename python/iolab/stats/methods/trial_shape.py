"""Shape of one trial over time: flat, warming up, decaying, cyclic or never steady; and stalls.

Work per slice of time, without the last slice, which is cut off by the end. Five shapes:

- `flat`: one level, and the last half is steady by SNIA's two bounds;
- `warm_up`: the level rises in steps and then stays;
- `decay`: the level falls (a full write cache, a device that begins to collect garbage);
- `cyclic`: a period repeats at least three times;
- `never_steady`: anything else. Below `SLICES_MIN` slices it is `too_short` to say.

A large study has 100,000 of them: trials of equal length are looked at together (`trial_shapes`).
Left out: causes; shapes shorter than a slice.

Source: classes after Barrett et al. (2017), OOPSLA; warm-up by `mser`, levels by
`change_points`, bounds by `steady_state`, periods by `autocorrelation`, stalls by `stalls`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from iolab.frozen import frozen
from iolab.stats.methods.autocorrelation import are_cyclic
from iolab.stats.methods.change_points import change_points, may_change
from iolab.stats.methods.mser import truncate_warm_ups
from iolab.stats.methods.stalls import SLICES_MIN, Stalls, find_stalls, without_stalls
from iolab.stats.methods.steady_state import SteadyState, steady_states

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ShapeClass = Literal["flat", "warm_up", "decay", "cyclic", "never_steady", "too_short"]

POINTS_MAX: Final = 120
"""Longer series are joined to at most this many points before levels are looked for."""
PARTS: Final = 10
"""Equal parts of a trial that stand for the rounds of SNIA's rule."""
LEVEL_CHANGE_MIN: Final = 0.10
"""Smaller changes of level are within SNIA's bound for the slope."""
TOGETHER_MAX: Final = 1 << 17
"""Slices that are looked at together: bounds the memory that is needed."""


class Course(NamedTuple):
    """Stored values of one operation of one trial over time."""

    work: Sequence[int]
    """Bytes (or operations) per slice, in order."""
    ops: Sequence[int]
    """Operations completed per slice, as many."""
    interval_ns: int
    """Length of a slice."""


@frozen
class TrialShape:
    """Shape of one operation of one trial over time."""

    shape: ShapeClass
    warm_up_ns: int
    """Time that MSER-5 would drop at the beginning; 0 if it is too short or never settles."""
    change: float
    """Mean after the warm-up over the mean of everything."""
    steady: SteadyState | None
    """SNIA's rule over ten equal parts."""
    stalls: Stalls


def trial_shape(work: Sequence[int], ops: Sequence[int], interval_ns: int) -> TrialShape:
    """Describe one series; parameters as in `Course`."""
    return trial_shapes([Course(work, ops, interval_ns)])[0]


def trial_shapes(courses: Sequence[Course]) -> list[TrialShape]:
    """Describe many series, in the order given."""
    by_length: dict[tuple[int, int], list[int]] = {}
    for place, course in enumerate(courses):
        by_length.setdefault((len(course.work), len(course.ops)), []).append(place)
    found: dict[int, TrialShape] = {}
    for lengths, places in by_length.items():
        length = min(lengths)
        together = max(1, TOGETHER_MAX // max(1, length))
        for begin in range(0, len(places), together):
            part = places[begin : begin + together]
            same = [courses[place] for place in part]
            shapes = _of_equal_length(same) if length > SLICES_MIN else map(_too_short, same)
            found.update(zip(part, shapes, strict=True))
    return [found[place] for place in range(len(courses))]


def joined(values: Sequence[float], parts: int) -> list[float]:
    """Average neighbours, so that at most `parts` values of (almost) equal width are left."""
    if len(values) <= parts:
        return list(values)
    edges = _edges(len(values), parts)
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def _joined_rows(series: npt.NDArray[np.float64], parts: int) -> npt.NDArray[np.float64]:
    """Average neighbours in every row, as `joined` does."""
    import numpy as np

    if series.shape[1] <= parts:
        return series
    edges = np.asarray(_edges(series.shape[1], parts))
    return np.add.reduceat(series, edges[:-1], axis=1) / np.diff(edges)


def _edges(count: int, parts: int) -> list[int]:
    return [i * count // parts for i in range(parts + 1)]


def _too_short(course: Course) -> TrialShape:
    stalls = find_stalls(course.ops[:-1], course.interval_ns)
    return TrialShape("too_short", 0, 1.0, None, stalls)


def _of_equal_length(courses: Sequence[Course]) -> list[TrialShape]:
    """Describe series of one length, which is long enough to tell."""
    import numpy as np

    work = np.asarray([course.work for course in courses], dtype=np.float64)[:, :-1]
    totals = work.sum(axis=1)
    dropped, is_settled = truncate_warm_ups(work)
    cuts = np.where(is_settled, dropped, 0)
    rests = totals - np.where(np.arange(work.shape[1]) < cuts[:, None], work, 0.0).sum(axis=1)
    n = work.shape[1]
    changes = rests / (n - cuts) / np.where(totals > 0, totals / n, 1.0)
    steady = steady_states(_joined_rows(work, PARTS))
    shapes = _classes(_joined_rows(work, POINTS_MAX), steady)
    return [
        TrialShape(shape, cut * course.interval_ns, change, state, stalls)
        if total > 0
        else TrialShape("too_short", 0, 1.0, None, stalls)
        for course, total, cut, change, state, shape, stalls in zip(
            courses,
            totals.tolist(),
            cuts.tolist(),
            changes.tolist(),
            steady,
            shapes,
            _all_stalls(courses),
            strict=True,
        )
    ]


def _all_stalls(courses: Sequence[Course]) -> list[Stalls]:
    import numpy as np

    ops = np.asarray([course.ops for course in courses], dtype=np.float64)[:, :-1]
    return [
        Stalls(0, 0, 0.0, course.interval_ns)
        if is_without
        else find_stalls(course.ops[:-1], course.interval_ns)
        for course, is_without in zip(courses, without_stalls(ops).tolist(), strict=True)
    ]


def _classes(
    series: npt.NDArray[np.float64], steady: Sequence[SteadyState | None]
) -> list[ShapeClass]:
    """Classify every row; only few have levels that may differ, and these are searched."""
    cyclic = are_cyclic(series).tolist()
    moved = may_change(series, LEVEL_CHANGE_MIN).tolist()
    found: list[ShapeClass] = []
    for row, state in enumerate(steady):
        is_steady = state is not None and state.is_steady_at_end
        if cyclic[row]:
            found.append("cyclic")
        elif moved[row]:
            found.append(_by_levels(series[row].tolist(), is_steady=is_steady))
        else:
            found.append("flat" if is_steady else "never_steady")
    return found


def _by_levels(values: list[float], *, is_steady: bool) -> ShapeClass:
    places = change_points(values, smallest_change=LEVEL_CHANGE_MIN)
    edges = [0, *places, len(values)]
    levels = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    steps = [after - before for before, after in pairwise(levels)]
    if not steps:
        return "flat" if is_steady else "never_steady"
    if all(step < 0 for step in steps):
        return "decay"
    if all(step > 0 for step in steps):
        return "warm_up" if is_steady else "never_steady"
    # A dip or a peak that is over: what counts is whether the end is steady, and where it lies.
    if not is_steady or abs(levels[-1] - levels[0]) <= LEVEL_CHANGE_MIN * levels[0]:
        return "never_steady"
    return "warm_up" if levels[-1] > levels[0] else "decay"
