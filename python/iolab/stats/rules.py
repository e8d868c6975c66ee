"""The twelve rules of Hoefler and Belli, asked of a stored study or of an imported table.

Each rule answers `kept`, `broken`, `unknown` (the data do not tell) or `not applicable`, with what
was seen and what to do. A stored study is asked what was measured and stored; an imported table is
asked what it prints, whatever iolab makes of it afterwards. Left out: what only a reader can judge,
such as whether a picture shows enough.

Source: Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC'15; the
wording here is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal, cast

from iolab import units
from iolab.frozen import frozen
from iolab.stats.methods.holm import holm_steps
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.upper_bound import SPECIFICATION
from iolab.stats.verdict import StudyVerdict, to_plain
from iolab.store.continuing import command_on, is_continuable
from iolab.store.rows import Caveat, StudyData
from iolab.wording import counted

Status = Literal["kept", "broken", "unknown", "not applicable"]
NORMALITY_VALUES_MIN: Final = 8
"""Fewer values than this show hardly any departure from a normal distribution."""
NORMALITY_VALUES_MAX: Final = 5000
"""Values up to which the p of Shapiro-Wilk holds: Royston (1995), Applied Statistics 44(4), AS R94;
of more the first are taken.
"""
NORMALITY_P: Final = 0.01
SETUP_FACTS: Final = ("kernel.release", "cpu.model", "memory.total")


@frozen
class Answer:
    """Answer of one rule about a study."""

    status: Status
    evidence: str
    advice: str = ""


@frozen
class RuleAnswer:
    """A rule and its answer."""

    number: int
    title: str
    status: Status
    evidence: str
    advice: str

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return cast("dict[str, object]", to_plain(self))


@frozen
class Case:
    """Case that the rules are asked about."""

    data: StudyData
    verdict: StudyVerdict

    @property
    def is_table(self) -> bool:
        """Tell whether the numbers were imported."""
        return self.data.study.kind == "imported"

    def caveat(self, code: str) -> Caveat | None:
        """Return the study's caveat of this code."""
        return next((c for c in self.data.caveats if c.code == code), None)

    @property
    def printed_means(self) -> str:
        """Remark about a table's printed means; empty without any."""
        return self.data.facts.get("source.printed_means", "")


def check_rules(data: StudyData, verdict: StudyVerdict) -> list[RuleAnswer]:
    """Ask all twelve rules."""
    case = Case(data, verdict)
    answers = [(number, title, ask(case)) for number, title, ask in RULES]
    return [RuleAnswer(n, title, a.status, a.evidence, a.advice) for n, title, a in answers]


def _base_case(case: Case) -> Answer:
    ratios = case.caveat("ratios_without_base")
    if ratios is not None:
        return Answer("broken", ratios.message, "Print the base case and its absolute value.")
    if case.is_table:
        return Answer("kept", "the values are absolute, with units")
    if not case.verdict.compared_factor:
        return Answer("not applicable", "nothing is compared; the values are absolute, with units")
    base = f"{case.verdict.compared_factor} = {case.verdict.baseline}"
    return Answer("kept", f"ratios are against {base}; absolute values stand beside them")


def _subsets(case: Case) -> Answer:
    missing = case.caveat("missing_unexplained")
    if missing is not None:
        return Answer("broken", missing.message, "Say why these values are not there.")
    trials = case.verdict.trials
    errors = [t.error for t in case.data.trials if t.status == "failed" and t.error]
    rest = trials.interrupted + trials.not_run + trials.failed - len(errors)
    if rest:
        return Answer(
            "broken",
            f"{rest} of {trials.planned} planned trials have no result",
            "Say why the rest does not count."
            if not is_continuable(case.data.study)
            else f"`{command_on(case.data.study, trials=case.data.trials)}`, or say why the rest"
            " does not count.",
        )
    if case.is_table:
        return Answer(
            "kept",
            "every value that is missing has a note"
            if case.caveat("missing_values")
            else "no value is missing",
        )
    if errors:
        said = f"{len(errors)} of {counted(trials.planned, 'trial')} failed; each has its reason"
        return Answer("kept", f"{said} ({errors[0][:80]})")
    return Answer("kept", f"all {trials.planned} planned trials finished and are reported")


