"""Hints of errors for callers in Python: an argument stands where the command line has a flag."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from iolab.errors import IolabError

P = ParamSpec("P")
T = TypeVar("T")

_ARGUMENTS: Final = (
    (r"--out( DIR)?", "out=..."),
    (r"--resume", "resume=True"),
    (r"--overwrite \S+", "overwrite=True"),
    (r"--erase-serial( \S+)?", "erase_serial=..."),
    (r"--accept-writes( \S+)?", "accept_writes=..."),
    (r"--allow-other-machine", "allow_other_machine=True"),
    (r"--budget( \S+)?", "budget=..."),
    (r"--rounds( \S+)?", "rounds=..."),
    (r"--on (\S+)", r'testbed="\1"'),
)
"""Flags as hints write them, and the arguments of the library that do the same."""
_FLAGS: Final = tuple((re.compile(rf"`?{flag}\b`?"), text) for flag, text in _ARGUMENTS)
_RESUMING: Final = re.compile(r"`iolab run ([^\s`]+) --resume`")
_COMMAND: Final = re.compile(r"(`iolab [^`]*`)")


def in_python(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, whose errors name arguments in place of flags."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        try:
            return function(*args, **named)
        except IolabError as error:
            error.hint = _translated(error.hint)
            error.message = _translated(error.message)
            error.args = (error.message,)
            raise

    return call


def _translated(text: str) -> str:
    """Name arguments for flags, except in whole command lines, which stay what can be typed."""
    parts = _COMMAND.split(_RESUMING.sub(r"`iolab.run(study, out='\1', resume=True)`", text))
    for flag, argument in _FLAGS:
        parts[::2] = [flag.sub(argument, part) for part in parts[::2]]
    return "".join(parts)
