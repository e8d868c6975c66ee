"""Modules of the standard library that are imported for what a command may never use.

`dataclasses` imports `inspect`, and with it the parser and the disassembler of Python: a tenth of
what a dialect's command takes. It is asked only about classes without a docstring (and, in newer
versions, for annotations), so a stand-in that loads it when it is asked saves all of that. The
standard library's own `LazyLoader` does not: up to Python 3.11 a second import loads the module.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """A module of which nothing was asked yet."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        loaded = import_module(self.__name__)
        vars(self).update(vars(loaded))  # Who holds the stand-in has all of it from now on.
        return getattr(loaded, name)


def put_off(name: str) -> None:
    """Load a module when something of it is first asked for, unless it is loaded already."""
    if name not in sys.modules and (spec := PathFinder.find_spec(name)) is not None:
        stand_in = _StandIn(name)
        stand_in.__spec__ = spec
        sys.modules[name] = stand_in
