"""Frozen records behave as `dataclass(frozen=True, slots=True)` does. Issue 14, point 18.

Symptom: half of the start of a command was spent on compiling the methods of dataclasses. Cause:
the standard decorator compiles six per class at import. Each test here is run on both decorators.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from iolab.frozen import frozen
from iolab.frozen import replace as replace_in_short


class Plain:
    limit: ClassVar[int] = 3
    name: str
    size: int = 4
    parts: list[int] = field(default_factory=list[int])
    hidden: str = field(default="h", repr=False, compare=False)
    tail: int = field(default=0, kw_only=True)


class Checked:
    value: int
    twice: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")
        object.__setattr__(self, "twice", 2 * self.value)

    def __repr__(self) -> str:
        return "mine"


class Longer(Checked):
    more: str = "m"


class Empty:
    pass


def _copy_of(cls: type) -> type:
    kept = ("__dict__", "__weakref__")
    body = {name: value for name, value in vars(cls).items() if name not in kept}
    return type(cls.__name__, (), body)


BOTH = pytest.mark.parametrize("make", [frozen, dataclass(frozen=True, slots=True)])
Make = Callable[[type], Any]


@BOTH
def test_fields_are_set_by_place_by_name_and_by_default(make: Make) -> None:
    cls = make(_copy_of(Plain))
    one = cls("a", parts=[1], tail=2)
    assert (one.name, one.size, one.parts, one.hidden, one.tail) == ("a", 4, [1], "h", 2)
    assert cls("a").parts is not cls("a").parts
    assert not hasattr(one, "__dict__")
    assert cls.limit == 3
    assert [it.name for it in fields(cls)] == ["name", "size", "parts", "hidden", "tail"]
    for values, named in [((), {}), (("a", 1, [], "h", 5), {}), (("a",), {"colour": 1})]:
        with pytest.raises(TypeError):
            cls(*values, **named)


@BOTH
def test_records_of_equal_fields_are_equal_and_are_shown_alike(make: Make) -> None:
    cls = make(_copy_of(Plain))
    assert cls("a", hidden="x") == cls("a", hidden="y")
    assert cls("a") != cls("b")
    assert cls("a") != make(_copy_of(Plain))("a"), "of another class"
    assert repr(cls("a")) == "Plain(name='a', size=4, parts=[], tail=0)"
    checked = make(_copy_of(Checked))
    assert hash(checked(1)) == hash(checked(1))
    assert len({checked(1), checked(1), checked(2)}) == 2
    assert repr(checked(1)) == "mine"
    empty = make(_copy_of(Empty))
    assert empty() == empty()
    with pytest.raises(TypeError):
        hash(cls("a", parts=[1]))


@BOTH
def test_nothing_of_a_record_is_changed(make: Make) -> None:
    one = make(_copy_of(Plain))("a")
    for name in ("name", "colour"):
        with pytest.raises((FrozenInstanceError, TypeError, AttributeError)):
            setattr(one, name, 1)
    with pytest.raises(FrozenInstanceError):
        del one.name
    other = replace(one, size=8)
    assert (one.size, other.size, other.name) == (4, 8, "a")
    assert replace_in_short(one, size=8) == other
    with pytest.raises(TypeError):
        replace_in_short(one, colour=1)
    assert asdict(other)["size"] == 8


@BOTH
def test_what_follows_the_setting_of_fields_runs(make: Make) -> None:
    cls = make(_copy_of(Checked))
    assert cls(2).twice == 4
    with pytest.raises(ValueError, match="negative"):
        cls(-1)
    with pytest.raises(TypeError):
        cls(1, 2)


@frozen
class Kept:
    """In the module, where it can be found again."""

    name: str
    parts: tuple[int, ...] = ()


def test_copies_and_pickles_are_whole() -> None:
    one = Kept("a", (1, 2))
    assert copy.copy(one) == one == copy.deepcopy(one)
    assert pickle.loads(pickle.dumps(one)) == one
    match one:
        case Kept(name, parts):
            assert (name, parts) == ("a", (1, 2))


@BOTH
def test_a_record_has_the_fields_of_what_it_is_derived_from(make: Make) -> None:
    base = make(_copy_of(Checked))
    body = {name: value for name, value in vars(Longer).items() if name != "__doc__"}
    cls = make(type("Longer", (base,), body))
    one = cls(3, "x")
    assert (one.value, one.twice, one.more) == (3, 6, "x")
    assert [it.name for it in fields(cls)] == ["value", "twice", "more"]
    assert one.__match_args__ == ("value", "more")
    assert replace(one, value=4).twice == 8
    assert not hasattr(one, "__dict__")


@BOTH
def test_a_default_that_all_records_would_share_is_refused(make: Make) -> None:
    class Shared:
        parts: list[int] = []  # noqa: RUF012 - what is refused

    with pytest.raises(ValueError, match="parts"):
        make(_copy_of(Shared))
