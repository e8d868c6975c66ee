"""A verdict whose commands name the directory of its study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.store.continuing import named

if TYPE_CHECKING:
    from iolab.stats.verdict import StudyVerdict


def placed(verdict: StudyVerdict, directory: Path | None) -> StudyVerdict:
    """The same verdict, to be printed: hints name `directory` where stored ones write ``DIR``.

    Parameters
    ----------
    verdict : the judged study.
    directory : where the study is stored; None is an archive, which is unpacked first.
    """
    if directory is None:
        return verdict
    caveats = [replace(one, hint=named(one.hint, directory)) for one in verdict.caveats]
    return replace(verdict, caveats=caveats)
