"""A verdict whose commands name the directory of its study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from iolab.store.continuing import named

T = TypeVar("T")


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
