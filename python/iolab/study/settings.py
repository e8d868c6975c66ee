"""Reading names, and factors that are held at one level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.frozen import replace
from iolab.pattern import pattern
from iolab.study.factors import Scope
from iolab.study.model import Levels
from iolab.study.reader import Reader

SURROUNDINGS: Final = (Scope.MACHINE, Scope.STACK)
"""Scopes of factors that every workload has: what lies below its operations."""
_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def parse_name(value: object) -> str:
    """Return a name that can stand in a path and in a table column."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ValueError(
        f"'{value}' is not a name: use up to 64 letters, digits, dots, dashes, plus signs, "
        "starting with a letter or digit"
    )


def merged(reader: Reader, inline: Mapping[str, object], scopes: tuple[Scope, ...]) -> Levels:
    """Levels held for one workload: its own keys and its ``settings`` table."""
    levels = dict(read_settings(replace(reader, values=inline), scopes))
    table = reader.table("settings").flat()
    for name, level in read_settings(table, scopes):
        if name in levels:
            table.refuse(name, f"{name} is set twice in this workload", "keep one of them")
        levels[name] = level
    return tuple(levels.items())


def read_settings(reader: Reader, scopes: tuple[Scope, ...] = tuple(Scope)) -> Levels:
    """Factors held at one level each, of the given scopes only."""
    levels: dict[str, str] = {}
    for key, value in reader.values.items():
        definition = reader.parsed(key, key, reader.find)
        if definition.scope not in scopes:
            reader.refuse(key, f"{key} of a mixed workload belongs to its streams")
        parsed = reader.parsed(key, value, definition.parse)
        if len(parsed) != 1:
            reader.refuse(key, f"a setting has one level, this has {len(parsed)}", "use [factors]")
        if definition.name in levels:
            reader.refuse(key, f"{definition.name} is set twice", "keep one of them")
        levels[definition.name] = parsed[0]
    return tuple(levels.items())
