"""SQLite's errors in our words: what happened to which study, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from iolab.errors import StoreError
from iolab.store.cells import CellError


@contextmanager
def errors_of_making(path: Path) -> Generator[None, None, None]:
    """Turn the errors of a new study's file into ours."""
    try:
        yield
    except (sqlite3.DatabaseError, StoreError, OSError) as error:
        raise StoreError(
            f"{path} cannot be made: {error.__cause__ or error}",
            "make room there, or choose another --out",
        ) from error


@contextmanager
def errors_named(path: Path) -> Generator[None, None, None]:
    """Turn SQLite's errors, and values that no study holds, into ours."""
    try:
        yield
    except CellError as error:
        raise StoreError(f"{path} is damaged: {error.message}", "restore a copy") from None
    except sqlite3.DatabaseError as error:
        reason = str(error)
        if "full" in reason or "disk I/O" in reason:
            raise StoreError(
                f"{path}: the disk is full, or failed ({reason}); the last record was not stored, "
                "earlier ones are safe",
                "free some space, then continue with --resume",
            ) from error
        if "not a database" in reason or "malformed" in reason:
            raise StoreError(
                f"{path} is damaged or not a study ({reason})", "restore a copy"
            ) from error
        raise StoreError(
            f"{path}: {reason}", "check that the disk and the file are readable and writable"
        ) from error
