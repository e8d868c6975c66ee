"""One writer at a time: an advisory lock that the kernel drops when the writer dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from iolab.errors import StoreError
from iolab.store.owner import give_to_user


class WriterLock:
    """Exclusive lock on ``<database>.lock``; the file stays, only the lock matters.

    It is not taken on the database itself: closing any descriptor of that file would drop
    SQLite's own locks in this process.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._fd = -1

    def acquire(self) -> Self:
        """Take the lock.

        Raises
        ------
        StoreError : another process writes this study; names it.
        """
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            os.close(fd)
            raise StoreError(
                f"{self._path.parent} is being written by another iolab (process {holder or '?'})",
                "wait for it, stop it with Ctrl-C, or choose another --out",
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        give_to_user(self._path)
        self._fd = fd
        return self

    def refuse_if_held(self) -> None:
        """Look whether another process has the lock, without making its file.

        Raises
        ------
        StoreError : another process writes this study; names it.
        """
        if os.access(self._path, os.R_OK | os.W_OK):
            self.acquire().release()

    def remove(self) -> None:
        """Give the lock up and remove its file; only for a database that was not made after all."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Give the lock up."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
