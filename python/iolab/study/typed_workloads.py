"""Workloads as they are typed: a command, a workload file, the name of a preset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.errors import StudyError
from iolab.study.dialects import DIALECTS, described_entry, different, words_of
from iolab.study.presets import PRESETS
from iolab.wording import nearest

CONTENTION: Final = "contention"
"""Kind of a workload that is named only: a preset, which becomes a mixed workload."""


def typed_workloads(texts: Sequence[str], place: str) -> list[dict[str, object]]:
    """Entries of a study, whose names differ: a second ``iozone`` is called ``iozone-2``.

    Parameters
    ----------
    texts : commands, names of files and of presets.
    place : option or argument that they come from, for messages.

    Raises
    ------
    StudyError : a text is none of these; names the nearest that is known.
    """
    entries = [_typed(text, place) for text in texts]
    names = different([str(entry["name"]) for entry in entries])
    return [{**entry, "name": name} for entry, name in zip(entries, names, strict=True)]


def _typed(text: str, place: str) -> dict[str, object]:
    entry = described_entry(text)
    if entry is not None:
        return dict[str, object](entry)
    presets = [preset.name for preset in PRESETS]
    if text in presets:
        return {"name": text, "kind": CONTENTION, "preset": text}
    programs = [dialect.name for dialect in DIALECTS if not dialect.has_file]
    first = next(iter(words_of(text)), "")
    known = [*presets, *programs]
    raise StudyError(
        f"{place}: '{text}' is not a workload{nearest(first, known)}",
        f"write a command of {', '.join(programs[:-1])} or {programs[-1]} (as in 'iozone -s 64m "
        f"-i 0'), or the name of a workload file (.toml); presets are {', '.join(presets)}",
    )
