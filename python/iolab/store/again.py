"""What to type to measure a stored study again, or otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from iolab.store.rows import StudyRow

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
            words = ["--repeat", str(rounds), *without_options(words, ["--repeat"])]
        return shlex.join(["iolab", dialect, *without_options(words, ["--out"])])
    return f"iolab run {FILE}" + (f" --rounds {rounds}" if rounds is not None else "")


def option_past_the_cache(study: StudyRow) -> str:
    """Return the option that the study's command has for direct I/O; empty if it has none."""
    return _PAST_THE_CACHE.get(study.command[0], "") if study.command else "--direct"


def finish_hint(study: StudyRow) -> str:
    """Say what to do about trials that are missing."""
    if study.command:
        return (
            f"A command line cannot be continued: measure it again with `{command_again(study)}`."
        )
    return "Finish them: the command that began the study once more, with --resume added."


def rounds_hint(study: StudyRow, rounds: int) -> str:
    """Say how to get so many rounds."""
    if study.command:
        return f"Measure at least {rounds} rounds: `{command_again(study, rounds=rounds)}`."
    return f"Plan at least {rounds} rounds; --rounds or a larger --budget."


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
