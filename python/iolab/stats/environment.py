"""Was it the same machine throughout? Facts of the trials compared with each other.

Identity facts (kernel, processor, machine) must not change inside a study; conditions (clock
source, governor, turbo, huge pages) should not. Where they did, rounds that ran wholly in one
environment are still fair, because levels are compared inside a round; rounds that span a change
are named. Facts that iolab itself varies, and those that change by nature (load, frequency, free
memory), are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.frozen import frozen
from iolab.stats.finding import Finding
from iolab.stats.ledger import Ledger
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

IDENTITY: Final = (
    "kernel.release",
    "kernel.version",
    "cpu.model",
    "cpu.count",
    "dmi.product",
    "virtualization",
)
CONDITIONS: Final = (
    "kernel.cmdline",
    "clocksource",
    "cpu.governor",
    "cpu.no_turbo",
    "cpu.online",
    "cpu.smt",
    "memory.transparent_hugepages",
)
_VALUE_MAX: Final = 40


@frozen
class Change:
    """One fact that was not the same in all trials."""

    fact: str
    values: tuple[str, ...]
    """In the order of first appearance."""
    first_changed_trial: str
    mixed_rounds: tuple[int, ...]
    """Rounds with more than one value."""


def environment_changes(data: StudyData, facts: tuple[str, ...]) -> list[Change]:
    """Compare the named facts over the finished trials; those unknown in a trial say nothing."""
    changes: list[Change] = []
    for fact in facts:
        by_trial = data.varying_facts.get(fact)
        if not by_trial:
            continue
        seen: dict[str, str] = {}
        by_round: dict[int, set[str]] = {}
        for trial in sorted(data.trials, key=lambda trial: trial.started_at_unix_ns or 0):
            value = by_trial.get(trial.trial_id)
            if value is not None:
                seen.setdefault(value, trial.trial_id)
                by_round.setdefault(trial.round, set()).add(value)
        if len(seen) > 1:
            mixed = tuple(sorted(r for r, values in by_round.items() if len(values) > 1))
            changes.append(Change(fact, tuple(seen), list(seen.values())[1], mixed))
    return changes


def about_environment(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield the doubts about an environment that changed."""
    data = ledger.data
    identity = environment_changes(data, IDENTITY)
    if identity:
        yield Finding(
            "environment_changed",
            f"trials ran on more than one machine or kernel ({_listed(identity)}).",
            _hint(
                identity,
                "absolute values of different rounds are not comparable",
                "on one machine and kernel",
            ),
            count=len(identity),
        )
    conditions = environment_changes(data, CONDITIONS)
    if conditions:
        yield Finding(
            "conditions_changed",
            f"conditions of the machine changed between trials ({_listed(conditions)}).",
            _hint(
                conditions,
                "rounds before and after may differ in level",
                "with these settings held",
            ),
            count=len(conditions),
        )


def _listed(changes: list[Change]) -> str:
    texts = [
        f"{change.fact}: {' then '.join(_short(value) for value in change.values)}, from trial"
        f" {change.first_changed_trial} on"
        for change in changes[:2]
    ]
    rest = len(changes) - len(texts)
    return "; ".join([*texts, *([f"{rest} more"] if rest else [])])


def _hint(changes: list[Change], fair: str, again: str) -> str:
    mixed = sorted({r for change in changes for r in change.mixed_rounds})
    if mixed:
        names = ", ".join(map(str, mixed[:5])) + (" ..." if len(mixed) > 5 else "")
        return (
            f"Inside round {names} levels were compared across the change: do not trust these;"
            f" run the study again {again}."
        )
    return f"No round spans a change, so that ratios are fair; {fair}."


def _short(value: str) -> str:
    return value if len(value) <= _VALUE_MAX else f"{value[: _VALUE_MAX - 3]}..."
