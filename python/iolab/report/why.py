"""Reason for a difference, as far as block traces tell it; what would tell it otherwise.

It is said beside a difference that is decided, and of requests whose mean times the rounds tell
apart. It describes what was seen, not what would happen if it were otherwise.
"""

from __future__ import annotations

from statistics import fmean
from typing import Final

from iolab.report.charts.request_stages import difference_text
from iolab.report.charts.traced import TracedCell, traced_cells
from iolab.stats.caveats_of_simulation import CAUSE
from iolab.stats.effect_words import percent
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

DECIDED: Final = ("better", "worse")
IDLE_SHARE: Final = 0.5
"""Below this share of busy time the device is not what is waited for."""
RECORD_IT: Final = (
    "not recorded: the same command with --trace says what the devices did differently"
)


def why_text(data: StudyData, verdict: StudyVerdict) -> str:
    """Return a sentence without its end, or with several; empty where there is nothing to say."""
    compared = (*verdict.pooled, *verdict.secondary)
    if not data.study.is_comparison or all(c.effect.word not in DECIDED for c in compared):
        return ""
    if data.study.is_simulated:
        return _in_the_model(verdict)
    if data.traced:
        return difference_text(data, verdict) or _above_the_device(data, verdict)
    is_possible = data.study.kind == "real" and not data.study.is_in_slices
    return RECORD_IT if is_possible and _has_device(data) else ""


def _in_the_model(verdict: StudyVerdict) -> str:
    """Say in what a model's levels differ most besides their results, where that was looked at."""
    for finding in verdict.caveats:
        told = finding.says.partition(f"{CAUSE}: ")[2]
        if told:
            return f"in the model, {told.removesuffix('.')}"
    return ""


def _has_device(data: StudyData) -> bool:
    """Tell whether any device worked: results of the page cache alone have no requests."""
    return any(
        (detail.get("device_read_bytes") or 0) + (detail.get("device_write_bytes") or 0)
        for detail in data.phase_details
    )


def _above_the_device(data: StudyData, verdict: StudyVerdict) -> str:
    """Say that devices were idle most of the time, if they were in all that was recorded.

    Not where caches of devices were flushed: a trace does not tell how long a flush takes.
    """
    cells = traced_cells(data, verdict)
    if any(phase.flushes for cell in cells for phase in cell.phases):
        return ""
    shares = [_busy(cell) for cell in cells]
    if not shares or max(shares) >= IDLE_SHARE:
        return ""
    return (
        f"the device was busy at most {percent(max(shares))} of the time, whatever the level: the "
        "difference lies above the block layer"
    )


def _busy(cell: TracedCell) -> float:
    return fmean(phase.busy_share for phase in cell.phases)
