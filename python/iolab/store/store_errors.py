"""SQLite's errors in our words: what happened to which study, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final

from iolab.errors import DamageError, StoreError
from iolab.store.cells import CellError

PUT_BACK: Final = "put back a copy of the file that was made before that, if there is one"
"""Advice about a damaged study; `iolab restore` is about the machine."""
_DAMAGES: Final = (
    "not a database",
    "malformed",
    "UTF-8",
    "unsupported file format",
    "too big",
)
"""Parts of what SQLite says of a file that is not, or no longer, what this program wrote."""


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
        raise DamageError(f"{path} is damaged: {error.message}", PUT_BACK) from None
    except (UnicodeDecodeError, OverflowError) as error:  # Of the sqlite3 module itself.
        raise DamageError(f"{path} is damaged ({error})", PUT_BACK) from None
    except sqlite3.DatabaseError as error:
        reason = str(error)
        if "full" in reason or "disk I/O" in reason:
            raise StoreError(
                f"{path}: the disk is full, or failed ({reason}); the last record was not stored, "
                "earlier ones are safe",
                "free some space, then continue with `iolab run "
                f"{quote(str(path.parent))} --resume`",
            ) from error
        if any(sign in reason for sign in _DAMAGES):
            raise DamageError(f"{path} is damaged or not a study ({reason})", PUT_BACK) from error
        raise StoreError(
            f"{path}: {reason}", "check that the disk and the file are readable and writable"
        ) from error
