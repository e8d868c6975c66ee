"""Reading one table of a study strictly: every key is known, every value has one parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from typing import Final, Never, NoReturn, TypeVar, cast

from iolab.errors import IolabError, StudyError
from iolab.frozen import frozen, replace
from iolab.pattern import pattern
from iolab.study.factors import FactorDefinition, find_factor
from iolab.study.source import KeyPath, Source
from iolab.wording import nearest

T = TypeVar("T")
V = TypeVar("V")
_KINDS: Final = (
    (bool, "true or false"),
    (int | float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "a table"),
    (date | time, "a date or a time"),
)
"""Names of the types of values in TOML."""
_LONG_WORD = pattern(r"\S{100,}")
_WORD_SHOWN: Final = 60


@frozen
class Reader:
    """A table and where it stands; turns :class:`ValueError` into located study errors."""

    values: Mapping[str, object]
    source: Source
    path: KeyPath = ()
    find: Callable[[str], FactorDefinition] = find_factor
    """Definition of a factor, as the study's testbed has it."""

    def refuse(
        self, key: str | None, reason: str, hint: str = "", *, between: str | None = None
    ) -> NoReturn:
        """Raise a :class:`StudyError` that points at `key` (None: at the table itself)."""
        path = self.path if key is None else (*self.path, key)
        raise StudyError(f"{self.source.where(path)}: {_shortened(reason)}", hint, between=between)

    def only(self, known: Iterable[str]) -> None:
        """Refuse the first key that is not `known`, naming the nearest one that is."""
        names = tuple(known)
        for key in self.values:
            if key not in names:
                self.refuse(
                    key,
                    f"there is no '{key}' here{nearest(key, names)}",
                    f"known are {', '.join(names)}",
                )

    def read(self, key: str, parse: Callable[[Never], T]) -> T:
        """Parsed value of a key that must be there; `parse` may be written for texts alone."""
        if key not in self.values:
            self.refuse(None, f"'{key}' is missing", f"add {key} = ...")
        return self.parsed(key, cast("Never", self.values[key]), parse)

    def read_or(self, key: str, parse: Callable[[Never], T], default: T) -> T:
        """Parsed value of a key, or `default` if it is absent."""
        return self.read(key, parse) if key in self.values else default

    def parsed(self, key: str, value: V, parse: Callable[[V], T]) -> T:
        """`value` through `parse`; what that refuses is reported at `key`."""
        try:
            return parse(value)
        except ValueError as error:
            self.refuse(key, str(error))
        except IolabError as error:
            self.refuse(key, error.message, error.hint, between=error.between)
        except (TypeError, AttributeError, ArithmeticError, RecursionError):
            # Parsers are written for texts and numbers; a file may hold anything anywhere.
            self.refuse(
                key,
                f"{shown_value(value)} is {_kind_of(value)}, which {key} cannot be",
                'write a text in quotes, as in "4k", or what the reference of study files says',
            )

    def table(self, key: str) -> Reader:
        """Reader of a sub-table; empty if it is absent."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, "this must be a table", f"write it as [{key}]")
        return replace(self, values=cast("dict[str, object]", value), path=(*self.path, key))

    def flat(self) -> Reader:
        """Dotted keys as one key each; ``vm.dirty_ratio = 10`` is a table in a table in TOML."""
        values = dict[str, object]()
        for key, value in self.values.items():
            if isinstance(value, dict):
                inner = cast("dict[str, object]", value)
                values.update({f"{key}.{name}": level for name, level in inner.items()})
            else:
                values[key] = value
        return replace(self, values=values)

    def tables(self, key: str) -> list[Reader]:
        """Readers of an array of tables; empty if it is absent."""
        value = self.values.get(key, [])
        items = cast("list[object]", value) if isinstance(value, list) else None
        if items is None or not all(isinstance(item, dict) for item in items):
            self.refuse(key, "this must be a list of tables", f"write each one as [[{key}]]")
        return [
            replace(self, values=cast("dict[str, object]", item), path=(*self.path, key, index))
            for index, item in enumerate(items)
        ]


def shown_value(value: object) -> str:
    """A value as it may be named in a message."""
    try:
        return _shortened(repr(value) if isinstance(value, str | list | dict) else str(value))
    except (ValueError, RecursionError):  # A number of more digits than Python prints.
        return "this"


def _kind_of(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "a value")


def _shortened(text: str) -> str:
    """A message without the rest of what nobody typed by hand."""
    return _LONG_WORD.sub(lambda word: word[0][:_WORD_SHOWN] + "...", text)