def _means_of_rates(case: Case) -> Answer:
    average = case.caveat("mixed_average")
    if average is not None:
        return Answer(
            "broken",
            f"{average.message} and rates were averaged arithmetically",
            "Print the rate of each operation; all bytes over all time is the mean of rates.",
        )
    if case.printed_means and _has_rates(case):
        return Answer(
            "broken",
            f"rates are summarised by arithmetic means ({case.printed_means})",
            "Use total over total, the harmonic mean, or a geometric mean with its interval.",
        )
    if case.is_table:
        return Answer("not applicable", "nothing is summarised in the table")
    return Answer(
        "kept",
        "rates are summarised by geometric means of trials, each total bytes over total time",
    )


def _means_of_ratios(case: Case) -> Answer:
    if case.caveat("ratios_without_base") is not None and case.printed_means:
        return Answer("broken", "means of ratios are printed", "Average costs, then divide.")
    if case.is_table:
        return Answer("not applicable", "the table has no ratios to average")
    return Answer("kept", "ratios are only ever averaged as logarithms (geometric means)")


def _determinism(case: Case) -> Answer:
    if case.data.study.is_simulated:
        return Answer("kept", "simulated: deterministic for a seed; rounds differ by seed")
    if not case.verdict.treatments:
        return Answer("unknown", "there is no value to look at")
    # Rare quantiles may exist in one trial only; that does not make a treatment a single run.
    primary = [t for t in case.verdict.treatments if METRIC_BY_NAME[t.metric].role == "primary"]
    found = primary or case.verdict.treatments
    few = sum(t.n < 2 for t in found)
    if case.printed_means and few < len(found):
        return Answer(
            "broken",
            "means are printed without any interval or deviation",
            "The runs are there: `iolab import` gives the intervals.",
        )
    if few:
        return Answer(
            "broken",
            f"{few} of {len(found)} values rest on a single run, without interval",
            "Repeat each at least 5 times, in random order.",
        )
    least = min(t.n for t in found)
    return Answer("kept", f"at least {least} runs a treatment, with 95 % intervals")


def _normality(case: Case) -> Answer:
    samples = [s for s in _samples(case) if len(s) >= NORMALITY_VALUES_MIN and len(set(s)) > 1]
    if not samples:
        return Answer(
            "unknown",
            "t intervals on ln-values trust normality; no comparison has the"
            f" {NORMALITY_VALUES_MIN} rounds that it takes to check it",
            "Run more rounds.",
        )
    from scipy.stats import shapiro

    steps = holm_steps([float(shapiro(sample[:NORMALITY_VALUES_MAX]).pvalue) for sample in samples])
    p = min(step.p_adjusted for step in steps if step.p_adjusted is not None)
    said = f"Shapiro-Wilk on {len(samples)} samples of ln-values: smallest p = {p:.2g} (Holm)"
    if p < NORMALITY_P:
        return Answer(
            "broken",
            f"{said}: t intervals assume what the data do not show",
            "Look for outliers and two-humped runs; more rounds make the intervals safer.",
        )
    return Answer("kept", said)


def _samples(case: Case) -> list[list[float]]:
    """Samples that t intervals are taken of: ln of the round ratios, or of the runs of a table."""
    if not case.is_table:
        return [
            [math.log(ratio) for ratio in c.round_ratios.values()] for c in case.verdict.headline
        ]
    found: dict[tuple[object, ...], list[float]] = {}
    for m in case.data.measurements:
        if m.value > 0:
            place = (m.workload, m.operation, m.metric, tuple(sorted(m.levels.items())))
            found.setdefault(place, []).append(math.log(m.value))
    return list(found.values())


def _comparison(case: Case) -> Answer:
    if not case.data.study.is_comparison:
        return Answer("not applicable", "nothing is compared")
    if max((t.n for t in case.verdict.treatments), default=0) < 2:
        return Answer(
            "broken",
            "single runs cannot be compared: any difference may be chance",
            "Repeat each at least 5 times, in random order.",
        )
    if case.is_table:
        return Answer(
            "broken",
            "the table compares levels without a test, and the order of its runs is not known",
            "Randomise the order; `iolab import` tests the levels as independent samples.",
        )
    order = "; the order is that of a table, not random" if case.data.study.command else ""
    return Answer(
        "kept", f"paired by round, t intervals, all pairs of levels adjusted (Shaffer){order}"
    )


