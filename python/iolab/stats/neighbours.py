"""Facts of whole trials beyond their ratios: how far apart neighbours ran, and who waited for CPUs.

Work that must stay in whole trials (new files, knobs of the machine, longest waits) meets noise
that lives for seconds. Two things help: levels that are compared run next to each other
(``design = "adjacent"``), and the kernel counts how long a worker was ready and had no processor.
A round in which one side waited longer than the other says less about the level; with the run delay
as covariate the estimate is freed of that. It stands beside the verdict and changes no word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Final

from iolab.frozen import frozen
from iolab.stats.finding import Evidence, Finding
from iolab.stats.ledger import Ledger
from iolab.stats.methods.covariate import Adjusted, adjusted_mean
from iolab.stats.methods.student import estimate_mean
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.pairing import pooled_log_ratios
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.rows import StudyData, TrialRow

RUNNING: Final = METRIC_BY_NAME["running_share"]
NARROWER: Final = 0.95
"""An adjusted interval is told if it is at most so much of the plain one."""
MOVED_P: Final = 0.05
"""Below this p the level itself changes how long workers wait."""
CONFIDENCE: Final = 0.95


@frozen
class Apart:
    """Distances between the timed regions of neighbours, in ns."""

    median_ns: float
    longest_ns: float
    pairs: int


def adjacent_text(data: StudyData) -> str:
    """Name the design of adjacent trials, empty for another: ``adjacent trials, 0.4 s apart``."""
    if not data.study.is_adjacent:
        return ""
    found = apart(data)
    return "adjacent trials" if found is None else f"adjacent trials, {_text(found)}"


def _text(found: Apart) -> str:
    return f"{format_ns(found.median_ns)} apart (at most {format_ns(found.longest_ns)})"


def apart(data: StudyData) -> Apart | None:
    """Measure the time from the end of a trial to the timed region of its neighbour.

    What a trial does before (making its file, dropping caches) lies between; phases are taken to
    follow each other up to the end of their trial. None where no two neighbours are stored.
    """
    timed: dict[str, int] = {}
    for detail in data.phase_details:
        phase = detail["operation"].partition("/")[0].partition("@")[0]
        timed[f"{detail['trial_id']}/{phase}"] = detail["elapsed_ns"] or 0
    lengths: dict[str, int] = {}
    for name, elapsed_ns in timed.items():
        trial_id = name.partition("/")[0]
        lengths[trial_id] = lengths.get(trial_id, 0) + elapsed_ns
    factor = data.study.compared_factor
    ran = sorted((t for t in data.trials if t.status == "ok"), key=lambda trial: trial.ordinal)
    found = [
        float(gap)
        for one, two in pairwise(ran)
        if two.ordinal == one.ordinal + 1 and _are_alike(one, two, factor)
        for gap in _gap(one, two, lengths)
    ]
    return Apart(median(found), max(found), len(found)) if found else None


def _are_alike(one: TrialRow, two: TrialRow, factor: str) -> bool:
    """True if two trials differ in the compared factor alone."""
    rest = [{k: v for k, v in t.levels.items() if k != factor} for t in (one, two)]
    return one.round == two.round and one.workload == two.workload and rest[0] == rest[1]


def _gap(one: TrialRow, two: TrialRow, lengths: dict[str, int]) -> Iterator[int]:
    if None in (one.started_at_unix_ns, one.elapsed_ns, two.started_at_unix_ns, two.elapsed_ns):
        return
    ended = (one.started_at_unix_ns or 0) + (one.elapsed_ns or 0)
    before = max(0, (two.elapsed_ns or 0) - lengths.get(two.trial_id, two.elapsed_ns or 0))
    yield max(0, (two.started_at_unix_ns or 0) + before - ended)


def about_neighbours(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield how far neighbours were apart, and what run delay explains."""
    data = ledger.data
    found = apart(data) if data.study.is_adjacent else None
    if found is not None:
        yield Finding(
            "adjacent_trials",
            f"levels of {data.study.compared_factor} ran next to each other: their timed regions"
            f" were {_text(found)}.",
            "Smaller files or fewer tests bring them closer.",
            evidence=(
                Evidence("median", found.median_ns, "ns"),
                Evidence("longest", found.longest_ns, "ns"),
                Evidence("pairs", found.pairs),
            ),
        )
    told = [(c, *row) for c in verdict.headline for row in _of_run_delay(ledger, c)]
    if told:
        yield _adjusted(told)


def _of_run_delay(ledger: Ledger, c: Comparison) -> Iterator[tuple[Adjusted, float]]:
    """Yield the estimate with run delay as covariate, if that is narrower, and half the plain width
    (ln).
    """
    metric = METRIC_BY_NAME[c.metric]
    if metric is RUNNING or not c.effect.ratio:
        return
    cells = ledger.cells_asked(metric, c.group)
    waits = {key: v for key, v in ledger.cells.get(RUNNING.name, {}).items() if key in cells}
    values = pooled_log_ratios(cells, metric, c.level, c.baseline)
    others = pooled_log_ratios(waits, RUNNING, c.level, c.baseline)
    both = sorted(values.keys() & others.keys())
    if not both or len(both) < len(values):
        return
    xs = [others[number] for number in both]
    found = adjusted_mean([values[number] for number in both], xs)
    plain = estimate_mean([values[number] for number in both]).half_width(CONFIDENCE)
    if found is None or found.half_width(CONFIDENCE) > NARROWER * plain:
        return
    moved = estimate_mean(xs).p_value()
    if moved is not None and moved < MOVED_P:
        return  # The level makes its workers wait: that is a part of its effect.
    yield found, plain


def _adjusted(told: list[tuple[Comparison, Adjusted, float]]) -> Finding:
    says, evidence = list[str](), list[Evidence]()
    for c, found, plain in told:
        half = found.half_width(CONFIDENCE)
        low, ratio, high = (math.exp(found.mean + sign * half) for sign in (-1, 0, 1))
        names = f"{c.level} against {c.baseline}"
        narrower = 1 - half / plain
        says.append(f"{names} {ratio:.3f} [{low:.3f}, {high:.3f}] ({narrower:.0%} narrower)")
        evidence.append(Evidence(f"{names} at equal run delay", ratio, "ratio", low, high))
    return Finding(
        "run_delay",
        "with the workers' wait for a processor as covariate the ratios are, above 1 better:"
        f" {'; '.join(says)}. Some of the spread is the machine's processors.",
        "Leave more processors free; the words rest on the plain ratios.",
        count=len(told),
        evidence=tuple(evidence),
        strength="shown",
    )
