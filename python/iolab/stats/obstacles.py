"""Obstacles that more rounds, or finishing a study, would not remove: one setting twice, trials
that fail.

Advice to measure on is printed only where measuring on can help.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from iolab.frozen import replace
from iolab.stats.ledger import level_text
from iolab.stats.verdict import CellComparison, Comparison
from iolab.store.equal_levels import EqualLevels, find_equal_file_systems, find_equal_levels
from iolab.store.rows import StudyData
from iolab.wording import counted

_NAMED_MAX: Final = 3
_Compared = TypeVar("_Compared", Comparison, CellComparison)


def equal_levels(data: StudyData) -> list[EqualLevels]:
    """Find the levels that are two names for one setting, by what was read back."""
    equal = find_equal_levels(
        (trial.levels, data.knobs[trial.trial_id])
        for trial in data.trials
        if trial.trial_id in data.knobs
    )
    return equal + find_equal_file_systems(
        (trial.levels, data.file_systems[trial.trial_id])
        for trial in data.trials
        if trial.trial_id in data.file_systems
    )


def without_promise(data: StudyData, found: Sequence[_Compared]) -> list[_Compared]:
    """Promise no number of rounds where a level and its baseline are one setting."""
    names = {
        e.second: e.first for e in equal_levels(data) if e.factor == data.study.compared_factor
    }
    if not names:
        return list(found)
    return [
        replace(
            c,
            effect=replace(
                c.effect,
                further_rounds=None,
                is_further_rounds_above_limit=False,
                is_further_rounds_at_least=False,
            ),
        )
        if names.get(c.level, c.level) == names.get(c.baseline, c.baseline)
        else c
        for c in found
    ]


def always_failed(data: StudyData) -> list[str]:
    """Name the levels of the compared factor of which every trial that was run failed."""
    factor = data.study.compared_factor
    tried: dict[str, set[str]] = {}
    for trial in data.trials:
        if trial.status in ("ok", "failed") and factor in trial.levels:
            tried.setdefault(trial.levels[factor], set()).add(trial.status)
    return [level for level, seen in tried.items() if seen == {"failed"}]


def obstacle(data: StudyData) -> str:
    """Say what keeps a study from being finished as it is; empty if nothing is known to."""
    equal = equal_levels(data)
    if equal:
        return f"{equal[0].hint}, in a new study: a level is not compared with itself"
    failed = always_failed(data)
    if failed:
        names = _listed(level_text(data.study.compared_factor, level) for level in failed)
        return f"correct first why every trial of {names} failed, or leave it out in a new study"
    return ""


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    rest = len(known) - _NAMED_MAX
    if rest > 0:
        known = [*known[:_NAMED_MAX], counted(rest, "other level")]
    return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)
