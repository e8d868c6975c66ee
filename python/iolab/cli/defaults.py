"""Defaults that a user keeps in ``~/.config/iolab.toml`` (or below ``$XDG_CONFIG_HOME``).

A flag on the command line comes first, and a study file is never changed by them: ``margin`` counts
for `compare` and `import`, ``units`` for every command that writes a report, and ``out`` for every
command that makes a results directory without ``--out``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError

if TYPE_CHECKING:
    import argparse

FILE: Final = "iolab.toml"
KEYS: Final = ("margin", "out", "units")
_MARGIN_OF: Final = ("compare", "import")
_BYTES_MAX: Final = 1 << 16


def apply_defaults(parser: argparse.ArgumentParser, command: str) -> None:
    """Let the flags of a command default to what the user's file says.

    Raises
    ------
    IolabError : the file cannot be understood; names its key.
    """
    flags = {action.dest for action in parser._actions}
    wanted = {"units"} | ({"margin"} if command in _MARGIN_OF else set[str]())
    if not flags & wanted:
        return
    given = {key: value for key, value in read_defaults().items() if key in flags & wanted}
    if given:
        parser.set_defaults(**given)


def read_defaults() -> dict[str, str]:
    """Keys of the user's file; none if there is no file.

    Raises
    ------
    IolabError : it is no TOML, or a key or value of it is not known.
    """
    path = _path()
    if path is None:
        return {}
    try:
        if path.exists() and not path.is_file():
            raise IolabError(f"{path} is no regular file", "write one, or remove it")
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise IolabError(
            f"{path} cannot be read: {error.strerror}", "correct it, or remove it"
        ) from None
    if len(content) > _BYTES_MAX:
        what = f"{path} is larger than {_BYTES_MAX >> 10} KiB"
        raise IolabError(what, "keep only the defaults in it")
    return _understood(path, content)


def _understood(path: Path, content: bytes) -> dict[str, str]:
    import tomllib  # Here, because most users have no such file.

    from iolab.wording import nearest

    try:
        found = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # The first are also numbers of many digits.
        raise IolabError(
            f"{path} is no TOML: {error}", 'texts stand in quotes: units = "si"'
        ) from None
    for key, value in found.items():
        if key not in KEYS:
            raise IolabError(
                f"{path}: there is no key '{key}'{nearest(key, KEYS)}",
                f"keys are {', '.join(KEYS)}",
            )
        _check(path, key, value)
    return {key: str(value) for key, value in found.items()}


def results_root() -> Path:
    """Directory below which results without ``--out`` go, as ``NAME-N``.

    Raises
    ------
    IolabError : the user's file cannot be understood.
    """
    from iolab.library.output_root import OUTPUT_ROOT

    named = read_defaults().get("out")
    return OUTPUT_ROOT if named is None else Path(named).expanduser()


def _check(path: Path, key: str, value: object) -> None:
    if key == "units" and value not in units.SYSTEMS:
        raise IolabError(
            f"{path}: units = {value!r}", f"write one of {', '.join(units.SYSTEMS)}, in quotes"
        )
    if key == "out":
        _check_out(path, value)
    if key == "margin":
        try:
            units.parse_share(str(value))
        except ValueError as error:
            raise IolabError(f"{path}: margin: {error}", 'in quotes, margin = "3%"') from None


def _check_out(path: Path, value: object) -> None:
    is_text = isinstance(value, str) and bool(value.strip()) and "\0" not in value
    try:
        is_place = is_text and bool(Path(str(value)).expanduser().name)
    except RuntimeError:  # There is no such user.
        is_place = False
    if not is_place:
        raise IolabError(
            f"{path}: out = {value!r} names no directory", 'as in: out = "~/studies", in quotes'
        )


def _path() -> Path | None:
    for name, below in (("XDG_CONFIG_HOME", ""), ("HOME", ".config")):
        base = Path(os.environ.get(name, ""))
        if base.is_absolute():
            return base / below / FILE
    return None
