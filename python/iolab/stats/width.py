"""Studies that end when their intervals are narrow enough: Stein's two stages.

A study with a wanted width (`width` in its file) runs a pilot; the spread of the pilot alone says
how many rounds give intervals of that width, and decides nothing else. Its pooled intervals use the
pilot's spread, too, which keeps the promised coverage exactly, whatever the true spread is; looking
at the width after every round would not. Cells and metrics beside keep the usual intervals.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence

from iolab.stats.methods.stein import stein_rounds, two_stage_estimate
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.verdict import Comparison
from iolab.store.rows import StudyRow
from iolab.study.model import PILOT_ROUNDS
from iolab.units import parse_share


def width_of(study: StudyRow) -> float | None:
    """Return the wanted half width of a study, relative; None without one."""
    try:
        asked = tomllib.loads(study.spec_toml).get("width")
        return None if asked is None else parse_share(asked)
    except (tomllib.TOMLDecodeError, ValueError):  # An imported study has no file of ours.
        return None


def estimate_rounds(study: StudyRow, log_ratios: dict[int, float]) -> MeanEstimate | None:
    """Reduce the ln-ratios of complete rounds as the study's way of ending asks for."""
    values = [log_ratios[r] for r in sorted(log_ratios)]
    if not values:
        return None
    if width_of(study) is None:
        return estimate_mean(values)
    return two_stage_estimate(values, n_pilot=PILOT_ROUNDS)


def rounds_for_width(headline: Sequence[Comparison], width: float) -> int | None:
    """Return the complete rounds that give every headline interval its width.

    The first `PILOT_ROUNDS` complete rounds of each comparison count, at the confidence of the
    whole family; None while some comparison has fewer.
    """
    pilots = [[c.round_ratios[r] for r in sorted(c.round_ratios)][:PILOT_ROUNDS] for c in headline]
    if not pilots or any(len(pilot) < PILOT_ROUNDS for pilot in pilots):
        return None
    confidence = 1 - 0.05 / len(pilots)
    return max(
        stein_rounds(
            [math.log(ratio) for ratio in pilot], math.log1p(width), confidence=confidence
        ).n_total
        for pilot in pilots
    )
