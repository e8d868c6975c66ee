"""Distance of what was simulated from what the kernel did.

Left out: getting the facts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, Literal, TypeAlias, get_args

from iolab.frozen import frozen, replace
from iolab.kernel_checks.facts import TrialFacts, Window
from iolab.kernel_checks.rows import KnownReason, Measure

Word: TypeAlias = Literal["same", "within", "near", "known", "differs", "not told"]
"""Outcome of a comparison.

same : the simulation did what the kernel did in one of its runs, exactly.
within : as near to one of the kernel's runs as they are to each other.
near : within the limit of the measure.
known : none of these, for a reason that is told.
differs : none of these.
not told : one of both does not tell it.
"""
WORDS: Final[tuple[Word, ...]] = get_args(Word)
REQUESTS_NEAR: Final = 0.05
"""Share of the data that requests of other sizes may carry."""
JOURNAL_NEAR: Final = 0.25
"""Share by which bytes and commits of a journal may differ."""
EXTENTS_NEAR: Final = 1.5
"""Factor by which extents per file may differ."""
_NONE: Final = "none"


@frozen
class Compared:
    """One measure of one workload, on both sides, in words.

    Parameters
    ----------
    measure : what was compared.
    word : how close both are.
    kernel, simulated : what each did, for a table.
    how : where they part; empty if they do not.
    apart : how far: share of the bytes in other requests, or factor; infinite if it has no number.
    """

    measure: Measure
    word: Word
    kernel: str
    simulated: str
    how: str = ""
    apart: float = math.inf


def compare(
    measure: Measure,
    kernel: Sequence[TrialFacts],
    simulated: TrialFacts,
    known: KnownReason | None = None,
) -> Compared:
    """Compare what one simulation did with the kernel's runs of the same.

    Parameters
    ----------
    known : a reason for which it may differ, and how far.
    """
    found = _compared(measure, kernel, simulated)
    if found.word != "differs" or known is None or found.apart > known.most:
        return found
    how = f"{found.how}; {known.why}" if found.how else known.why
    return replace(found, word="known", how=how)


def _compared(measure: Measure, kernel: Sequence[TrialFacts], simulated: TrialFacts) -> Compared:
    if measure == "windows":
        return _windows(kernel, simulated)
    if measure == "requests":
        return _requests(kernel, simulated)
    if measure == "extents":
        return _extents(kernel, simulated)
    values = [one for one in (_amount(measure, facts) for facts in kernel) if one is not None]
    value = _amount(measure, simulated)
    if not values or value is None:
        mine = "not told" if value is None else str(value)
        return Compared(measure, "not told", "not told", mine)
    shown = str if measure == "commits" else _kib
    return _amounts(measure, values, value, shown)


def _amount(measure: Measure, facts: TrialFacts) -> int | None:
    if measure == "expired":
        return None if facts.requests is None else sum(facts.requests.values())
    return facts.journal if measure == "journal" else facts.commits


def _windows(kernel: Sequence[TrialFacts], simulated: TrialFacts) -> Compared:
    """Reads of each process are its own: whose comes first is chance.

    Where a file's extents lie is chance, too (of the process's number, in ext4): as many steps to
    another place as both files have borders of extents may differ.
    """
    runs = [sorted(facts.windows) for facts in kernel]
    mine = sorted(simulated.windows)
    kernel_told = " or ".join(dict.fromkeys(map(_count, runs)))
    if not mine or not all(runs):
        return _nothing("windows", kernel_told or _NONE, _count(mine) if mine else _NONE)
    borders = max(_borders(facts) for facts in kernel) + _borders(simulated)
    if any(_are_alike(run, mine, borders) for run in runs):
        return Compared("windows", "same", kernel_told, _count(mine))
    how = _first_difference(runs[0], mine)
    # Streams that race may each have been read so, though not all in the same run.
    seen = [stream for run in runs for stream in run]
    is_within = len(runs[0]) == len(mine) and all(
        any(_is_alike(other, stream, borders) for other in seen) for stream in mine
    )
    return Compared("windows", "within" if is_within else "differs", kernel_told, _count(mine), how)


def _borders(facts: TrialFacts) -> int:
    return 0 if facts.extents is None else max(0, math.ceil(facts.extents) - 1)


def _are_alike(
    one: Sequence[Sequence[Window]], other: Sequence[Sequence[Window]], borders: int
) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(_is_alike(a, b, borders) for a, b in pairs)


def _is_alike(one: Sequence[Window], other: Sequence[Window], borders: int) -> bool:
    """Tell whether two processes read the same lengths, at the same distances from each other."""
    if [length for _, length in one] != [length for _, length in other]:
        return False
    steps = zip(_steps(one), _steps(other), strict=True)
    return sum(a != b for a, b in steps) <= borders


def _steps(stream: Sequence[Window]) -> list[int]:
    """From the end of each read to the beginning of the next one."""
    return [to - (at + length) for (at, length), (to, _) in pairwise(stream)]


def _count(streams: Sequence[Sequence[Window]]) -> str:
    reads = sum(map(len, streams))
    by = f" by {len(streams)} processes" if len(streams) > 1 else ""
    return f"{reads} reads{by}"


def _first_difference(kernel: Sequence[Sequence[Window]], mine: Sequence[Sequence[Window]]) -> str:
    if len(kernel) != len(mine):
        return f"{len(kernel)} processes read, simulated {len(mine)}"
    for theirs, ours in zip(kernel, mine, strict=True):
        if theirs == ours:
            continue
        pairs = zip(theirs, ours, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(theirs), len(ours)))
        return f"read {at + 1}: {_window(theirs, at)}, simulated {_window(ours, at)}"
    return ""


def _window(stream: Sequence[Window], at: int) -> str:
    if at >= len(stream):
        return _NONE
    place, length = stream[at]
    return f"{_kib(length)} at {_kib(place)}"


def _nothing(measure: Measure, kernel: str, simulated: str) -> Compared:
    """Outcome where a side did nothing of what its workload is for."""
    return Compared(measure, "differs", kernel, simulated, "nothing was traced of it")


def _requests(kernel: Sequence[TrialFacts], simulated: TrialFacts) -> Compared:
    runs = [facts.requests for facts in kernel if facts.requests is not None]
    mine = simulated.requests or {}
    if not runs:
        return Compared("requests", "not told", "not told", _sizes(mine))
    kernel_told, told = _sizes(_sum(runs)), _sizes(mine)
    if not mine or not all(runs):
        return _nothing("requests", kernel_told, told)
    if mine in runs:
        return Compared("requests", "same", kernel_told, told)
    apart = min(_distance(run, mine) for run in runs)
    own, how = 0.0, f"{apart:.1%} of the data in other sizes than in the nearest run"
    if len(runs) > 1:
        # From each of its runs to the one that is most like it, as from the simulation to one.
        others = [runs[:at] + runs[at + 1 :] for at in range(len(runs))]
        own = median(
            min(_distance(run, other) for other in rest)
            for run, rest in zip(runs, others, strict=True)
        )
        how += f"; {own:.1%} between the kernel's own runs"
    word: Word = "within" if apart <= own else "near" if apart <= REQUESTS_NEAR else "differs"
    return Compared("requests", word, kernel_told, told, how, apart)


def _sum(runs: Sequence[Mapping[int, int]]) -> Mapping[int, int]:
    total = Counter[int]()
    for run in runs:
        total.update(run)
    return total


def _sizes(requests: Mapping[int, int]) -> str:
    """The two sizes that carry most of the data, with their shares."""
    total = sum(requests.values())
    if not total:
        return _NONE
    most = sorted(requests.items(), key=lambda item: (-item[1], item[0]))[:2]
    return ", ".join(f"{_share(n_bytes / total)} in {_kib(size)}" for size, n_bytes in most)


def _share(share: float) -> str:
    return "<1%" if share < 0.005 else f"{share:.0%}"


def _distance(one: Mapping[int, int], other: Mapping[int, int]) -> float:
    """Share of the bytes that are missing, or in requests of another size."""
    totals = sum(one.values()), sum(other.values())
    sizes = one.keys() | other.keys()
    moved = sum(abs(one.get(size, 0) - other.get(size, 0)) for size in sizes)
    return (moved + abs(totals[0] - totals[1])) / 2 / max(totals)


def _extents(kernel: Sequence[TrialFacts], simulated: TrialFacts) -> Compared:
    values = [facts.extents for facts in kernel if facts.extents is not None]
    mine = simulated.extents
    told = "not told" if mine is None else f"{mine:.4g}"
    if not values or mine is None:
        kernel_told = _range([f"{value:.4g}" for value in sorted(values)]) or "not told"
        return Compared("extents", "not told", kernel_told, told)
    low, high = min(values), max(values)
    kernel_told = _range([f"{low:.4g}", f"{high:.4g}"])
    if mine in values:
        return Compared("extents", "same", kernel_told, told)
    apart = _factor(low, high, mine)
    word: Word = "within" if apart <= 1 else "near" if apart <= EXTENTS_NEAR else "differs"
    return Compared("extents", word, kernel_told, told, apart=apart)


def _factor(low: float, high: float, mine: float) -> float:
    """Factor by which a value lies outside a range; at most 1 inside it."""
    if not low or not mine:
        return 1.0 if low <= mine <= high else math.inf
    return max(low / mine, mine / high)


def _amounts(
    measure: Measure, values: Sequence[int], mine: int, shown: Callable[[int], str]
) -> Compared:
    low, high = min(values), max(values)
    kernel_told = _range([shown(low), shown(high)])
    told = shown(mine)
    if mine in values:
        return Compared(measure, "same", kernel_told, told)
    is_near = low * (1 - JOURNAL_NEAR) <= mine <= high * (1 + JOURNAL_NEAR)
    word: Word = "within" if low <= mine <= high else "near" if is_near else "differs"
    return Compared(measure, word, kernel_told, told, apart=_factor(low, high, mine))


def _range(told: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys([*told[:1], *told[-1:]]))


def _kib(n_bytes: int) -> str:
    return f"{n_bytes / 1024:g} KiB"
