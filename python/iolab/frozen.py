"""Frozen records with slots: `dataclass(frozen=True, slots=True)` whose methods are not compiled.

The standard decorator writes six methods of each class as text and compiles them, about a
millisecond per class, before anything is asked for: half of the start of a command that imports
fifty. A :func:`frozen` is a dataclass too (``replace``, ``fields``, ``asdict`` and ``match`` know
it); what its methods share is written here once, and ``__init__`` is compiled when many instances
are made. What the standard decorator imports for its own compiling is put off: `inspect`, and with
it Python's parser, is loaded when a name of it is asked for.
"""

from __future__ import annotations

from iolab.deferred_import import put_off

put_off("inspect")

from collections.abc import Callable, Mapping  # noqa: E402
from dataclasses import (  # noqa: E402
    MISSING,
    Field,
    FrozenInstanceError,
    dataclass,
    field,
    fields,
)
from operator import attrgetter  # noqa: E402
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform  # noqa: E402

Class = TypeVar("Class", bound=type)
_set = object.__setattr__
_FEW: Final = 16
"""Instances of a class that are made without compiling anything: less than what that takes."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Class) -> Class:
    """Make `cls` a frozen dataclass with slots."""
    return _frozen(cls, has_slots=True)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_with_caches(cls: Class) -> Class:
    """Make `cls` a frozen dataclass that may have ``cached_property``: without slots."""
    return _frozen(cls, has_slots=False)


def _frozen(cls: Class, *, has_slots: bool) -> Class:
    own = set(vars(cls))
    made: Any = dataclass(init=False, repr=False, eq=False, slots=has_slots)(cls)
    compared = attrgetter(*(it.name for it in fields(made) if it.compare)) if fields(made) else type

    few = _FEW

    def init(self: Any, *values: Any, **named: Any) -> None:
        nonlocal few
        few -= 1
        if few < 0 or not _set_fields(self, values, named):
            made.__init__ = _initialiser(made)
            made.__init__(self, *values, **named)

    def eq(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def hash_of(self: Any) -> int:
        return hash(compared(self))

    methods = {"__init__": init, "__eq__": eq, "__hash__": hash_of}
    for name, method in {**methods, **_SHARED}.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _set_fields(self: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Set all fields; False if something is missing or too much, of which nothing is said here."""
    given = iter(values)
    n_named = 0
    for it in fields(self):
        name = it.name
        if it.init and not it.kw_only and (value := next(given, MISSING)) is not MISSING:
            if name in named:
                return False
        elif it.init and name in named:
            value = named[name]
            n_named += 1
        elif it.default is not MISSING:
            value = it.default
        elif it.default_factory is not MISSING:
            value = it.default_factory()
        else:
            return False
        _set(self, name, value)
    if n_named != len(named) or next(given, MISSING) is not MISSING:
        return False
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    return True


def _initialiser(cls: type) -> Callable[..., None]:
    """``__init__`` of the fields of `cls`, compiled."""
    asked = [it for it in fields(cls) if it.init]
    names: dict[str, Any] = {"_set": _set, "_missing": MISSING}
    lines = [f"    _set(self, {it.name!r}, {_value(it, names)})" for it in fields(cls)]
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    # As in the standard library, a field may stand by its name only.
    positional = [_parameter(it, names) for it in asked if not it.kw_only]
    by_name = [_parameter(it, names) for it in asked if it.kw_only]
    parameters = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(lines or ["    pass"]), names)
    return names["__init__"]


def _parameter(it: Field[Any], names: dict[str, Any]) -> str:
    if it.default is not MISSING:
        names[f"_default_{it.name}"] = it.default
        return f"{it.name}=_default_{it.name}"
    return it.name if it.default_factory is MISSING else f"{it.name}=_missing"


def _value(it: Field[Any], names: dict[str, Any]) -> str:
    if it.default_factory is not MISSING:
        names[f"_make_{it.name}"] = it.default_factory
        made = f"_make_{it.name}()"
        return f"{made} if {it.name} is _missing else {it.name}" if it.init else made
    if it.init:
        return it.name
    names[f"_default_{it.name}"] = it.default
    return f"_default_{it.name}"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{it.name}={getattr(self, it.name)!r}" for it in fields(self) if it.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _setattr(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, it.name) for it in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for it, value in zip(fields(self), state, strict=True):
        _set(self, it.name, value)


_SHARED: Final[Mapping[str, Callable[..., Any]]] = {
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
"""Methods that all records share; a class that writes one of them itself keeps its own."""
