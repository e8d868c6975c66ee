"""Answer of an A/A study about a testbed: how often nothing looks like something, and from where.

The same treatment ran under two labels in real random rounds. Each round gives the ln-ratio of the
pooled primary metric. False positives: rounds are cut into disjoint small studies of the planned
size, each is judged, and the share that finds a difference is given with its exact interval; the
same from many resampled studies (rounds drawn anew, signs flipped at random), which is steadier
but repeats the same rounds. The noise floor is the 95th percentile of the absolute ln-ratio of such
a resampled study: what is smaller cannot be told from noise.

A third label with a delay of known size is the positive control: the slow-down that the delay must
cause is computed from the mean latency and compared with what was measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final, Literal

from iolab.errors import AnalysisError
from iolab.frozen import frozen, replace
from iolab.stats.ledger import build_ledger
from iolab.stats.methods.autocorrelation import lag_one
from iolab.stats.methods.effect_size import clopper_pearson
from iolab.stats.methods.student import estimate_mean, spread_bound
from iolab.stats.methods.verdict_rule import SPREAD_CONFIDENCE
from iolab.stats.repetition import (
    NoiseByLevel,
    TrialLength,
    noise_by_level,
    trial_costs_ns,
    trial_lengths,
)
from iolab.stats.verdict import StudyVerdict
from iolab.stats.winner_rows import position_note
from iolab.store.rows import StudyData
from iolab.study.factors import label_delay_ns

SCHEMA_VERSION: Final = 1
RESAMPLES: Final = 2000
ALPHA: Final = 0.05
ROUNDS_MIN: Final = 4
CONTROL_TOLERANCE: Final = 1.02
RATE_MAX: Final = 2 * ALPHA
"""Rate of false positives that a check must rule out before it speaks for a testbed."""
STUDIES_WANTED: Final = math.ceil(math.log(ALPHA / 2) / math.log(1 - RATE_MAX))
"""So many small studies rule `RATE_MAX` out where none of them finds a difference."""
_SEED: Final = 20_260_401


@frozen
class Control:
    """A slow-down of known size, and what was measured of it."""

    label: str
    expected_ratio: float
    """Throughput with the delay over throughput without, from the mean latency."""
    ratio: float
    low: float
    high: float
    is_found: bool
    """True if the interval excludes "no difference" in the right direction."""
    is_as_expected: bool
    """True if the interval, 2 % wider for what the harness itself costs, holds that ratio."""


@frozen
class Calibration:
    """Kept values of an A/A study."""

    n_rounds: int
    planned_rounds: int
    """Size of the study that the rates below are for."""
    sd: float
    """Of one round's ln-ratio."""
    sd_upper: float
    """Upper 80 % bound of it; what plans use."""
    ratio: float
    """Of the two labels over all rounds; should be 1."""
    ratio_low: float
    ratio_high: float
    false_positives: int
    small_studies: int
    false_positive_low: float
    false_positive_high: float
    false_positive_resampled: float
    noise_floor: float
    """Relative: 0.03 = 3 %."""
    lag_one: float | None
    lag_one_chance: float | None
    position_ratio: float | None
    """From the first to the last place of a round."""
    position_p: float | None
    control: Control | None
    noise_by_level: NoiseByLevel | None = None
    """Noise of each level (Kalibera and Jones); None if trials are too short to cut."""
    trial_length: TrialLength | None = None
    """Recommended length of trials."""
    kind: str = ""
    """Class of the cells that it is of; empty where the workload has only one."""

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return asdict(self)


def rate_told(known: Mapping[str, float] | None) -> Literal["good", "bad", "open", "unasked"]:
    """Say what the small studies of a stored A/A result tell of a testbed's false positives.

    Good: more than `RATE_MAX` is ruled out. Bad: more than the promised `ALPHA` is shown.
    """
    if not known or not known.get("small_studies"):
        return "unasked"
    if known["false_positive_low"] > ALPHA:
        return "bad"
    return "good" if known["false_positive_high"] <= RATE_MAX else "open"


