"""Working on files in a directory of the user's, under names that a command gives.

Nothing of the user's is destroyed (safety R6): a file is replaced only if iolab made it, or the
user named it. What is made is remembered while it is made, so that a killed run can be told from
somebody's file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import RefusedError, TestbedError
from iolab.json_text import read_json
from iolab.regular_file import refuse_among_devices
from iolab.run.attendant import Attendant
from iolab.run.core import load_core
from iolab.run.observer import Observer
from iolab.store import created_files
from iolab.store.users_files import (
    FLAG,
    Allowed,
    is_replaceable,
    refuse_linked,
    refuse_special,
    refused,
)
from iolab.study.dialects import find_dialect
from iolab.study.model import DialectWorkload, Study
from iolab.study.plan import Trial
from iolab.testbed.model import DirectoryTestbed, Testbed, make_testbed
from iolab.testbed.read_devices import check_identity

if TYPE_CHECKING:
    from iolab.protocol import FileUse, Progress, Record, Replaceable, TrialSpec

FOREIGN_FILE: Final = "foreign_file"
"""Code of the agent's warning that a file of the user's own had been touched."""


_MAKING: Final = ("create", "new")
"""Openings that remove what is there and make a file of that name."""


def _advice(status: os.stat_result) -> str:
    """Advice about something that is no file."""
    if stat.S_ISBLK(status.st_mode):
        return (
            "name a file, or let jobs only read it; --on device:PATH --erase-serial SERIAL "
            "measures a whole device, and erases it"
        )
    return "name a file of its own"


class InPlace(Attendant):
    """Tells the agent which files may be replaced, and remembers those that are made."""

    def __init__(self, files: NamedFiles, place: Path, allowed: Allowed) -> None:
        self._files = files
        self._place = place
        self._allowed = allowed
        self._begun = dict[Path, created_files.Birth]()

    def written_files(self) -> list[Path]:
        """Files that the commands name."""
        return [self._place / name for name in (*self._files.names, *self._files.stores)]

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec with the files that may be replaced."""
        del trial
        self._begun.clear()
        files = self._files.replaceable(self._place, self._allowed)
        return {**spec, "files": {"replaceable": files}}

    def heard(self, trial: Trial, params: Progress) -> None:
        """Remember files that are about to be made."""
        del trial
        if "begun" in params:
            new = {
                self._place / name: created_files.Birth(**it)
                for name, it in params["begun"].items()
            }
            self._begun.update(new)
            created_files.begin(new)

    def measured(self, trial: Trial, record: Record) -> None:
        """Remember files that were made."""
        del trial
        marks = record.pop("made", {})
        written = {self._place / name: created_files.Mark(**mark) for name, mark in marks.items()}
        created_files.remember(written, ended=self._begun)

    def stored(self, trial: Trial, record: Record) -> None:
        """End the run if a file of the user's own would have been touched.

        Raises
        ------
        RefusedError : it would.
        """
        del trial
        codes = {str(warning.get("code")) for warning in record.get("warnings", ())}
        if record["status"] == "failed" and FOREIGN_FILE in codes:
            raise RefusedError(
                str(record.get("error")), f"name another, or allow it with {FLAG} FILE"
            )

    def tell(self, observer: Observer) -> None:
        """Note which of the user's files are only read, or overwritten and removed."""
        for name in self._files.foreign_reads(self._place, self._allowed):
            is_device = (self._place / name).is_block_device()
            what = "was not made by iolab: it is only read, and it stays"
            if is_device:
                name, what = str(self._place / name), "is a device: it is only read"
            observer.note(f"iolab: note: {name} {what}")
        for name in self._files.removed(self._place, self._allowed):
            observer.note(
                f"iolab: note: {name} is overwritten, as {FLAG} says, and removed at the end; "
                "-w keeps what is written"
            )


def _too_short(path: Path, status: os.stat_result) -> RefusedError:
    """Error for a file of the user's that is shorter than what a job works on."""
    length = units.format_bytes_rounded(status.st_size)
    return RefusedError(
        f"{path} has {length}, less than the job works on, and iolab did not make it: it was "
        "left as it is",
        f"write a smaller size=, choose another name, or let it be written anew with {FLAG} {path}",
    )


def in_place(study: Study, testbed: Testbed, allowed: Allowed) -> InPlace | None:
    """Attendants of the trials of a study in a directory of the user's; None elsewhere.

    Raises
    ------
    TestbedError : a file that must be there is not, or cannot be used.
    RefusedError : a file that would be written is not iolab's, or none.
    """
    if not isinstance(testbed, DirectoryTestbed) or not testbed.is_in_place:
        return None
    if testbed.devices:
        check_identity(testbed.devices, testbed.identity)
    files = NamedFiles([one for one in study.workloads if isinstance(one, DialectWorkload)])
    files.check(testbed.path, allowed)
    return InPlace(files, testbed.path, allowed)


def made_in_place(study: Study) -> list[Path]:
    """Files in a directory of the user's that the commands of a study make, remove or write.

    Raises
    ------
    TestbedError : the directory cannot be used.
    """
    request = study.testbed
    return files_in_place(
        study, make_testbed(request.kind, request.argument, dict(request.options))
    )


