"""Limit of the results in one line: page cache, processors, load generator or device.

It is said only where the study knows it. Of the first three the records say so
(`iolab.stats.findings`: `page_cache`, `cpu_bound`, `generator_bound`), cell by cell. Of the device
block traces tell how long it was busy, and simulations do. Left out: upper bounds, which have a
block of their own (`iolab.stats.upper_bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.report.charts.traced import traced_cells
from iolab.stats.caveats_of_simulation import MECHANISM
from iolab.stats.effect_words import percent
from iolab.stats.ledger import Samples, build_ledger, cache_share, decides_cache, is_page_cache
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.pairing import without_parts
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.rows import StudyData

BUSY: Final = 0.9
"""From this share of busy time on the device is what is waited for."""
_IDLE: Final = "idle_share="


@frozen
class _Cause:
    """One thing that limits cells."""

    name: str
    is_limit: Callable[[Iterable[Samples]], bool]
    """Tells by the samples of a cell whether it was the limit at any level."""
    meaning: str
    """Consequence where it was the limit of all cells."""


_FLUSHES: Final = _Cause(
    "flushes",
    lambda sides: all(side.is_flush_bound for side in sides),
    "how long the device takes for them decides",
)
_CAUSES: Final = (
    _Cause(
        "page cache",
        lambda sides: is_page_cache(cache_share(sides)),
        "memory was measured, not storage",
    ),
    _FLUSHES,
    _Cause(
        "processors",
        lambda sides: any(side.is_processor_bound for side in sides),
        "a faster device would change nothing",
    ),
    _Cause(
        "load generator",
        lambda sides: any(side.is_generator_bound for side in sides),
        "differences may be hidden",
    ),
)


def limit_text(data: StudyData, verdict: StudyVerdict, said: str, width: int) -> str:
    """Return the line without its end of paragraph; empty where nothing more is known.

    Parameters
    ----------
    data, verdict : one judged study.
    said : the sentence above; a cause that it names is not repeated.
    width : columns; causes that do not fit are left out.
    """
    limits, n_cells = list[tuple[_Cause, int]](), 0
    for found in (verdict.headline, verdict.pooled):  # Other classes, where that is not known.
        cells = [tuple(by_level.values()) for by_level in _cells(data, found)]
        limits, n_cells = _limits(cells, verdict.compared_factor), len(cells)
        if limits:
            break
    else:
        return _device(data, verdict)
    device = _device(data, verdict) if {cause for cause, _ in limits} == {_FLUSHES} else ""
    if device:
        return device if limits[0][1] < n_cells else f"{device[:-1]}, most of it for flushes."
    told = [(cause, n) for cause, n in limits if cause.name not in said]
    for most in range(len(told), 0, -1):
        line = f"Limit: {_listed(told[:most], n_cells)}"
        whole = f"{line}; {told[0][0].meaning}."
        if len(limits) == 1 and told[0][1] == n_cells and len(whole) <= width:
            return whole
        if len(line) < width:
            return f"{line}."
    return ""


def _limits(cells: Sequence[tuple[Samples, ...]], factor: str) -> list[tuple[_Cause, int]]:
    """Return the causes with the number of cells that each limits."""
    # A cache that is compared is no limit that was met.
    causes = _CAUSES[1:] if decides_cache(factor) else _CAUSES
    found = [(cause, sum(map(cause.is_limit, cells))) for cause in causes]
    return [(cause, n) for cause, n in found if n]


def _listed(told: Iterable[tuple[_Cause, int]], n_cells: int) -> str:
    """Write causes with the cells of each: ``page cache in 2 of 4 cells, processors in 1``."""
    texts = list[str]()
    for cause, n in told:
        every = "both" if n == 2 else f"all {n}"
        which = every if n == n_cells else f"{n}" if texts else f"{n} of {n_cells}"
        where = f" in {which}{'' if texts else ' cells'}" if n_cells > 1 else ""
        texts.append(f"{cause.name}{where}")
    return ", ".join(texts)


def _cells(data: StudyData, found: Sequence[Comparison]) -> Iterator[dict[str, Samples]]:
    """Yield the samples, by level, of the cells of comparisons; without any of all cells."""
    ledger = build_ledger(data)
    if found:
        for group, name in dict.fromkeys((c.group, c.metric) for c in found):
            yield from without_parts(ledger.cells_asked(METRIC_BY_NAME[name], group)).values()
        return
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is not None:
            yield from without_parts(ledger.all_cells_of(metric, group)).values()


def _device(data: StudyData, verdict: StudyVerdict) -> str:
    """Say that the device was busy nearly all of the time, where that was recorded."""
    # Levels of a cache differ in whether they reach the device.
    by_cache = decides_cache(verdict.compared_factor)
    shares = [] if by_cache else list(_busy_shares(data, verdict))
    if not shares or min(shares) < BUSY:
        return ""
    least = percent(min(shares))
    more = " or more" if percent(max(shares)) != least else ""
    return f"Limit: the device, busy {least} of the time{more}."


def _busy_shares(data: StudyData, verdict: StudyVerdict) -> Iterator[float]:
    """Yield shares of busy time: of recorded trials, or of all of a simulation."""
    if not data.study.is_simulated:
        for cell in traced_cells(data, verdict):
            yield from (phase.busy_share for phase in cell.phases)
        return
    workloads = {c.workload for c in verdict.headline} or set(data.study.workloads)
    facts = data.varying_facts.get(MECHANISM, {})
    for trial in data.trials:
        text = facts.get(trial.trial_id, data.facts.get(MECHANISM, ""))
        if trial.workload in workloads and trial.status == "ok":
            told = (part for part in text.split() if part.startswith(_IDLE))
            yield from (1 - float(part.removeprefix(_IDLE)) for part in told)
