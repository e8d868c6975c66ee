"""From ln-ratios to an estimate that knows how the values were stored, and in what kind of study.

Quantiles come from histograms whose parts are 1/128 of a value wide: each side of a ratio is known
to within half a part, which no number of rounds narrows. And rounds that are equal to the last
digit are no certainty outside a simulation: then the spread is not known.
"""

from __future__ import annotations

import math
from typing import Final, TypeVar

from iolab.frozen import replace
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.metrics import Metric
from iolab.store.rows import StudyRow

SUB_BUCKETS: Final = 128
"""Parts of each power of two (crates/iolab-model/src/histogram.rs)."""
ROUNDING: Final = 2 * math.log1p(0.5 / SUB_BUCKETS)
"""Of an ln-ratio of two quantiles: half a part a side."""
EQUAL_SD: Final = 1e-12
EQUAL_ROUNDS: Final = (
    "all rounds are equal to the last digit, so that nothing is known of how they vary"
)
_Estimate = TypeVar("_Estimate", bound=MeanEstimate)


def as_measured(study: StudyRow, metric: Metric, estimate: _Estimate) -> _Estimate:
    """Return the estimate with what is known of the values behind it."""
    if metric.is_from_histogram:
        return replace(estimate, rounding=ROUNDING)
    if has_equal_rounds(estimate) and not study.is_simulated:
        return replace(estimate, sd=None)
    return estimate


def has_equal_rounds(estimate: MeanEstimate) -> bool:
    """Say whether several rounds said the same to the last digit."""
    return estimate.n > 1 and estimate.sd is not None and estimate.sd <= EQUAL_SD


def is_of_equal_rounds(estimate: MeanEstimate | None) -> bool:
    """Say whether the spread was taken away by :func:`as_measured`."""
    return estimate is not None and estimate.n > 1 and estimate.sd is None
