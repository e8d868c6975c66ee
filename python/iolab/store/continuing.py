"""What to type to measure a stored study again, or otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from iolab.store.rows import StudyRow, TrialStatus
from iolab.wording import counted

FILE = "study.toml"
"""Where the study is taken to be saved, if it is one that can be."""
_PAST_THE_CACHE = {"iozone": "-I", "bonnie++": "-D"}


def command_again(study: StudyRow, *, rounds: int | None = None) -> str:
    """Return the command line, with another number of rounds if one is given.

    Of an imported study it is the one that imports it.
    """
    if study.kind == "imported":
        return f"iolab import {study.testbed.removeprefix('imported:')}"
    if study.command:
        dialect, *words = study.command
        if rounds is not None:
            words = ["--repeat", str(rounds), *without_options(words, ["--repeat", "--rounds"])]
        return shlex.join(["iolab", dialect, *without_options(words, ["--out"])])
    return f"iolab run {FILE}" + (f" --rounds {rounds}" if rounds is not None else "")


def option_past_the_cache(study: StudyRow) -> str:
    """Return the option that the study's command has for direct I/O; empty if it has none."""
    return _PAST_THE_CACHE.get(study.command[0], "") if study.command else "--direct"


def is_continuable(study: StudyRow) -> bool:
    """Return whether --resume can go on with it: with what holds its workloads as data."""
    if study.kind == "imported":
        return False
    return not study.command or any("dialect" in one for one in _spec(study).get("workloads", ()))


def way_on(
    study: StudyRow, directory: Path, statuses: Mapping[str, TrialStatus], n_planned: int
) -> str:
    """Say what to do about a study that lies where another one should begin.

    `statuses` are those of the trials that were tried, of `n_planned`.
    """
    other = f"`iolab report {shlex.quote(str(directory))}` shows it; choose another --out"
    if not is_continuable(study):
        return other
    n_failed = sum(1 for status in statuses.values() if status == "failed")
    if n_failed:
        return (
            f"correct why {counted(n_failed, 'trial')} failed, then continue it with --resume, or "
            "choose another --out"
        )
    if _has_budget(study):
        return (
            "continue it with --resume, and a larger --budget if that is spent, or choose another "
            "--out"
        )
    if n_planned and len(statuses) == n_planned and set(statuses.values()) == {"ok"}:
        return f"it is finished: {other}, or add more rounds with --resume --rounds"
    return "continue it with --resume, or choose another --out"


def finish_hint(study: StudyRow) -> str:
    """Say what to do about trials that are missing."""
    if not is_continuable(study):
        return (
            f"A command line cannot be continued: measure it again with `{command_again(study)}`."
        )
    more = " If its budget is used up, give a larger one, too." if _has_budget(study) else ""
    return f"Finish them: type the command that began the study again, with --resume added.{more}"


def rounds_hint(study: StudyRow, rounds: int) -> str:
    """Say how to get so many rounds."""
    if study.command:
        return f"Measure at least {rounds} rounds: `{command_again(study, rounds=rounds)}`."
    added = ["--resume"]
    if study.rounds_planned < rounds:
        added.append(f"--rounds {rounds}")
    if _has_budget(study):
        added.append("a larger --budget")
    options = " and ".join([", ".join(added[:-1]), added[-1]] if len(added) > 1 else added)
    return (
        f"Measure at least {rounds} rounds: type the command that began the study again, with"
        f" {options}."
    )


def _has_budget(study: StudyRow) -> bool:
    """Whether a study may end by its budget, before its last round."""
    return "budget" in _spec(study)


def _spec(study: StudyRow) -> dict[str, Any]:
    """The stored study as a table; empty if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(study.spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def device_hint(study: StudyRow) -> str:
    """Say how to measure the device instead of memory."""
    option = option_past_the_cache(study)
    ways = "--direct, a cold cache, or " if not study.command else f"{option} or " if option else ""
    return f"Use {ways}files larger than memory to measure the device."


def without_options(words: Sequence[str], with_value: Collection[str]) -> list[str]:
    """Return words without these options and their values."""
    found = list[str]()
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in with_value:
            is_value = True
        elif word.partition("=")[0] not in with_value:
            found.append(word)
    return found
