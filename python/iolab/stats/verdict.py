"""Answer of a judged study: typed results from one comparison up to the whole study.

Ratios are oriented so that above 1 is better, whatever the metric; the values beside them are in
the unit that the metric's name carries. Every class is plain frozen data; `to_dict` gives what
``verdict.json`` holds (docs/reference/verdict-json.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, cast

from iolab.frozen import frozen
from iolab.stats.finding import Finding
from iolab.stats.methods.verdict_rule import Sign, Word
from iolab.stats.secondary_types import CloserLook

Statistic = Literal["geometric mean", "maximum"]


@frozen
class Interval:
    """Bounds of a ratio or of a value; `confidence` is what was left after adjustment."""

    low: float
    high: float
    confidence: float


@frozen
class Effect:
    """One level against the baseline: ratio, interval, word."""

    ratio: float | None
    """Geometric mean of the per-round ratios, oriented (above 1 = better); None without a pair."""
    interval_95: Interval | None
    """Interval; None below two rounds."""
    interval_90: Interval | None
    p: float | None
    """Unadjusted two-sided p of "no difference"."""
    p_adjusted: float | None
    """Shaffer over all pairs of the family (pooled), Benjamini-Hochberg (cells, secondary)."""
    word: Word
    sign: Sign
    further_rounds: int | None
    """For `undecided`: rounds beyond those seen that decide with 80 % chance; below 5 rounds those
    needed before that can be told; None = unknown or too many."""
    is_further_rounds_above_limit: bool
    is_further_rounds_at_least: bool
    """Too few rounds to plan with: `further_rounds` are needed first, and may not decide."""
    further_rounds_least: int | None = None
    """Number of rounds that decide with 20 % chance."""
    chance_within_limit: float | None = None
    """Chance that 200 further rounds decide; None if that was not asked."""
    divisor: float = 1.0
    """Alpha is divided by this for `better`, `worse` and the sign."""
    divisor_same: float = 1.0
    """Alpha is divided by this for `same` and `trivial`."""
    reason: str = ""
    """Reason why the word is withheld, where the intervals alone would give one."""


@frozen
class CellGroup:
    """Cells in which a level does alike, where it does not in all."""

    label: str
    """Common part of the cells, or their names: ``4k``."""
    direction: Literal["better", "worse", "same"]
    """Of their mean: beyond the margin, or inside."""
    ratio: float
    """Geometric mean over the cells, oriented."""
    n_cells: int


@frozen
class Failures:
    """Trials that failed, of those that ended, on both sides of a comparison."""

    level_failed: int
    level_trials: int
    baseline_failed: int
    baseline_trials: int
    is_level_barred: bool
    """A missing cell, more failures than the other side, or more than 10 %."""
    is_baseline_barred: bool
    rounds_won: int
    """Rounds in which the level is ahead, a failed trial counting as the worst."""
    rounds_told: int


@frozen
class Comparison:
    """One level against the baseline, pooled over the cells of one workload."""

    workload: str
    is_direct: bool | None
    metric: str
    level: str
    baseline: str
    effect: Effect
    n_cells: int
    cells_excluded: int
    """Cells left out because the two sides (almost) never met there."""
    rounds_used: int
    rounds_excluded: int
    """Rounds that were begun but miss a value on either side in some cell."""
    trials_used: int
    trials_excluded: int
    """Trials of the two levels that were begun and are not in a used round."""
    page_cache_cells: int
    generator_bound_cells: int
    round_ratios: dict[int, float]
    """Round -> oriented ratio (geometric mean over cells); the sample behind the interval."""
    is_headline: bool = False
    kind: str = ""
    """Class of the cells (`iolab.stats.cell_class`); empty where the workload has only one."""
    parts: tuple[CellGroup, ...] = ()
    """For `depends`: groups of cells that disagree."""
    is_on_average: bool = False
    """The word holds for the mean over cells; single cells may differ by more than the margin."""
    failures: Failures | None = None
    """Trials that failed on either side; None if none did."""
    robust_ratio: float | None = None
    """Median of the round ratios, where it differs from `effect.ratio` by more than the margin."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)

    @property
    def word(self) -> Word:
        """The verdict on the level: ``better``, ``worse``, ``same``, ``trivial``, ``undecided``."""
        return self.effect.word


