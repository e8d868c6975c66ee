"""Command that measures a stored study again, or otherwise."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from iolab import units
from iolab.store.rows import StudyRow, TrialRow, TrialStatus
from iolab.study.influence import PAGE_CACHE_FACTORS
from iolab.study.names import ENGINES
from iolab.study.words import PAST_THE_CACHE, without_options
from iolab.wording import counted

FILE = "study.toml"
"""Path at which the study is taken to be saved, if it is one that can be."""
PLACE = "DIR"
"""Stands in reports for the directory that holds the study; what is printed names it."""
_RESERVE: Final = 1.2
"""A budget is advised for trials that take so many times as long as those before."""
_OF_MEMORY: Final = frozenset(engine.name for engine in ENGINES if not engine.has_direct)
"""Engines of mappings and streams."""
_MINUTE_NS: Final = 60_000_000_000


def command_again(study: StudyRow, *, rounds: int | None = None) -> str:
    """Return the command line, with another number of rounds if one is given.

    Of an imported study it is the one that imports it.
    """
    if study.kind == "imported":
        return f"iolab import {file_word(study.testbed.removeprefix('imported:'))}"
    if study.command:
        dialect, *words = study.command
        if rounds is not None:
            words = ["--repeat", str(rounds), *without_options(words, ["--repeat", "--rounds"])]
        return shlex.join(["iolab", dialect, *without_options(words, ["--out"])])
    return f"iolab run {FILE}" + (f" --rounds {rounds}" if rounds is not None else "")


def file_word(name: str) -> str:
    """Return the word of a command that means a file, whatever its name; never an option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def command_on(
    study: StudyRow,
    *,
    rounds: int | None = None,
    place: str = PLACE,
    trials: Sequence[TrialRow] = (),
) -> str:
    """Return the command that continues a stored study in its directory, `place`.

    Parameters
    ----------
    rounds : those it is to have in the end; None leaves those that were planned.
    trials : those of the study. The command names a larger budget if theirs is too small.
    """
    more = f" --rounds {rounds}" if rounds is not None and rounds > study.rounds_planned else ""
    budget_ns = _budget_ns(study)
    if budget_ns is not None:
        needed_ns = _needed_ns(trials, rounds or study.rounds_planned)
        if needed_ns is not None and needed_ns > budget_ns:
            more += f" --budget {_whole_minutes(needed_ns)}"
    return f"iolab run {place} --resume{more}"


def enough_budget(spent_ns: int, rest_ns: int) -> str:
    """Return a budget for what was spent and for trials that would need `rest_ns`."""
    return _whole_minutes(_with_reserve(spent_ns, rest_ns))


def _with_reserve(spent_ns: float, rest_ns: float) -> int:
    return math.ceil(spent_ns + _RESERVE * rest_ns)


