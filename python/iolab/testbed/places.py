"""Further places of a testbed: each is a testbed of its own, for sets of files that name it.

``loop:1g,backup=loop:2g,log=dir:/tank`` is a loop device with two further places. What a study
varies (file system, scheduler, other knobs) concerns the first one; a further loop device has one
file system in all trials (``backup=loop:2g:xfs``; ext4 if none is named).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar, cast

from iolab.errors import TestbedError
from iolab.frozen import frozen

if TYPE_CHECKING:
    from iolab.protocol import PlaceSpec, Stack, TestbedSpec
    from iolab.testbed.model import Testbed

_Spec = TypeVar("_Spec", bound=Mapping[str, object])

OPTION: Final = "places"
"""Option of a testbed that names its further places."""
DEFAULT_FS: Final = "ext4"
_PARTS_OF_LOOP: Final = 2
_HINT: Final = "as in --on loop:1g,backup=loop:2g"

Make = Callable[[str, str, Mapping[str, str]], "Testbed"]
"""Makes the testbed of a kind, an argument and options."""


@frozen
class Place:
    """A further place: its name, what it lies on, and the file system that is made there."""

    name: str
    testbed: Testbed
    fs: str | None

    @property
    def text(self) -> str:
        """Short form, as typed."""
        fs = f":{self.fs}" if self.fs not in (None, DEFAULT_FS) else ""
        return f"{self.name}={self.testbed.text}{fs}"

    def agent_spec(self) -> PlaceSpec:
        """Place of the agent protocol."""
        stack: Stack | None = None
        if self.fs is not None:
            stack = {
                "fs": self.fs,
                "mkfs_options": [],
                "mount_options": [],
                "has_external_journal": False,
            }
        testbed = cast("TestbedSpec", self.testbed.agent_spec())
        return {"name": self.name, "testbed": testbed, "stack": stack}


def parse_places(text: str, main: Testbed, make: Make) -> tuple[Place, ...]:
    """The places of ``NAME=KIND[:ARGUMENT],...`` beside a testbed.

    Parameters
    ----------
    text : the value of the option, as typed behind the first comma.
    main : where files lie that name no place.
    make : makes each of the others.

    Raises
    ------
    TestbedError : no name, a name twice, or a kind that cannot be beside the main one.
    """
    found = list[Place]()
    for part in text.split(","):
        name, has_kind, rest = part.strip().partition("=")
        if not has_kind or not name:
            raise TestbedError(f"place {part!r}: not NAME=TESTBED", _HINT)
        if any(name == other.name for other in found):
            raise TestbedError(f"two places are called {name}", "name each once")
        found.append(_place(name, rest, main, make))
    return tuple(found)


def _place(name: str, text: str, main: Testbed, make: Make) -> Place:
    kind, _, argument = text.partition(":")
    kind = "dir" if kind == "directory" else kind
    if kind not in _BESIDE.get(main.request[0], ()):
        known = " or ".join(f"{kind}:" for kind in _BESIDE.get(main.request[0], ()))
        why = f"use {known}" if known else "leave the places out"
        raise TestbedError(f"place {name}: {text} cannot be beside {main.text}", why)
    fs: str | None = None
    options: dict[str, str] = {}
    if kind == "loop":
        argument, _, fs = argument.partition(":")
        fs = fs or DEFAULT_FS
        # Images lie where that of the main one lies.
        image_dir = dict(main.request[2]).get("image_dir") if main.request[0] == kind else None
        options = {"image_dir": image_dir} if image_dir else {}
    try:
        return Place(name, make(kind, argument, options), fs)
    except TestbedError as error:
        raise type(error)(f"place {name}: {error.message}", error.hint) from None


_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("loop", "dir", "device"), ("loop", "dir")),
    "sim": ("sim",),
}
"""Kinds of places that can be beside a testbed of some kind."""


def text_with(text: str, places: Iterable[Place]) -> str:
    """Short form of a testbed with its places."""
    return ",".join([text, *(place.text for place in places)])


def options_with(
    options: tuple[tuple[str, str], ...], places: tuple[Place, ...]
) -> tuple[tuple[str, str], ...]:
    """Options of a testbed and, if there are any, its places."""
    if not places:
        return options
    return (*options, (OPTION, ",".join(place.text for place in places)))


def spec_with(spec: _Spec, places: tuple[Place, ...]) -> _Spec:
    """Testbed spec of the agent protocol, with all places."""
    if not places:
        return spec
    others = [place.agent_spec() for place in places]
    return cast("_Spec", {"kind": OPTION, "main": spec, "others": others})