@frozen
class CellComparison:
    """One level against the baseline in one cell: exploratory, never the headline."""

    workload: str
    operation: str
    is_direct: bool | None
    cell_levels: dict[str, str]
    """Levels of the factors that are not compared."""
    label: str
    """Operation and the levels that vary inside the workload, for people."""
    metric: str
    level: str
    baseline: str
    effect: Effect
    rounds_used: int
    value: float | None
    """Of the level over the used rounds, unit of the metric: mean, or (`*_max`) maximum."""
    baseline_value: float | None
    cache_share: float | None
    """Larger of the two sides' mean share of bytes that never reached the device."""
    is_page_cache: bool
    is_generator_bound: bool
    is_affected: bool = True
    """True if the compared factor can change what is done there; otherwise it is not pooled."""
    kind: str = ""
    """Class of the cell; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class MidwayChange:
    """A knob's change while a workload ran: a stream before and after it, at one level."""

    workload: str
    operation: str
    level: str | None
    at_ns: int
    """Time at which it was to happen, from the beginning of the timed region."""
    change: str
    """Change: ``scheduler none -> bfq``."""
    metric: str
    before: float
    after: float
    ratio: float
    """After over before, not oriented: above 1 is more."""
    interval: Interval | None
    """95 % t interval over trials; None from one: that is no experiment."""
    n: int


@frozen
class TreatmentSummary:
    """All good trials of one treatment: one metric of one operation."""

    workload: str
    operation: str
    is_direct: bool | None
    level: str | None
    """Level of the compared factor; None if the workload does not have it."""
    levels: dict[str, str]
    cell_label: str
    """The levels other than the compared one that vary inside the workload, for people."""
    metric: str
    geometric_mean: float
    interval: Interval | None
    """95 % t interval on ln; None below two values."""
    n: int
    minimum: float
    maximum: float
    cache_share: float | None
    is_page_cache: bool
    is_generator_bound: bool
    statistic: Statistic = "geometric mean"
    """Meaning of `value`: of times that are the longest of their trial, the longest of all."""
    value: float = math.nan
    """The one figure of the treatment, which every page, table and drawing shows."""
    maximum_trial: str = ""
    """Trial in which `maximum` was measured."""
    maximum_round: int = 0
    kind: str = ""
    """Class of the cell; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)

    @property
    def value_interval(self) -> Interval | None:
        """The interval of `value`; a maximum has none."""
        return self.interval if self.statistic == "geometric mean" else None


@frozen
class BestLevels:
    """Best level of the compared factor and those shown to be within the margin of it.

    A level wins if no level may be the best that is not within its margin. Where that is open
    there is no winner: `best` is None and `members` is empty, as on every page.
    """

    workload: str
    is_direct: bool | None
    metric: str
    best: str | None
    members: tuple[str, ...]
    plateau: str | None
    """For a numeric factor: its smallest member; None for names."""
    n_rounds: int
    best_mean: str
    """The level with the best mean, whether or not that is more than chance."""
    candidates: tuple[str, ...]
    """Levels that are not ruled out as the best."""
    is_joint: bool
    """True if they were compared jointly; else by their signs against the baseline."""
    plateau_interval: Interval | None = None
    """Of the plateau's ratio to the best, paired by round; None if it is the best itself."""
    is_flat_beyond: bool = False
    """True if every level above the plateau is a member too."""
    kind: str = ""
    """Class of the cells; empty where the workload has only one."""

    @property
    def group(self) -> tuple[str, bool | None, str]:
        """Workload, mode and class."""
        return (self.workload, self.is_direct, self.kind)


@frozen
class PositionNote:
    """Influence of the place inside a round (`position_effect`)."""

    metric: str
    ratio: float
    p: float
    n_trials: int


