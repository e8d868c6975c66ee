"""Place at which a value was written, so that an error can point at it.

A study is built from one nested table, whether that came from a TOML file or from flags; a
:class:`Source` turns the path of a key inside that table into words for the user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias

from iolab.frozen import frozen
from iolab.pattern import pattern

KeyPath: TypeAlias = tuple[str | int, ...]

_HEADER = pattern(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_KEY = pattern(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


class Source(Protocol):
    """Names the place of a key."""

    def where(self, path: KeyPath) -> str:
        """Words that let the user find `path`."""
        ...

    def written(self, key: str, value: str) -> str:
        """`key` with a value, as the user would write it there."""
        ...


@frozen
class FileSource:
    """A TOML text with its file name."""

    file_name: str
    text: str

    def where(self, path: KeyPath) -> str:
        """File, line if it can be found, and the dotted key."""
        line = self._line_of(path)
        place = f"{self.file_name}, line {line}" if line else self.file_name
        return f"{place}, {_dotted(path)}" if path else place

    def written(self, key: str, value: str) -> str:
        """Return a line of the file."""
        return f'{key} = "{value}"'

    def _line_of(self, path: KeyPath) -> int | None:
        """Line of the longest part of `path` that has a line of its own."""
        lines = _lines_of_keys(self.text)
        for end in range(len(path), 0, -1):
            if path[:end] in lines:
                return lines[path[:end]]
        return None


@frozen
class FlagSource:
    """Flags of the command line, by the key that each one sets."""

    flags: dict[str, str]

    def where(self, path: KeyPath) -> str:
        """Return the flag as the user typed it."""
        names = [part for part in reversed(path) if isinstance(part, str)]
        if not names:
            return "command line"
        known = (self.flags[name] for name in names if name in self.flags)
        return next(known, "--" + names[0].replace("_", "-"))

    def written(self, key: str, value: str) -> str:
        """Return the flag with its value."""
        return f"{self.where((key,))} {value}"


@frozen
class OverriddenSource:
    """A source whose top-level `keys` were replaced by those of another."""

    base: Source
    override: Source
    keys: frozenset[str]

    def where(self, path: KeyPath) -> str:
        """Words of whichever source the value came from."""
        return (self.override if path and path[0] in self.keys else self.base).where(path)

    def written(self, key: str, value: str) -> str:
        """Return it as the base would have it, unless only the other has such a key."""
        return (self.override if key in self.keys else self.base).written(key, value)


def folder_of(source: Source) -> Path:
    """Folder in which relative names of files begin: beside the study file, else the working
    directory.
    """
    match source:
        case FileSource(file_name=name):
            return Path(name).parent
        case OverriddenSource(base=base):
            return folder_of(base)
        case _:
            return Path()


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _lines_of_keys(text: str) -> dict[KeyPath, int]:
    """Line number of every ``key =`` and ``[header]``; multi-line values may add false keys."""
    lines: dict[KeyPath, int] = {}
    tables_seen: dict[KeyPath, int] = {}
    prefix: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if key:
            names = _split_key(key[1])
            lines.setdefault((*prefix, ".".join(names)), number)
            for end in range(1, len(names) + 1):
                lines.setdefault(prefix + names[:end], number)
        elif header:
            prefix = _resolve(_split_key(header[2]), tables_seen, is_array=header[1] == "[[")
            lines.setdefault(prefix, number)
    return lines


def _split_key(text: str) -> tuple[str, ...]:
    if text[:1] in "\"'":
        return (text.strip("\"'"),)
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _resolve(names: tuple[str, ...], seen: dict[KeyPath, int], *, is_array: bool) -> KeyPath:
    """Path of a header: the latest element of every array of tables on the way."""
    path: KeyPath = ()
    for position, name in enumerate(names):
        path = (*path, name)
        if is_array and position == len(names) - 1:
            seen[path] = seen.get(path, -1) + 1
        if path in seen:
            path = (*path, seen[path])
    return path
