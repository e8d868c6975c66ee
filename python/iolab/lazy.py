"""A package whose public names are imported when they are first used.

`import iolab` is part of every start of the command line, so that it must not import what runs,
judges or draws. Names are looked up in a table when somebody asks for them.

A public name may be that of a sub-package as well: `iolab.run` is the function although the
package `iolab.run` exists. Python's import system binds a sub-package to its parent as an
attribute; that one assignment is left out for public names, whose meaning must not depend on what
was imported before.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_package(homes: Mapping[str, str]) -> type[ModuleType]:
    """Class of a package with public names.

    Parameters
    ----------
    homes : public name to the module that defines an object of the same name.

    Returns
    -------
    type : to be assigned to the ``__class__`` of the package.
    """

    class LazyPackage(ModuleType):
        """A package that imports its public names on first use."""

        def __getattr__(self, name: str) -> Any:
            if name not in homes:
                raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
            found = getattr(import_module(homes[name]), name)
            vars(self)[name] = found
            return found

        def __setattr__(self, name: str, value: object) -> None:
            if name not in homes or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *homes})

    return LazyPackage
