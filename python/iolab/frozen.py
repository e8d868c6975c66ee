"""Frozen records with slots: `dataclass(frozen=True, slots=True)` that is worked out when asked.

The standard decorator looks at every field and writes six methods of each class as text and
compiles them, about a millisecond per class, before anything is asked for: half of the start of a
command that imports fifty. A :func:`frozen` is a dataclass too (``replace``, ``fields``, ``asdict``
and ``match`` know it): the standard decorator looks at it when the first of them asks. What its
methods share is written here once, and ``__init__`` is compiled when many instances are made. What
the standard decorator imports for its own compiling is put off: `inspect`, and with it Python's
parser, is loaded when a name of it is asked for.
"""

from __future__ import annotations

from iolab.deferred_import import put_off

put_off("inspect")

import dataclasses  # noqa: E402
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
R = TypeVar("R")
Fields = tuple[Field[Any], ...]
_set = object.__setattr__
_FEW: Final = 16
"""Instances of a class that are made without compiling anything: less than what that takes."""
_FIELDS: Final = "__frozen_fields__"
_ASKED_LATER: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
"""Attributes that the standard decorator adds to a class, and its functions ask for."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Class) -> Class:
    """Make `cls` a frozen dataclass with slots."""
    return _frozen(cls, has_slots=True)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_with_caches(cls: Class) -> Class:
    """Make `cls` a frozen dataclass that may have ``cached_property``: without slots."""
    return _frozen(cls, has_slots=False)


def replace(record: R, /, **changes: Any) -> R:
    """Return `record` with other values of some fields, as `dataclasses.replace` does.

    Raises
    ------
    TypeError : a name is none of its fields.
    """
    known: Fields | None = getattr(record, _FIELDS, None)
    if known is None:
        return dataclasses.replace(record, **changes)  # pyright: ignore[reportArgumentType]
    for it in known:
        if it.init and it.name not in changes:
            changes[it.name] = getattr(record, it.name)
    return record.__class__(**changes)


class _Later:
    """An attribute of a class that the standard decorator computes when it is first asked for."""

    def __init__(self, record: _Record, name: str) -> None:
        self.record, self.name = record, name

    def __get__(self, instance: object, owner: type) -> Any:
        self.record.look()
        return getattr(owner, self.name)


class _Record:
    """A class as it was written, and the class that was made of it."""

    def __init__(self, cls: type) -> None:
        self.written = cls
        self.body = {
            name: value
            for name, value in vars(cls).items()
            if name not in ("__dict__", "__weakref__")
        }
        own = _own_fields(cls)
        self.own_names = [it.name for it in own]
        inherited = {it.name: it for base in cls.__mro__[:0:-1] for it in _fields_of(base)}
        self.all: Fields = tuple({**inherited, **{it.name: it for it in own}}.values())
        self.made = cls

    def make(self, *, has_slots: bool) -> Any:
        """The class without the values of its fields, which stand in the way of slots."""
        body = dict(self.body)
        if has_slots:
            for it in self.own_names:
                body.pop(it, None)
            slots = {
                name for base in self.written.__mro__ for name in vars(base).get("__slots__", ())
            }
            body["__slots__"] = tuple(it for it in self.own_names if it not in slots)
        else:
            for name in self.own_names:
                if isinstance(value := body.get(name), Field):
                    del body[name]
                    if value.default is not MISSING:
                        body[name] = value.default
        for name in _ASKED_LATER:
            body[name] = _Later(self, name)
        body[_FIELDS] = self.all
        self.made = type(self.written)(self.written.__name__, self.written.__bases__, body)
        return self.made

    def look(self) -> None:
        """Let the standard decorator look at the class as it was written."""
        body = {"__doc__": "", **self.body}
        same = type(self.written)(self.written.__name__, self.written.__bases__, body)
        known = dataclass(init=False, repr=False, eq=False)(same)
        for name in _ASKED_LATER:
            setattr(self.made, name, getattr(known, name))


def _own_fields(cls: type) -> list[Field[Any]]:
    """Fields that the body of `cls` names."""
    found: list[Field[Any]] = []
    for name, text in cls.__annotations__.items():
        if not isinstance(text, str) or "InitVar" in text or "KW_ONLY" in text:
            message = f"{cls.__name__}.{name}: a frozen record's annotations are texts of types"
            raise TypeError(message)
        if text.startswith("ClassVar"):
            continue
        value = vars(cls).get(name, MISSING)
        if value.__class__.__hash__ is None:
            message = f"{cls.__name__}.{name}: all records would share one {type(value).__name__}"
            raise ValueError(message)
        own = value if isinstance(value, Field) else field(default=value)
        own.name = name
        found.append(own)
    return found


def _fields_of(base: type) -> Fields:
    """Fields of a class that this one is derived from, those of its own bases among them."""
    if _FIELDS in vars(base):
        return vars(base)[_FIELDS]
    return fields(base) if "__dataclass_fields__" in vars(base) else ()


def _frozen(cls: Class, *, has_slots: bool) -> Class:
    own = set(vars(cls))
    record = _Record(cls)
    all_fields = record.all
    made: Any = record.make(has_slots=has_slots)
    names = [it.name for it in all_fields if it.compare]
    compared = attrgetter(*names) if names else type
    few = _FEW

    def init(self: Any, *values: Any, **named: Any) -> None:
        nonlocal few
        few -= 1
        if few < 0 or not _set_fields(self, all_fields, values, named):
            made.__init__ = _initialiser(made, all_fields)
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


def _set_fields(
    self: Any, all_fields: Fields, values: tuple[Any, ...], named: dict[str, Any]
) -> bool:
    """Set all fields; False if something is missing or too much, of which nothing is said here."""
    given = iter(values)
    n_named = 0
    for it in all_fields:
        name = it.name
        if it.init and it.kw_only is not True and (value := next(given, MISSING)) is not MISSING:
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


def _initialiser(cls: type, all_fields: Fields) -> Callable[..., None]:
    """``__init__`` of the fields of `cls`, compiled."""
    asked = [it for it in all_fields if it.init]
    names: dict[str, Any] = {"_set": _set, "_missing": MISSING}
    lines = [f"    _set(self, {it.name!r}, {_value(it, names)})" for it in all_fields]
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    # As in the standard library, a field may stand by its name only.
    positional = [_parameter(it, names) for it in asked if it.kw_only is not True]
    by_name = [_parameter(it, names) for it in asked if it.kw_only is True]
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
