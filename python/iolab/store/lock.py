"""One writer at a time: an advisory lock that the kernel drops when the writer dies.

The lock's file has up to three lines: the process that had it last, how much it stored, and the
process that measured for it, with its start. SQLite keeps the newest records in a log of its own,
which may be emptied, cut or removed without leaving the database any less a database; who opens it
then learns from the second line that some are missing. Who was killed may be survived for a moment
by the process that measured for it, which still writes files: who continues waits for its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Final, Self

from iolab.errors import RefusedError, StoreError
from iolab.frozen import frozen
from iolab.store.owner import (
    distrusted,
    give_descriptor,
    invoking_user,
    refuse_distrusted,
    trusted_users,
)

_BYTES_MAX: Final = 256
_ATTEMPTS: Final = 3
_SURVIVOR_PATIENCE_S: Final = 10.0
"""Time that a process may outlive who was killed before that is told: it unmounts and restores."""
_PAUSE_S: Final = 0.02
"""Pause between tries: a process that only looks whether the lock is taken has it for a moment."""


@frozen
class Stored:
    """Number of rows that a study holds; its rows are never removed."""

    study_id: str
    sessions: int
    trials: int
    records: int

    def lacks(self, noted: Stored) -> str:
        """Rows that were noted and are not there, in words; nothing if all is."""
        if noted.study_id != self.study_id:
            return ""  # Another study's file lies here now.
        _, *before = astuple(noted)
        _, *here = astuple(self)
        pairs = zip(before, here, ("starts", "trials", "records"), strict=True)
        return ", ".join(f"{left} {name} (here: {n})" for left, n, name in pairs if left > n)


class WriterLock:
    """Exclusive lock on ``<database>.lock``; the file stays, only the lock matters.

    It is not taken on the database itself: closing any descriptor of that file would drop
    SQLite's own locks in this process.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._fd = -1
        self._measuring = b""

    def acquire(self) -> Self:
        """Take the lock.

        Raises
        ------
        StoreError : another process writes this study; names it.
        """
        fd = self._opened(os.O_CREAT)
        self._take(fd)
        _, _, stored = os.pread(fd, _BYTES_MAX, 0).partition(b"\n")
        _rewrite(fd, f"{os.getpid()}\n".encode() + stored)
        give_descriptor(fd, invoking_user())
        self._fd = fd
        return self

    def note(self, stored: Stored) -> None:
        """Write down how much was stored; it must have been stored before.

        Not synchronised: what a power cut takes of the note makes it say less, never more.
        """
        words = " ".join(map(str, astuple(stored)))
        with suppress(OSError):  # On a full disk the note is old, which is allowed.
            _rewrite(self._fd, f"{os.getpid()}\n{words}\n".encode() + self._measuring)

    def note_measuring(self, process: int) -> None:
        """Write down from now on which process measures; it ends after this one."""
        self._measuring = f"{process} {_start_of(process)}\n".encode()
        lines = os.pread(self._fd, _BYTES_MAX, 0).split(b"\n")[:2]
        with suppress(OSError):
            _rewrite(self._fd, b"".join(line + b"\n" for line in lines) + self._measuring)

    def _opened(self, extra: int) -> int:
        """Open the lock's file: a plain file of this user's, of root's or of who called sudo.

        Raises
        ------
        RefusedError : it is something else; writing it could hit another file.
        """
        refuse_distrusted(self._path.parent)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | extra
        try:
            fd = os.open(self._path, flags, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._foreign() from None
            raise
        status = os.fstat(fd)
        is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if is_plain and (os.geteuid() != 0 or status.st_uid in trusted_users()):
            return fd
        os.close(fd)
        raise self._foreign()

    def _foreign(self) -> RefusedError:
        return RefusedError(
            f"{self._path} is a link, or not a file of yours: nothing was written",
            "remove it, if you know whose it is",
        )

    def _take(self, fd: int) -> None:
        for _ in range(_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE_S)
        line = os.pread(fd, _BYTES_MAX, 0).partition(b"\n")[0]
        holder = line.decode(errors="replace").strip()
        os.close(fd)
        raise StoreError(
            f"{self._path.parent} is being written by another iolab (process {holder or '?'})",
            "wait for it, stop it with Ctrl-C, or choose another --out",
        )

    def refuse_if_held(self) -> None:
        """Look whether another process has the lock, without making its file.

        Raises
        ------
        StoreError : another process writes this study; names it.
        """
        if os.access(self._path, os.R_OK | os.W_OK) and not distrusted(self._path.parent):
            fd = self._opened(0)
            self._take(fd)
            os.close(fd)

    def remove(self) -> None:
        """Give the lock up and remove its file; only for a database that was not made after all."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Give the lock up."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _rewrite(fd: int, content: bytes) -> None:
    """Replace a short content; whoever is killed between the two leaves the end of a longer one."""
    os.pwrite(fd, content, 0)
    os.ftruncate(fd, len(content))


def _start_of(process: int) -> str:
    """Clock ticks from boot to the start of a process (proc(5), field 22); empty if it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def wait_for_survivor(database: Path, patience_s: float = _SURVIVOR_PATIENCE_S) -> None:
    """Wait until what measured for the last writer is gone, if that was killed.

    A writer that is alive is not waited for: it has the lock.

    Raises
    ------
    StoreError : it still runs after `patience_s` seconds; names the process.
    """
    lines = _looked_at(database)[2:3]
    process, _, start = (lines[0] if lines else "").partition(" ")
    if not (process.isascii() and process.isdigit() and start) or is_held(database):
        return
    deadline = time.monotonic() + patience_s
    while _start_of(int(process)) == start:
        if time.monotonic() >= deadline:
            raise StoreError(
                f"process {process}, which measured for the last start of {database.parent}, is "
                "still at work",
                f"wait for its end (ps -p {process}), then type the same command again",
            )
        time.sleep(_PAUSE_S)


def _opened_to_look(database: Path) -> int | None:
    """The lock's file, opened to be read; None if there is none that is plain."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(database.with_name(database.name + ".lock"), flags)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def is_held(database: Path) -> bool:
    """Tell whether another process writes the study now."""
    fd = _opened_to_look(database)
    if fd is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, _BYTES_MAX, 0).partition(b"\n")[0] != b"%d" % os.getpid()
    finally:
        os.close(fd)
    return False


def _looked_at(database: Path) -> list[str]:
    """Lines of the lock's file; none if there is no plain one."""
    fd = _opened_to_look(database)
    if fd is None:
        return []
    try:
        return os.pread(fd, _BYTES_MAX, 0).decode(errors="replace").split("\n")
    finally:
        os.close(fd)


def noted(database: Path) -> Stored | None:
    """Note of the last writer; None if nothing that can be understood."""
    study_id, *counts = " ".join(_looked_at(database)[1:2]).split(" ")
    try:
        return Stored(study_id, *map(int, counts))
    except (TypeError, ValueError):
        return None