@frozen
class UpperBound:
    """One bound of one operation with one record size."""

    name: str
    workload: str
    operation: str
    record: str
    """Size of a record; empty for the device's own bound, and for streams of different sizes."""
    bytes_per_s: float
    best_bytes_per_s: float
    """Largest throughput that a trial reached there."""
    is_cached: bool
    """True if that trial had most of its bytes from the page cache."""

    @property
    def share(self) -> float:
        """Best over bound."""
        return self.best_bytes_per_s / self.bytes_per_s


@frozen
class RequestTime:
    """The line "time per request = request_ns + byte_ns x size" of one treatment."""

    workload: str
    operation: str
    is_direct: bool | None
    level: str | None
    """Level of the compared factor; None if that is the record size itself."""
    label: str
    """Operation, level and the other levels that vary, for people."""
    request_ns: float
    """Cost of a request whatever its size."""
    request_ns_interval: Interval | None
    byte_ns: float
    byte_ns_interval: Interval | None
    sizes: tuple[str, ...]
    n_runs: int
    misfit: float | None
    """Largest relative distance of a size's mean time from the line; None with two sizes."""
    sentence: str


@frozen
class TrialCounts:
    """Fate of the planned trials."""

    planned: int
    ok: int
    failed: int
    interrupted: int
    not_run: int


@frozen
class StudyVerdict:
    """The answer of one study."""

    sentence: str
    headline_word: Word
    compared_factor: str
    baseline: str
    margin: float
    """Relative: 0.05 = 5 %."""
    pooled: list[Comparison]
    """Primary metric, one per workload, direct/buffered, non-baseline level."""
    secondary: list[Comparison]
    """The same for the metrics judged beside it (p99 latency)."""
    cells: list[CellComparison]
    treatments: list[TreatmentSummary]
    best_levels: list[BestLevels]
    trade_offs: list[str]
    trials: TrialCounts
    position: PositionNote | None
    caveats: list[Finding] = field(default_factory=list[Finding])
    """Doubts and notes, those found by judging first."""
    closer: CloserLook = field(default_factory=CloserLook)
    """Tables beside the verdict: trials over time, winner sets, pairs, factors, quantiles."""
    is_paired: bool = True
    """False for imported tables, whose order nobody knows: levels are independent samples."""
    request_times: list[RequestTime] = field(default_factory=list[RequestTime])
    """Request times, if record size is a factor: what one request costs, and what each byte of
    it.
    """
    metric_of: str | None = None
    """Stream or test that carries the headline; None is all of them."""
    upper_bounds: list[UpperBound] = field(default_factory=list[UpperBound])
    """The most that throughputs could have been, by name."""
    changes: list[MidwayChange] = field(default_factory=list)
    """Streams before and after what changed while they ran."""
    unit: str = ""
    """Unit of analysis, where it is neither a round nor a run."""

    @property
    def headline(self) -> list[Comparison]:
        """The comparisons that `headline_word` and `sentence` rest on."""
        return [comparison for comparison in self.pooled if comparison.is_headline]

    def summary(self) -> str:
        """Return the sentence and the word per pooled comparison, one line each."""
        lines = [self.sentence]
        for c in self.pooled:
            mode = mode_word(c.is_direct)
            ratio = "-" if c.effect.ratio is None else f"{c.effect.ratio:.3f}"
            lines.append(f"{c.workload} ({mode}): {c.level} / {c.baseline} {ratio} {c.effect.word}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON: finite numbers, strings, lists, dicts with text keys."""
        caveats = [
            {"code": f.kind, "message": f.says, "hint": f.hint, "count": f.count}
            for f in self.caveats
        ]
        found = cast("dict[str, object]", to_plain(self)) | {"caveats": caveats}
        if not self.unit:
            del found["unit"]
        return found


def mode_word(is_direct: bool | None) -> str:
    """Say how files were opened, in one word; nothing is said of several ways, or of none."""
    if is_direct is None:
        return "–"
    return "direct" if is_direct else "buffered"


def to_plain(value: object) -> object:
    """Turn frozen results into what `json.dumps` takes; a number that is not finite is None."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): to_plain(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in cast("list[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
