"""Needs of the command lines of fio and Filebench: results from whole records, and their file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from iolab.errors import IolabError
from iolab.library.dialect.files import check_written
from iolab.library.dialect.plan import DialectPlan
from iolab.store.users_files import write_file

if TYPE_CHECKING:
    from iolab.protocol import PhaseRecord, Record

_NS_PER_S: Final = 1_000_000_000


class Output:
    """The file of ``--output``, if there is one; refused before anything is measured.

    Raises
    ------
    IolabError : it cannot be written.
    RefusedError : a file is there that iolab did not make.
    """

    def __init__(self, plan: DialectPlan) -> None:
        name: str | None = plan.values["show"].get("output")
        check_written(name, plan.allowed, "--output")
        self._path = None if name is None else Path(name)
        self._allowed = plan.allowed
        self._texts = list[str]()

    def files(self) -> list[Path]:
        """The file."""
        return [] if self._path is None else [self._path]

    def takes(self, text: str) -> bool:
        """Tell whether the text belongs into the file, and keeps it."""
        if self._path is None:
            return False
        self._texts.append(text)
        return True

    def write(self) -> None:
        """Write what was kept.

        Raises
        ------
        IolabError : the file cannot be written; results are stored all the same.
        """
        if self._path is None:
            return
        try:
            write_file(self._path, "".join(self._texts).encode(), self._allowed)
        except OSError as error:
            raise IolabError(
                f"{self._path} cannot be written: {error.strerror}", "the results are stored"
            ) from None


class WholeRecord(TypedDict):
    """A record as the renderers of fio and Filebench take it."""

    phases: list[PhaseRecord]
    ended_ms: int
    ended: str
    pid: int
    elapsed_s: int
    whole_ns: int
    error: str | None


def whole(record: Record) -> WholeRecord:
    """A record as the renderer takes it: its phases, when it ended and how long it took."""
    elapsed_ns = int(record.get("elapsed_ns") or 0)
    ended_ns = int(record.get("started_at_unix_ns") or 0) + elapsed_ns
    return {
        "phases": record["phases"],
        "ended_ms": ended_ns // 1_000_000,
        "ended": time.ctime(ended_ns // _NS_PER_S),
        "pid": os.getpid(),
        "whole_ns": elapsed_ns,
        "error": record.get("error"),
        "elapsed_s": max(1, -(-elapsed_ns // _NS_PER_S)),
    }