def _percentiles(case: Case) -> Answer:
    names = {m.metric for m in case.data.measurements}
    tails = sorted(n for n in names if n.endswith(("_p99", "_p999", "_max")))
    if tails:
        return Answer("kept", f"tails stand beside the means: {', '.join(tails)}")
    return Answer(
        "broken",
        "only central values: no percentile and no longest latency",
        "Measure p99 and the longest latency where somebody waits for an answer.",
    )


def _setup(case: Case) -> Answer:
    if case.is_table:
        told = sorted(n.removeprefix("source.") for n in case.data.facts if _is_told(n))
        return Answer(
            "broken",
            "machine, kernel, device, file system, cache state and order are not in the table"
            + (f"; it names {', '.join(told)}" if told else ""),
            "Store the environment beside the values; `iolab run` does.",
        )
    if case.data.study.is_simulated:
        return Answer("kept", "the simulated stack is stored as a whole, with factors and levels")
    missing = [
        n for n in SETUP_FACTS if n not in case.data.facts and n not in case.data.varying_facts
    ]
    if missing:
        return Answer(
            "broken",
            f"these facts of the machine are not stored: {', '.join(missing)}",
            "Measure again with this version of iolab.",
        )
    return Answer(
        "kept",
        f"{len(case.data.facts)} facts of the machine, all factors and settings are stored",
    )


def _is_told(name: str) -> bool:
    return name.startswith("source.") and name not in (
        "source.file",
        "source.sha256",
        "source.printed_means",
    )


def _parallel(case: Case) -> Answer:
    several = [d for d in case.data.phase_details if len(d.get("workers") or []) > 1]
    if several:
        return Answer("kept", "times and bytes of every worker are stored, and sums named")
    if case.is_table:
        return Answer(
            "unknown",
            "the table does not say how many workers there were, nor how they were merged",
            "Say how many threads ran and how their times became one.",
        )
    return Answer("not applicable", "one worker at a time")


def _bounds(case: Case) -> Answer:
    costs = sorted(cost for d in case.data.phase_details if (cost := d.get("harness_ns_per_op")))
    if case.is_table:
        return Answer(
            "broken",
            "no upper bound stands beside the values",
            "Add what device and memory can do at most.",
        )
    if case.data.study.is_simulated:
        return Answer("kept", "the model's own limits are its bound: see `iolab sim profiles`")
    if not costs:
        return Answer(
            "broken",
            "neither the limit of the load generator nor of the device is stored",
            "Measure again with this version of iolab.",
        )
    middle = costs[len(costs) // 2]
    is_told = any(bound.name == SPECIFICATION for bound in case.verdict.upper_bounds)
    return Answer(
        "kept",
        f"the load generator alone costs {middle:.0f} ns per operation, at most"
        f" {units.grouped(1e9 / middle)} ops/s per worker; cells at that limit are marked"
        + ("; the device's specification is stored" if is_told else ""),
        "" if is_told else "Say what the data sheet promises: specification in the study file.",
    )


def _plots(case: Case) -> Answer:
    if case.is_table:
        return Answer("not applicable", "a table, not a picture")
    return Answer("kept", "intervals in every chart; lines join sizes only, never names")


def _has_rates(case: Case) -> bool:
    return any(
        METRIC_BY_NAME[m.metric].name.startswith("throughput")
        for m in case.data.measurements
        if m.metric in METRIC_BY_NAME
    )


RULES: Final[tuple[tuple[int, str, Callable[[Case], Answer]], ...]] = (
    (1, "a speed-up names its base case and absolute values", _base_case),
    (2, "reasons are given for what is left out", _subsets),
    (3, "arithmetic means are for costs, not for rates", _means_of_rates),
    (4, "ratios are not averaged, or geometrically", _means_of_ratios),
    (5, "determinism is stated; otherwise intervals", _determinism),
    (6, "normality is checked, not assumed", _normality),
    (7, "levels are compared by a sound statistical procedure", _comparison),
    (8, "percentiles where a mean hides what matters", _percentiles),
    (9, "factors, levels and the whole set-up are documented", _setup),
    (10, "parallel measurements say how they were merged", _parallel),
    (11, "upper bounds stand beside the results", _bounds),
    (12, "pictures show enough; lines only where interpolation is valid", _plots),
)