def _whole_minutes(time_ns: int) -> str:
    return units.format_duration(-(-time_ns // _MINUTE_NS) * _MINUTE_NS)


def _needed_ns(trials: Sequence[TrialRow], rounds: int) -> int | None:
    """Budget for so many rounds, by the times of finished trials; None if there are none."""
    spent_ns = sum(trial.elapsed_ns or 0 for trial in trials)
    times = dict[str, list[int]]()
    for trial in trials:
        own = times.setdefault(_treatment(trial), [])
        if trial.status == "ok" and trial.elapsed_ns:
            own.append(trial.elapsed_ns)
    means = {name: sum(own) / len(own) for name, own in times.items() if own}
    if not means:
        return None
    usual_ns = sum(means.values()) / len(means)
    round_ns = sum(means.get(name, usual_ns) for name in times)
    rounds = max(rounds, *(trial.round for trial in trials))
    done = (_treatment(trial) for trial in trials if trial.status == "ok")
    done_ns = sum(means.get(name, usual_ns) for name in done)
    return _with_reserve(spent_ns, max(0, rounds * round_ns - done_ns))


def _treatment(trial: TrialRow) -> str:
    return repr((trial.workload, sorted(trial.levels.items())))


def named(text: str, directory: Path) -> str:
    """Return a text of a report with the study's directory named in its commands."""
    return text.replace(f"`iolab run {PLACE} ", f"`iolab run {shlex.quote(str(directory))} ")


def option_past_the_cache(study: StudyRow) -> str:
    """Return the option for direct I/O of the study, or of its command; empty if it has none.

    Direct I/O takes away what a study compares where only buffered files feel it, engines of
    mappings and streams refuse it, and workloads in words of a dialect say it themselves.
    """
    if study.command:
        return PAST_THE_CACHE.get(study.command[0], "")
    engines = {*study.factors.get("engine", ()), study.settings.get("engine", "")}
    is_refused = study.compared_factor in PAGE_CACHE_FACTORS or engines & _OF_MEMORY
    return "" if is_refused or dialects_of(study) else "--direct"


def dialects_of(study: StudyRow) -> set[str]:
    """Return the dialects in whose words workloads of the study are written."""
    workloads = cast("list[Mapping[str, object]]", _spec(study).get("workloads", []))
    return {str(one["dialect"]) for one in workloads if "dialect" in one}


def is_continuable(study: StudyRow) -> bool:
    """Return whether --resume can go on with it: with what holds its workloads as data."""
    if study.kind == "imported":
        return False
    workloads = cast("list[Mapping[str, object]]", _spec(study).get("workloads", []))
    return not study.command or any("dialect" in one for one in workloads)


def way_on(
    study: StudyRow, directory: Path, statuses: Mapping[str, TrialStatus], n_planned: int
) -> str:
    """Say what to do about a study that lies where another one should begin.

    `statuses` are those of the trials that were tried, of `n_planned`.
    """
    place = shlex.quote(str(directory))
    other = f"`iolab report {place}` shows it; choose another --out"
    if not is_continuable(study):
        return other
    on = command_on(study, place=place)
    n_failed = sum(1 for status in statuses.values() if status == "failed")
    if n_failed:
        return (
            f"correct why {counted(n_failed, 'trial')} failed, then continue it with `{on}`, or "
            "choose another --out"
        )
    if _budget_ns(study) is not None:
        return (
            f"continue it with `{on}`, and a larger --budget if that is spent, or choose another "
            "--out"
        )
    if n_planned and len(statuses) == n_planned and set(statuses.values()) == {"ok"}:
        more = command_on(study, rounds=2 * study.rounds_planned, place=place)
        return f"it is finished: {other}, or add rounds, as with `{more}`"
    return f"continue it with `{on}`, or choose another --out"


def finish_hint(study: StudyRow, trials: Sequence[TrialRow] = ()) -> str:
    """Say what to do about `trials` that are missing."""
    if not is_continuable(study):
        return (
            f"A command line cannot be continued: measure it again with `{command_again(study)}`."
        )
    return f"Finish them: `{command_on(study, trials=trials)}`."


def rounds_hint(study: StudyRow, rounds: int, trials: Sequence[TrialRow] = ()) -> str:
    """Say how to get so many rounds; `trials` are those of the study."""
    if not can_get_rounds(study):
        return f"Measure at least {rounds} rounds: `{command_again(study, rounds=rounds)}`."
    on = command_on(study, rounds=rounds, trials=trials)
    return f"Measure at least {rounds} rounds: `{on}`."


def can_get_rounds(study: StudyRow) -> bool:
    """Return whether rounds can be added to what is stored: not where looks divide their number."""
    return is_continuable(study) and "looks" not in _spec(study)


def _budget_ns(study: StudyRow) -> int | None:
    """Time after which a study ends, before its last round; None if it has none that is one."""
    budget = _spec(study).get("budget")
    try:
        return units.parse_duration_ns(budget) if isinstance(budget, str) else None
    except ValueError:
        return None


def _spec(study: StudyRow) -> dict[str, object]:
    """The stored study as a table; empty if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(study.spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def device_hint(study: StudyRow) -> str:
    """Say how to measure the device instead of memory."""
    own = [PAST_THE_CACHE[name] for name in sorted(dialects_of(study)) if name in PAST_THE_CACHE]
    option = option_past_the_cache(study)
    ways = f"{option} or " if option else f"{' or '.join(own)} in its command, or " if own else ""
    if option and not study.command:
        ways = f"{option}, a cold cache, or "
    return f"Use {ways}files larger than memory to measure the device."
