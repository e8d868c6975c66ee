"""The most that a throughput could have been, by name, beside what it was.

Three bounds are known. *Load generator alone*: what the harness costs an operation on the null
target, measured beside the trial, times records and workers; a throughput near it measures iolab.
*Device specification*: what the data sheet promises, if the study says it; a throughput above it
never came from the device. *Memory*: what all processors together copy, measured by the agent
before the first trial; a throughput near it measures memory, one above it came from the caches of
the processors.

Source: Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC'15, rule 11.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from iolab.stats.finding import About, Evidence, Finding
from iolab.stats.lookups import of_metric
from iolab.stats.metrics.metric import format_bytes_per_s
from iolab.stats.verdict import StudyVerdict, UpperBound
from iolab.store.rows import PhaseDetail, StudyData, StudyRow
from iolab.units import format_bytes, parse_bytes, parse_rate

METRIC: Final = "throughput_bytes_per_s"
GENERATOR: Final = "load generator alone (null target)"
SPECIFICATION: Final = "device specification"
MEMORY: Final = "memory (copied by all processors)"
MEMORY_FACT: Final = "memory.copy_bytes_per_s"
_GROUPED: Final = "records_grouped"
"""Code of the caveat of operations that move several records at once."""
ABOVE: Final = 1.02
"""Beyond the bound by more than its rounding."""


@dataclass(slots=True)
class _Place:
    ceilings: list[float]
    kind: str | None = None
    """Kind of the operation, as its records say."""
    best: float = 0.0
    is_cached: bool = False


def upper_bounds(data: StudyData) -> list[UpperBound]:
    """Return every known bound, per workload, operation and record size; none for a table."""
    places: dict[tuple[str, str, str], _Place] = defaultdict(lambda: _Place([]))
    trials = {trial.trial_id: trial for trial in data.trials}
    sizes: dict[tuple[str, str], tuple[str, str, str]] = {}
    values = of_metric(data, METRIC)
    grouped = {
        (m.trial_id, m.operation)
        for m in values
        if any(caveat.code == _GROUPED for caveat in m.caveats)
    }
    for detail in data.phase_details:
        trial_id, operation = str(detail["trial_id"]), str(detail["operation"])
        nature = detail["nature"]
        is_known = nature.kind is not None or bool(nature.io_size_bytes)
        if not is_known or trial_id not in trials:
            continue
        trial = trials[trial_id]
        asked = ""
        if (trial_id, operation) in grouped:
            asked = trial.levels.get("record_size", data.study.settings.get("record_size", ""))
        key = (trial.workload, operation, _record_text(operation_bytes(detail), asked))
        sizes[trial_id, operation] = key
        alone = generator_ceiling(detail)
        places[key].ceilings += [] if alone is None else [alone]
        places[key].kind = nature.kind
    for m in values:
        key = sizes.get((m.trial_id, m.operation))
        if key is not None and m.value > places[key].best:
            places[key].best = m.value
            places[key].is_cached = (m.cache_share or 0.0) >= 0.5
    promised = _specification(data.study)
    memory = memory_bytes_per_s(data)
    return [
        bound
        for key, place in places.items()
        if place.best > 0
        for bound in _bounds(key, place, promised, memory)
    ]


def operation_bytes(detail: PhaseDetail) -> int | None:
    """Return the bytes that an operation moves; None if they are unlike, or not known."""
    return detail["nature"].io_size_bytes or None


def generator_ceiling(detail: PhaseDetail) -> float | None:
    """Return what the generator could submit if nothing below it took any time, in bytes/s."""
    cost = detail.get("harness_ns_per_op")
    size = operation_bytes(detail)
    if not cost or size is None:
        return None
    workers = len(detail.get("workers") or []) or 1
    return workers * size * 1e9 / cost


def _record_text(size: int | None, asked: str) -> str:
    """Write the size of records, and of the groups that are moved together."""
    if size is None:
        return ""
    text = format_bytes(size)
    try:
        is_group = bool(asked) and size > parse_bytes(asked) and size % parse_bytes(asked) == 0
    except ValueError:
        is_group = False
    return f"{asked} in groups of {text}" if is_group else text


def memory_bytes_per_s(data: StudyData) -> float | None:
    """Return what memory allowed: the most that any start of the agent measured; None if none."""
    told = [data.facts.get(MEMORY_FACT, ""), *data.varying_facts.get(MEMORY_FACT, {}).values()]
    return max((float(text) for text in told if text.isdecimal() and int(text)), default=None)


def upper_bound_sentence(bounds: list[UpperBound]) -> str:
    """Say how far from their bounds the results are; empty if no bound is known."""
    said: list[str] = []
    for name in (GENERATOR, SPECIFICATION, MEMORY):
        known = [bound for bound in bounds if bound.name == name]
        if not known:
            continue
        most = max(known, key=lambda bound: bound.share)
        record = f" with {most.record}" if most.record else ""
        at_most = format_bytes_per_s(most.bytes_per_s)
        share = _percent(most.share)
        text = (
            f"{name}: at most {at_most}; {most.operation}{record} came nearest with {share} of it"
        )
        if len({bound.bytes_per_s for bound in known}) > 1:
            text = (
                f"{name}: each operation and size has its own; {most.operation}{record} came"
                f" nearest, with {share} of its {at_most}"
            )
        if name == SPECIFICATION and most.share > ABOVE:
            where = "it came from the page cache" if most.is_cached else "not all came from there"
            text = (
                f"{name}: {most.operation} was {most.share:.1f} times as fast as the"
                f" {format_bytes_per_s(most.bytes_per_s)} promised: {where}"
            )
        if name == MEMORY and most.share > ABOVE:
            text = (
                f"{name}: {most.operation}{record} was {most.share:.1f} times as fast as these"
                f" {format_bytes_per_s(most.bytes_per_s)}: it came from the processors' caches"
            )
        said.append(text)
    return f"Upper bounds: {'; '.join(said)}." if said else ""


def bound_findings(verdict: StudyVerdict) -> Iterator[Finding]:
    """Write every bound as a finding, with the share of it that was reached."""
    for bound in verdict.upper_bounds:
        where = " · ".join(t for t in (bound.workload, bound.operation, bound.record) if t)
        said = f"{format_bytes_per_s(bound.best_bytes_per_s)} of at most"
        said += f" {format_bytes_per_s(bound.bytes_per_s)}, {_percent(bound.share)}"
        yield Finding(
            "upper_bound",
            f"{where}: {said} ({bound.name}).",
            evidence=(
                Evidence("bound", bound.name),
                Evidence("at most", bound.bytes_per_s, "bytes/s"),
                Evidence("best", bound.best_bytes_per_s, "bytes/s"),
                Evidence("reached", bound.share, "share"),
            ),
            about=About("cell", where, bound.workload, bound.operation),
            brief=said,
        )


def upper_bound_closing(_: StudyData, verdict: StudyVerdict) -> str:
    """Say how near the results came to what was possible."""
    return upper_bound_sentence(verdict.upper_bounds)


def _bounds(
    key: tuple[str, str, str], place: _Place, promised: dict[str, int], memory: float | None
) -> list[UpperBound]:
    workload, operation, record = key
    found: list[UpperBound] = []
    reached = (place.best, place.is_cached)
    if place.ceilings:
        alone = median(place.ceilings)
        found.append(UpperBound(GENERATOR, workload, operation, record, alone, *reached))
    if place.kind in promised:  # Of reading and of writing, and of nothing else.
        most = float(promised[place.kind])
        found.append(UpperBound(SPECIFICATION, workload, operation, "", most, *reached))
    if memory is not None:
        found.append(UpperBound(MEMORY, workload, operation, record, memory, *reached))
    return found


def _specification(study: StudyRow) -> dict[str, int]:
    try:
        asked: dict[str, Any] = tomllib.loads(study.spec_toml).get("specification", {})
        return {name: parse_rate(rate) for name, rate in asked.items()}
    except (tomllib.TOMLDecodeError, ValueError):  # An imported study has no file of ours.
        return {}


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %"
