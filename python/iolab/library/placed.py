"""A verdict as it is printed: commands name the directory of its study, nothing is told twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from iolab.frozen import replace
from iolab.store.continuing import named

T = TypeVar("T")
TOLD: Final = "told above, before the first trial"
"""Stands in the place of a caveat that could still be heeded then."""


def placed(verdict: T, directory: Path | None) -> T:
    """The same verdict, to be printed: hints name `directory` where stored ones write ``DIR``.

    Parameters
    ----------
    verdict : the judged study; something else, of stand-ins for the statistics, stays as it is.
    directory : where the study is stored; None is an archive, which is unpacked first.
    """
    from iolab.stats.verdict import StudyVerdict

    if directory is None or not isinstance(verdict, StudyVerdict):
        return verdict
    caveats = [replace(one, hint=named(one.hint, directory)) for one in verdict.caveats]
    return replace(verdict, caveats=caveats)


def told_once(verdict: T, told: Sequence[str]) -> T:
    """The same verdict, to be printed below notes of which some have the words of its caveats."""
    from iolab.stats.verdict import StudyVerdict

    if not told or not isinstance(verdict, StudyVerdict):
        return verdict
    caveats = [
        replace(one, says=TOLD, hint="") if any(one.says in text for text in told) else one
        for one in verdict.caveats
    ]
    return replace(verdict, caveats=caveats)
