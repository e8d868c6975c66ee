"""Reading a large study while another process checks it.

Whoever turns rows into a file needs the answer only before the file gets its name. The other
process makes the check of `Store.open_reader`, neither more nor less; it sees at least the records
that are read here, since it begins later and records are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, cast

from iolab.errors import DamageError, IolabError, StoreError
from iolab.store.beside import Beside
from iolab.store.db import Store
from iolab.store.thorough import is_large

Confirm: TypeAlias = Callable[[], None]
"""Waits for the check.

Raises
------
DamageError : a part of the study is not as it was stored.
"""


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


def answer(path: str) -> list[str] | None:
    """Message and hint that say how a study is damaged; None if it is whole."""
    try:
        Store.open_reader(Path(path)).close()
    except DamageError as error:
        return [error.message, error.hint]
    return None


class _Checker(Beside):
    """Process that checks a study."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{__name__}:answer", str(path))
        self._path = path
        self.is_over = False
        """True once the answer was asked for."""

    def confirm(self) -> None:
        """Wait for the answer; if there is none, for whatever reason, check the study here."""
        self.is_over = True
        try:
            damage = self.answer()
        except ValueError:
            Store.open_reader(self._path).close()
            return
        if damage is not None:
            message, hint = cast("list[str]", damage)
            raise DamageError(message, hint)