def files_in_place(study: Study, testbed: Testbed) -> list[Path]:
    """The same of a testbed that is there already."""
    workloads = [one for one in study.workloads if isinstance(one, DialectWorkload)]
    if not isinstance(testbed, DirectoryTestbed) or not testbed.is_in_place or not workloads:
        return []
    return [testbed.path / name for name in sorted(NamedFiles(workloads).written())]


class NamedFiles:
    """The files that the commands of some workloads name, and what is done to them."""

    def __init__(self, workloads: Sequence[DialectWorkload]) -> None:
        rows = [row for one in workloads for row in one.rows]
        self._keeps_files = rows[-1].workload["phases"][-1]["keeps_files"]
        core = load_core()
        uses = [use for row in rows for use in read_json(core.workload_file_uses(row.description))]
        self._uses = _by_name(uses)
        named = dict.fromkeys(name for one in workloads for name in one.files)
        stores = {use["name"] for use in uses if use["kind"] == "store"}
        # Directories of key-value stores: who made them, the agent sees when it opens them.
        self.stores = frozenset(stores & named.keys())
        self.names = tuple(name for name in named if name not in self.stores)
        self._dialect = find_dialect(workloads[0].dialect)
        asked = [one.request for one in workloads]
        self._is_read_only = all(it.get("is_read_only") for it in asked)
        self._is_scratch = any(it.get("is_scratch") for it in asked)

    def check(self, directory: Path, allowed: Allowed) -> None:
        """Refuse, before anything is measured, what the measuring would refuse, too."""
        written = self.written()
        in_place = self._written_in_place()
        for name in self.names:
            path = directory / name
            try:
                status = path.lstat()
            except FileNotFoundError:
                refuse_among_devices(path.parent)
                self._refuse_missing(path, self._uses.get(name))
                continue
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise TestbedError(
                    f"{path} cannot be used: {reason}", "name another file"
                ) from None
            is_written = name in written
            # Names of disks that last are links.
            if path.is_block_device() and self._dialect.reads_devices and not is_written:
                self._refuse_unreadable(path)
                continue
            try:
                refuse_special(path, status)
            except RefusedError as error:
                raise RefusedError(error.message, _advice(status)) from None
            if is_written and not self._is_scratch and not is_replaceable(path, status, allowed):
                if self._dialect.looks_around and self._uses[name]["opening"] == "laid_out":
                    raise _too_short(path, status)
                raise refused(path)
            if name in in_place:
                refuse_linked(path, status)
            what, access = ("written", os.W_OK) if is_written else ("read", os.R_OK)
            if not os.access(path, access):
                raise TestbedError(f"{path} may not be {what}", "name another file")

    def _refuse_unreadable(self, path: Path) -> None:
        if not os.access(path, os.R_OK):
            raise TestbedError(f"{path} may not be read", "run it as root, or name a file")

    def _refuse_missing(self, path: Path, use: FileUse | None) -> None:
        if self._is_read_only:
            raise TestbedError(f"there is no file {path}", "name one that exists")
        if use is not None and use["is_expected"]:
            raise TestbedError(
                f"there is no file {path}, and {use['phase']} reads one", self._dialect.file_hint
            )

    def written(self) -> set[str]:
        """Names of the files that some phase makes, removes or changes."""
        changed = {name for name, use in self._uses.items() if use["is_changed"]}
        return changed - self.stores

    def _written_in_place(self) -> set[str]:
        """Names of the files that are written as they are there; others are made anew."""
        return {name for name in self.written() if self._uses[name]["opening"] not in _MAKING}

    def removed(self, directory: Path, allowed: Allowed) -> list[str]:
        """Files that are there, that the user let be overwritten and that are gone at the end."""
        if self._keeps_files:
            return []
        written = self.written()
        paths = {name: directory / name for name in self.names if name in written}
        return [name for name, path in paths.items() if path.exists() and allowed.has(path)]

    def foreign_reads(self, directory: Path, allowed: Allowed) -> list[str]:
        """Files that are there, that iolab did not make and that are only read: they stay."""
        known = self.written() | set(self.replaceable(directory, allowed))
        return [name for name in self.names if name not in known and (directory / name).exists()]

    def replaceable(self, directory: Path, allowed: Allowed) -> dict[str, Replaceable]:
        """Description for the agent of files that are there: named by the user, or made by
        iolab.
        """
        found: dict[str, Replaceable] = {}
        for name in self.names:
            path = directory / name
            mark = created_files.Mark.of_path(path)
            # What iolab made stays its own, also if it is named.
            if mark is not None and created_files.is_made(path.lstat()):
                found[name] = {"made": mark.to_dict()}
            elif allowed.has(path):
                found[name] = "named"
            elif (birth := created_files.birth_of(path)) is not None:
                found[name] = {"begun": birth.to_dict()}
        for name in self.stores:
            if allowed.has(directory / name):
                found[name] = "named"
        return found


def _by_name(uses: Iterable[FileUse]) -> dict[str, FileUse]:
    """Uses of files by several workloads, one after the other, and of whatever kind."""
    found: dict[str, FileUse] = {}
    for use in uses:
        known = found.setdefault(use["name"], use)
        known["is_changed"] |= use["is_changed"]
    return found
