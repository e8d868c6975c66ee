"""The longest operation of all, and the trial in which it was: one source for every sentence.

A longest time is the longest over all trials, workers and rounds of a level; a mean of longest
times would be the longest of nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iolab.stats.ledger import is_segment, level_text
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import StudyVerdict, TreatmentSummary

METRIC: Final = "latency_ns_max"


def longest_of(
    treatments: Iterable[TreatmentSummary], metric: str = METRIC
) -> TreatmentSummary | None:
    """Return the treatment that has the longest operation."""
    found = [t for t in treatments if t.metric == metric and not is_segment(t.operation)]
    return max(found, key=lambda t: t.maximum, default=None)


def longest_sentence(
    verdict: StudyVerdict, treatments: Sequence[TreatmentSummary], metric: str = METRIC
) -> str:
    """Say how long the longest operation of all took, and where it was; empty if not known."""
    t = longest_of(treatments, metric)
    if t is None:
        return ""
    name = " · ".join(part for part in (t.operation, t.cell_label) if part)
    level = f" with {level_text(verdict.compared_factor, t.level)}" if t.level else ""
    return (
        f"The longest operation of all took {format_ns(t.maximum)}: {name}{level},"
        f" {trial_text(t.maximum_round, t.maximum_trial)}."
    )


def trial_text(round_number: int, trial_id: str) -> str:
    """Name a trial where somebody may look for it."""
    return f"round {round_number}, trial {trial_id}" if trial_id else f"round {round_number}"
