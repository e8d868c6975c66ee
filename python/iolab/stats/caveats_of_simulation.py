"""Caveats of simulated results that surprise: equal to the last digit, or many times apart.

In a simulation nothing varies but what was compared, so that both have a reason in the model. It is
said where the number stands: what was equal, or what an operation took on either side, which part
of the mechanism differs most (idle time, seeks, caches, merges), and where the order of the
requests can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.stats.effect_words import joint_of, size_of_effect
from iolab.stats.finding import Evidence, Finding
from iolab.stats.ledger import Ledger, level_text
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import Comparison, StudyVerdict, TreatmentSummary

if TYPE_CHECKING:
    from iolab.stats.metrics import Metric

FAR: Final = 5.0
"""From this ratio on a difference asks for its reason."""
MECHANISM: Final = "sim.mechanism"
"""Fact of a simulated trial: numbers by name."""
_CAUSES: Final = {
    "seeks_per_request": ("arm movements per request", 0.01),
    "cache_share": ("share of the bytes read that a cache of the drive held", 0.01),
    "idle_share": ("share of the time with nothing at the device", 0.01),
    "merges_per_request": ("merges per request", 0.01),
}
"""Words for each number, and the least that counts as something."""
_CAUSES_MAX: Final = 2
_ALIKE: Final = 1.25
"""Numbers within this ratio explain nothing."""
EQUAL: Final = 1e-9
MEDIAN: Final = "latency_ns_p50"


def about_surprises(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield what to know about levels of a simulation that are equal, or far apart."""
    if not ledger.data.study.is_simulated:
        return
    known = [c for c in verdict.headline if c.effect.ratio]
    # Throughput may be equal where latencies are not: the model did not decide the same then.
    apart = {_place(c) for c in verdict.secondary if c.effect.ratio and not _is_equal(c)}
    equal = [c for c in known if _is_equal(c) and _place(c) not in apart]
    if equal:
        yield _equal(verdict, equal)
    # Of sizes and numbers of streams it is no surprise: a larger request carries more.
    is_order = verdict.compared_factor == "scheduler"
    all_known = [c for c in verdict.pooled if c.effect.ratio] if is_order else []
    far = [c for c in all_known if not 1 / FAR < (c.effect.ratio or 1) < FAR]
    if far:
        yield _far(ledger, verdict, far)


def _is_equal(c: Comparison) -> bool:
    return all(abs(ratio - 1) <= EQUAL for ratio in c.round_ratios.values())


def _place(c: Comparison) -> tuple[str, bool | None, str]:
    return c.workload, c.is_direct, c.level


def _equal(verdict: StudyVerdict, found: Sequence[Comparison]) -> Finding:
    levels = list(dict.fromkeys(c.level for c in found))
    names, verb = _names(verdict, levels), "equals" if len(levels) == 1 else "equal"
    baseline = level_text(verdict.compared_factor, verdict.baseline)
    hint = "Nothing that this factor changes came up in this workload."
    if verdict.compared_factor == "scheduler":
        hint = (
            "A scheduler decides only among requests that wait: ask for more of them than the drive"
            " takes at once (more workers or depth, or a small --driver-queue-depth)."
        )
    return Finding(
        "equal_in_model",
        f"{names} {verb} {baseline} to the last digit in every round: the model decided the same"
        f" with {'both' if len(levels) == 1 else 'all of them'}.",
        hint,
        count=len(found),
        strength="shown",
    )


def _compared(metric: Metric, names: tuple[str, str], size: str) -> str:
    ours, theirs = names
    if metric.is_rate:
        return f"{ours} is {size} {joint_of(size)} {theirs}"
    return f"the {metric.compared_label} of {ours} is {size} {joint_of(size)} that of {theirs}"


def _far(ledger: Ledger, verdict: StudyVerdict, found: Sequence[Comparison]) -> Finding:
    from iolab.stats.metrics import METRIC_BY_NAME

    c = max(found, key=lambda c: max(c.effect.ratio or 1, 1 / (c.effect.ratio or 1)))
    ours, theirs = (level_text(verdict.compared_factor, v) for v in (c.level, c.baseline))
    size = size_of_effect(METRIC_BY_NAME[c.metric], c.effect.ratio or 1)
    medians = [_median(verdict.treatments, c, level) for level in (c.level, c.baseline)]
    told = ""
    if medians[0] is not None and medians[1] is not None:
        told = (
            f": half of the operations end within {format_ns(medians[0])} with {ours} and within"
            f" {format_ns(medians[1])} with {theirs}"
        )
    return Finding(
        "far_apart",
        f"in this model {_compared(METRIC_BY_NAME[c.metric], (ours, theirs), size)}{told}."
        + (_mechanism(ledger, c, (ours, theirs)) or _ORDER),
        "`iolab sim trace STUDY.toml --trial ID` writes the order of the requests of either; do not"
        " expect a real device to differ as much.",
        count=len(found),
        evidence=(Evidence("ratio", c.effect.ratio or 1.0, "ratio"),),
        strength="shown",
    )


_ORDER: Final = (
    " Only what is compared differs between them: when each request was sent, and after which"
    " other."
)


CAUSE: Final = "The cause in the model"
"""Begins the sentence about what differs most, other than the results."""


def _mechanism(ledger: Ledger, c: Comparison, names: tuple[str, str]) -> str:
    """Say in which numbers of the mechanism two levels differ most; nothing if they are alike."""
    ours, theirs = (_numbers(ledger, c, level) for level in (c.level, c.baseline))
    distances: dict[str, float] = {}
    for name in ours.keys() & theirs.keys() & _CAUSES.keys():
        least = _CAUSES[name][1]
        low, high = sorted(max(least, value) for value in (ours[name], theirs[name]))
        distances[name] = high / low
    ranked = sorted(distances, key=lambda name: (-distances[name], name))
    told = [
        f"{_CAUSES[name][0]} {_number(ours[name])} with {names[0]},"
        f" {_number(theirs[name])} with {names[1]}"
        for name in ranked[:_CAUSES_MAX]
        if distances[name] >= _ALIKE
    ]
    return f" {CAUSE}: {'; '.join(told)}." if told else ""


def _numbers(ledger: Ledger, c: Comparison, level: str) -> dict[str, float]:
    """Mechanism of a level, as a mean over its trials of this workload."""
    factor = ledger.data.study.compared_factor
    facts = ledger.data.varying_facts.get(MECHANISM, {})
    sums: dict[str, list[float]] = {}
    for trial in ledger.data.trials:
        if trial.workload != c.workload or trial.levels.get(factor) != level:
            continue
        text = facts.get(trial.trial_id, ledger.data.facts.get(MECHANISM, ""))
        for part in text.split():
            name, _, value = part.partition("=")
            sums.setdefault(name, []).append(float(value))
    return {name: sum(values) / len(values) for name, values in sums.items()}


def _number(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2g}" if value < 1 else f"{value:.1f}"


def _median(treatments: Sequence[TreatmentSummary], c: Comparison, level: str) -> float | None:
    """Return the median service time of the first operation of a level."""
    place = (c.workload, c.is_direct, level, MEDIAN)
    for t in treatments:
        if (t.workload, t.is_direct, t.level, t.metric) == place:
            return t.value
    return None


def _names(verdict: StudyVerdict, levels: Sequence[str]) -> str:
    names = [level_text(verdict.compared_factor, level) for level in levels]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
