"""Types of a closer look at a study: types only; `iolab.stats.secondary_analyses` fills them.

Nothing here decides a verdict word. Ratios are oriented so that above 1 is better. Every class is
plain frozen data and goes into ``verdict.json`` under ``closer``.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from iolab.frozen import frozen

STALLED_MAX: Final = 200
"""Stalled trials that are named; `TimeCourse` counts all."""


@frozen
class Bounds:
    """Bounds of a ratio or a share, with their confidence."""

    low: float
    high: float
    confidence: float


@frozen
class TimeCourse:
    """Course of the trials of one level over time, in one operation."""

    workload: str
    operation: str
    is_direct: bool | None
    level: str | None
    """Of the compared factor; None if the workload does not have it."""
    n_trials: int
    """Trials with a series."""
    shapes: dict[str, int]
    """Shape (flat, warm_up, decay, cyclic, never_steady, too_short) to trials."""
    steady_trials: int
    """Trials whose last half is steady by SNIA's rule over ten equal parts."""
    warm_up_ns_max: int
    stalled_trials: int
    stall_ns_longest: int
    stall_share_max: float
    """Largest share of one trial's time that was stalled."""
    told_trials: int
    """Trials that are long enough, or busy enough, to show a stall."""


@frozen
class StalledTrial:
    """One stream of one trial that completed (next to) nothing for a while."""

    workload: str
    operation: str
    is_direct: bool | None
    level: str | None
    cell_label: str
    trial_id: str
    round: int
    began_ns: int
    """Time at which its longest stall began, from the beginning of the stream."""
    longest_ns: int
    total_ns: int
    """All its stalls."""
    share: float
    """Of its time."""


@frozen
class RoundSteadiness:
    """Steadiness of the values of a level over the rounds (SNIA's window of five)."""

    workload: str
    is_direct: bool | None
    metric: str
    level: str
    n_rounds: int
    reached_at: int | None
    """Rounds until the first steady window was full."""
    is_steady_at_end: bool
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class JointComparison:
    """One level against the baseline, all levels jointly (Dunnett)."""

    workload: str
    is_direct: bool | None
    metric: str
    level: str
    baseline: str
    ratio: float
    interval: Bounds
    p_adjusted: float
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class LevelWithBest:
    """One level against the best of the others (Hsu)."""

    level: str
    ratio: float
    interval: Bounds
    may_be_best: bool


@frozen
class WinnerSet:
    """Levels that cannot be ruled out as the best."""

    workload: str
    is_direct: bool | None
    metric: str
    members: tuple[str, ...]
    levels: tuple[LevelWithBest, ...]
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class LevelPair:
    """Two levels against each other, p adjusted over all pairs of their group (Shaffer)."""

    workload: str
    is_direct: bool | None
    metric: str
    first: str
    second: str
    ratio: float
    """First over second, oriented."""
    interval: Bounds | None
    p_adjusted: float | None
    p_exact: float | None
    """By sign flips, unadjusted; None above 12 rounds."""
    n_rounds: int
    superiority: float | None
    """Share of rounds in which the first is better."""
    superiority_interval: Bounds | None
    hedges_g: float | None
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class FactorEffect:
    """One factor, or an interaction, of a complete factorial."""

    workload: str
    is_direct: bool | None
    metric: str
    factors: tuple[str, ...]
    stratum: str
    """`whole plot` or `trial`: what it was judged against."""
    degrees_of_freedom: int
    error_degrees_of_freedom: int
    f: float
    p: float
    share: float
    """Of the variance, rounds taken off (omega squared)."""
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class NoiseShares:
    """Spread of a complete factorial that no factor explains, as sd of ln-values."""

    workload: str
    is_direct: bool | None
    metric: str
    round_sd: float
    whole_plot_sd: float | None
    trial_sd: float
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class QuantileEffect:
    """One level against the baseline by one quantile of latency (Hodges-Lehmann)."""

    workload: str
    is_direct: bool | None
    metric: str
    level: str
    baseline: str
    ratio: float
    interval: Bounds | None
    """Interval; None below six rounds."""
    n_rounds: int
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class RobustInterval:
    """The headline comparison without the assumption of normality."""

    workload: str
    is_direct: bool | None
    metric: str
    level: str
    median_ratio: float
    median_interval: Bounds | None
    """Order statistics; None below six rounds."""
    bca_interval: Bounds | None
    """Bootstrap over rounds; None below ten."""
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class CloserLook:
    """Everything beside the verdict."""

    time_courses: list[TimeCourse] = field(default_factory=list[TimeCourse])
    stalled: list[StalledTrial] = field(default_factory=list[StalledTrial])
    """The longest stalls first, at most `STALLED_MAX`."""
    round_steadiness: list[RoundSteadiness] = field(default_factory=list[RoundSteadiness])
    joint: list[JointComparison] = field(default_factory=list[JointComparison])
    winner_sets: list[WinnerSet] = field(default_factory=list[WinnerSet])
    pairs: list[LevelPair] = field(default_factory=list[LevelPair])
    factor_effects: list[FactorEffect] = field(default_factory=list[FactorEffect])
    noise_shares: list[NoiseShares] = field(default_factory=list[NoiseShares])
    quantile_effects: list[QuantileEffect] = field(default_factory=list[QuantileEffect])
    robust: list[RobustInterval] = field(default_factory=list[RobustInterval])