def calibrate(data: StudyData, verdict: StudyVerdict, *, planned_rounds: int) -> Calibration:
    """Evaluate an A/A study.

    Raises
    ------
    AnalysisError : fewer than four complete rounds.
    """
    ratios = [_oriented_logs(verdict, level) for level in _mere_labels(data)]
    values = ratios[0] if ratios else []
    if len(values) < ROUNDS_MIN:
        raise AnalysisError(
            f"{len(values)} complete rounds are too few to measure noise",
            f"at least {ROUNDS_MIN} are needed, 20 are better; continue with --resume",
        )
    estimate = estimate_mean(values)
    half = estimate.half_width(0.95)
    size = min(planned_rounds, len(values) // 2)
    found = [_differs(values[i : i + size]) for i in range(0, len(values) - size + 1, size)]
    share = clopper_pearson(sum(found), len(found))
    rate, floor = _resampled(values, size)
    lag, position = lag_one(_in_run_order(data)), position_note(build_ledger(data))
    return Calibration(
        n_rounds=len(values),
        planned_rounds=size,
        sd=estimate.sd or 0.0,
        sd_upper=spread_bound(estimate, SPREAD_CONFIDENCE) or 0.0,
        ratio=math.exp(estimate.mean),
        ratio_low=math.exp(estimate.mean - half),
        ratio_high=math.exp(estimate.mean + half),
        false_positives=sum(found),
        small_studies=len(found),
        false_positive_low=share.low,
        false_positive_high=share.high,
        false_positive_resampled=rate,
        noise_floor=floor,
        lag_one=lag.value if lag else None,
        lag_one_chance=lag.chance if lag else None,
        position_ratio=position.ratio if position else None,
        position_p=position.p if position else None,
        control=_control(data, verdict),
        noise_by_level=_noise_by_level(data),
        trial_length=_trial_length(data),
        kind=_kind(verdict, data),
    )


def _noise_by_level(data: StudyData) -> NoiseByLevel | None:
    others, costs = _mere_labels(data), trial_costs_ns(data)
    if not others or costs is None:
        return None
    return noise_by_level(data, (data.study.baseline, others[0]), costs)


def _trial_length(data: StudyData) -> TrialLength | None:
    """Advice from the labels that change nothing."""
    mere = [data.study.baseline, *_mere_labels(data)]
    factor = data.study.compared_factor
    measurements = [m for m in data.measurements if m.levels.get(factor) in mere]
    lengths = trial_lengths(build_ledger(replace(data, measurements=measurements)))
    return lengths[0] if lengths else None


def _mere_labels(data: StudyData) -> list[str]:
    """Return the labels beside the baseline that change nothing."""
    study = data.study
    levels = study.factors.get(study.compared_factor, [])
    return [level for level in levels if level != study.baseline and not label_delay_ns(level)]


def _kind(verdict: StudyVerdict, data: StudyData) -> str:
    """Return the class of the comparison whose rounds are the noise."""
    level = _mere_labels(data)[0]
    return next((c.kind for c in verdict.headline if c.level == level), "")


def _oriented_logs(verdict: StudyVerdict, level: str) -> list[float]:
    """Return one ln-ratio per complete round, in the order of rounds."""
    for comparison in verdict.headline:
        if comparison.level == level:
            ratios = comparison.round_ratios
            return [math.log(ratios[r]) for r in sorted(ratios)]
    return []


def _differs(values: Sequence[float]) -> bool:
    p = estimate_mean(values).p_value()
    return p is not None and p < ALPHA


def _resampled(values: Sequence[float], size: int) -> tuple[float, float]:
    """Return how often a study of `size` rounds finds a difference, and its 95th percentile."""
    rng = random.Random(_SEED)
    found, sizes = 0, list[float]()
    for _ in range(RESAMPLES):
        sample = [rng.choice((-1, 1)) * value for value in rng.choices(values, k=size)]
        found += _differs(sample)
        sizes.append(abs(math.fsum(sample) / size))
    sizes.sort()
    return found / RESAMPLES, math.expm1(sizes[int(0.95 * RESAMPLES)])


def _in_run_order(data: StudyData) -> list[float]:
    """Return the ln-values of the mere labels in the order in which they ran, control left out."""
    metric = next((m for m in data.measurements if m.metric == "throughput_ops_per_s"), None)
    if metric is None:
        return []
    rows = [
        m
        for m in data.measurements
        if (m.metric, m.operation) == (metric.metric, metric.operation)
        and not label_delay_ns(m.levels.get(data.study.compared_factor, ""))
        and m.value > 0
    ]
    return [math.log(m.value) for m in sorted(rows, key=lambda m: m.ordinal)]


def _control(data: StudyData, verdict: StudyVerdict) -> Control | None:
    study = data.study
    for comparison in verdict.headline:
        delay_ns = label_delay_ns(comparison.level)
        interval = comparison.effect.interval_95
        if not delay_ns or interval is None or comparison.effect.ratio is None:
            continue
        if not comparison.metric.startswith("throughput"):
            return None  # What a pause does to another metric is not known beforehand.
        latencies = [
            m.value
            for m in data.measurements
            if m.metric == "latency_ns_mean"
            and m.levels.get(study.compared_factor) == study.baseline
        ]
        if not latencies:
            return None
        latency = math.fsum(latencies) / len(latencies)
        expected = latency / (latency + delay_ns)
        return Control(
            comparison.level,
            expected,
            comparison.effect.ratio,
            interval.low,
            interval.high,
            interval.high < 1,
            interval.low / CONTROL_TOLERANCE <= expected <= interval.high * CONTROL_TOLERANCE,
        )
    return None
