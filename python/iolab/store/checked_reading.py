"""Reading a large study while another process checks it.

Whoever turns rows into a file needs the answer only before the file gets its name. The other
process makes the check of `Store.open_reader`, neither more nor less; it sees at least the records
that are read here, since it begins later and records are never changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from iolab.errors import DamageError, IolabError, StoreError
from iolab.store.db import Store
from iolab.store.thorough import is_large

Confirm: TypeAlias = Callable[[], None]
"""Waits for the check.

Raises
------
DamageError : a part of the study is not as it was stored.
"""
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from iolab.store.checked_reading import answer; print(answer(sys.argv[1]))"
)


@contextmanager
def read_while_checked(path: Path) -> Generator[tuple[Store, Confirm]]:
    """Open a study to read it; nothing read is to be believed before `Confirm` returned.

    A small study is checked before anything is read. An error of the block may come of damage:
    then the damage is told in its place.

    Raises
    ------
    DamageError : a part of the study is not as it was stored.
    StoreError : there is no study that can be read.
    """
    if not is_large(path):
        with Store.open_reader(path) as store:
            yield store, lambda: None
        return
    with (
        Store.open_reader(path, is_checked=False) as store,
        store.contents.one_moment(),
        _Checker(path) as checker,
    ):
        try:
            yield store, checker.confirm
        except Exception as error:
            is_of_output = isinstance(error, OSError) or (
                isinstance(error, IolabError) and not isinstance(error, StoreError)
            )
            if not is_of_output and not checker.is_over:
                checker.confirm()
            raise


def answer(path: str) -> str:
    """JSON of message and hint that say how a study is damaged; of null if it is whole."""
    try:
        Store.open_reader(Path(path)).close()
    except DamageError as error:
        return json.dumps([error.message, error.hint])
    return json.dumps(None)


class _Checker:
    """Process that checks a study; a context manager that leaves none behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self.is_over = False
        """True once the answer was asked for."""

    def __enter__(self) -> _Checker:
        """Start it, by the interpreter and with the modules of this one."""
        words = ["-I", "-c", _PROGRAM, str(self._path), json.dumps(sys.path)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:  # `confirm` does it itself.
            self._process = None
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # Waits, and closes its output.
                pass

    def confirm(self) -> None:
        """Wait for the answer; if there is none, for whatever reason, check the study here."""
        self.is_over = True
        told = self._process.communicate()[0] if self._process is not None else b""
        try:
            damage: list[str] | None = json.loads(told)
        except ValueError:
            Store.open_reader(self._path).close()
            return
        if damage is not None:
            message, hint = damage
            raise DamageError(message, hint)
