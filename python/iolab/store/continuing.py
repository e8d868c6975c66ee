"""Command that measures a stored study again, or otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from iolab.store.rows import StudyRow, TrialStatus
from iolab.study.words import PAST_THE_CACHE, without_options
from iolab.wording import counted

FILE = "study.toml"
"""Path at which the study is taken to be saved, if it is one that can be."""
PLACE = "DIR"
"""Stands in reports for the directory that holds the study; what is printed names it."""


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


def command_on(study: StudyRow, *, rounds: int | None = None, place: str = PLACE) -> str:
    """Return the command that continues a stored study in its directory, `place`.

    `rounds` are those it is to have in the end; None leaves those that were planned.
    """
    more = f" --rounds {rounds}" if rounds is not None and rounds > study.rounds_planned else ""
    return f"iolab run {place} --resume{more}"


def named(text: str, directory: Path) -> str:
    """Return a text of a report with the study's directory named in its commands."""
    return text.replace(f"`iolab run {PLACE} ", f"`iolab run {shlex.quote(str(directory))} ")


def option_past_the_cache(study: StudyRow) -> str:
    """Return the option that the study's command has for direct I/O; empty if it has none."""
    return PAST_THE_CACHE.get(study.command[0], "") if study.command else "--direct"


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
    if _has_budget(study):
        return (
            f"continue it with `{on}`, and a larger --budget if that is spent, or choose another "
            "--out"
        )
    if n_planned and len(statuses) == n_planned and set(statuses.values()) == {"ok"}:
        more = command_on(study, rounds=2 * study.rounds_planned, place=place)
        return f"it is finished: {other}, or add rounds, as with `{more}`"
    return f"continue it with `{on}`, or choose another --out"


def finish_hint(study: StudyRow) -> str:
    """Say what to do about trials that are missing."""
    if not is_continuable(study):
        return (
            f"A command line cannot be continued: measure it again with `{command_again(study)}`."
        )
    more = " If its budget is used up, give a larger one, too." if _has_budget(study) else ""
    return f"Finish them: `{command_on(study)}`.{more}"


def rounds_hint(study: StudyRow, rounds: int) -> str:
    """Say how to get so many rounds."""
    if not can_get_rounds(study):
        return f"Measure at least {rounds} rounds: `{command_again(study, rounds=rounds)}`."
    more = " and a larger --budget" if _has_budget(study) else ""
    return f"Measure at least {rounds} rounds: `{command_on(study, rounds=rounds)}`{more}."


def can_get_rounds(study: StudyRow) -> bool:
    """Return whether rounds can be added to what is stored: not where looks divide their number."""
    return is_continuable(study) and "looks" not in _spec(study)


def _has_budget(study: StudyRow) -> bool:
    """Tell whether a study may end by its budget, before its last round."""
    return "budget" in _spec(study)


def _spec(study: StudyRow) -> dict[str, object]:
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
