"""What to type to measure a stored study again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from iolab.store.rows import StudyRow

FILE = "study.toml"
"""Where the study is taken to be saved, if it is one that can be."""
_REPLACED = ("--repeat", "--out")


def command_again(study: StudyRow, *, rounds: int | None = None) -> str:
    """Return the command line, with another number of rounds if one is given.

    Of an imported study it is the one that imports it.
    """
    if study.kind == "imported":
        return f"iolab import {study.testbed.removeprefix('imported:')}"
    if study.command:
        dialect, *words = study.command
        repeat = ["--repeat", str(rounds)] if rounds is not None else list(_kept(words))
        return shlex.join(["iolab", dialect, *repeat, *_without(words)])
    return f"iolab run {FILE}" + (f" --rounds {rounds}" if rounds is not None else "")


def _kept(words: Sequence[str]) -> Iterator[str]:
    """Give the number of rounds as it was typed."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--repeat":
            yield from (word, following)
        elif word.startswith("--repeat="):
            yield word


def _without(words: Sequence[str]) -> Iterator[str]:
    """Leave out the number of rounds, and where results went."""
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in _REPLACED:
            is_value = True
        elif word.partition("=")[0] not in _REPLACED:
            yield word
