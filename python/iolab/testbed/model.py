"""Definition of a testbed: a private loop device, a directory, a whole device, a simulation.

Parsing is strict and touches nothing: it only looks whether paths exist.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from iolab import units
from iolab.errors import RefusedError, TestbedError
from iolab.frozen import frozen, replace
from iolab.regular_file import refuse_among_devices
from iolab.testbed.device import DeviceTestbed, device_testbed
from iolab.testbed.null import NullTestbed
from iolab.testbed.places import (
    OPTION,
    Make,
    Place,
    options_with,
    parse_places,
    spec_with,
    text_with,
)
from iolab.testbed.real import RealTestbed, only
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.testbed.sim import SimTestbed

DEFAULT_LOOP_BYTES: Final = 1 << 30
DEFAULT_IMAGE_DIR: Final = Path("/var/tmp")
USABLE_SHARE_OF_LOOP: Final = 0.85
"""Share of an image that file systems leave for files, data, metadata and journal taken off."""
USABLE_SHARE_OF_FREE: Final = 0.80
RESERVE_BYTES: Final = 5 << 30
"""Rule R10: never use more than 80 % of the free space, never leave less than 5 GiB ..."""
RESERVE_SHARE: Final = 0.05
"""... or, on a small file system, less than this share of it: a 4 GiB disk can be measured, too."""


@frozen
class LoopTestbed(RealTestbed):
    """An image file made, formatted and removed by iolab (class B)."""

    needs_root: ClassVar[bool] = True

    size_bytes: int = DEFAULT_LOOP_BYTES
    image_dir: Path = DEFAULT_IMAGE_DIR
    device_count: int = 1
    logical_block_bytes: int = 512
    places: tuple[Place, ...] = ()
    twin_count: int = 1
    """Devices made alike, for slices; it follows from what is compared and is no option."""

    @property
    def text(self) -> str:
        """Canonical short form."""
        return text_with(f"loop:{units.format_bytes(self.size_bytes)}", self.places)

    @property
    def request(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Kind, argument and options that differ from the defaults, canonically."""
        plain = LoopTestbed(self.size_bytes)
        options = {
            "device_count": (self.device_count, plain.device_count),
            "image_dir": (self.image_dir, plain.image_dir),
            "logical_block_bytes": (self.logical_block_bytes, plain.logical_block_bytes),
        }
        chosen = tuple(
            (name, str(value)) for name, (value, usual) in options.items() if value != usual
        )
        return "loop", units.format_bytes(self.size_bytes), options_with(chosen, self.places)

    def agent_spec(self) -> Mapping[str, object]:
        """Testbed spec of the agent protocol."""
        spec = {
            "kind": "loop",
            "size_bytes": self.size_bytes,
            "image_dir": str(self.image_dir),
            "device_count": self.device_count,
            "logical_block_bytes": self.logical_block_bytes,
            **({"twin_count": self.twin_count} if self.twin_count > 1 else {}),
        }
        return spec_with(spec, self.places)

    def check_space(self, file_bytes: int) -> None:
        """Refuse a study whose files cannot fit into the image.

        Raises
        ------
        TestbedError : too little space; says how much would do.
        """
        if file_bytes <= USABLE_SHARE_OF_LOOP * self.size_bytes:
            return
        wanted = 1 << (int(file_bytes / USABLE_SHARE_OF_LOOP) - 1).bit_length()
        raise TestbedError(
            f"{self.text} is too small for {units.format_bytes_rounded(file_bytes)} of files at "
            "the same time, with metadata and journal",
            f"use --on loop:{units.format_bytes(wanted)}, or smaller files",
        )


@frozen
class DirectoryTestbed(RealTestbed):
    """A directory of the user; only a sub-directory made by iolab is written (class A, A+)."""

    path: Path
    allow_knobs_on: tuple[str, ...] = ()
    is_in_place: bool = False
    """Files lie in the directory itself, under names that the user chose, as another program's."""
    devices: tuple[str, ...] = ()
    """Block devices that are only read, by whole paths; their counters are wanted as well."""
    identity: str = ""
    """Identity of these devices when the study was planned; empty is not known."""
    places: tuple[Place, ...] = ()

    @property
    def needs_root(self) -> bool:
        """Not by itself; switching knobs of the devices under it does, and some other places."""
        return any(place.testbed.needs_root for place in self.places)

    @property
    def text(self) -> str:
        """Canonical short form."""
        text = text_with(f"dir:{self.path}", self.places)
        return " and ".join([*self.devices, *([] if self.is_of_devices else [text])])

    @property
    def is_of_devices(self) -> bool:
        """Tell whether nothing but devices is worked on: the directory is that of their names."""
        return bool(self.devices) and self.path.is_relative_to("/dev")

    @property
    def request(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Kind, argument and options, canonically."""
        allowed = ",".join(self.allow_knobs_on)
        options = {
            "allow_knobs_on": allowed,
            "in_place": "true" if self.is_in_place else "",
            "devices": ",".join(self.devices),
            "identity": self.identity,
        }
        chosen = tuple((key, value) for key, value in options.items() if value)
        return "dir", str(self.path), options_with(chosen, self.places)

    def agent_spec(self) -> Mapping[str, object]:
        """Testbed spec of the agent protocol."""
        spec = {
            "kind": "directory",
            "path": str(self.path),
            "allow_knobs_on": list(self.allow_knobs_on),
            **({"in_place": True} if self.is_in_place else {}),
            **({"devices": list(self.devices)} if self.devices else {}),
        }
        return spec_with(spec, self.places)

    def check_space(self, file_bytes: int) -> None:
        """Refuse a study that would fill somebody's disk (rule R10).

        Raises
        ------
        RefusedError : no file system for data; or more than 80 % of the free space, or less than
            the reserve left.
        """
        if self.is_of_devices:
            return
        refuse_among_devices(self.path)
        status = os.statvfs(self.path)
        if status.f_blocks == 0:
            raise RefusedError(
                f"{self.path} lies on no file system for data (the kernel made it up, as /proc and "
                "/sys)",
                "name a directory on a disk, or use --on loop:1g",
            )
        free = status.f_bavail * status.f_frsize
        size = status.f_blocks * status.f_frsize
        reserve = min(RESERVE_BYTES, int(RESERVE_SHARE * size))
        if file_bytes <= USABLE_SHARE_OF_FREE * free and free - file_bytes >= reserve:
            return
        raise RefusedError(
            f"{self.path} has {units.format_bytes_rounded(free)} free; files of "
            f"{units.format_bytes_rounded(file_bytes)} would use more than 80 % of it or leave "
            f"less than {units.format_bytes_rounded(reserve)}",
            "use smaller files, fewer workers, or another directory",
        )


@frozen
class DirectoryElsewhere(DirectoryTestbed):
    """A directory of another host, at which only the agent there can look."""

    def check_space(self, file_bytes: int) -> None:
        """Leave it to the agent, which looks before each trial."""


Testbed: TypeAlias = "LoopTestbed | DirectoryTestbed | DeviceTestbed | SimTestbed | NullTestbed"


def refuse_unknown_kind(kind: str) -> None:
    """Refuse what is no kind of testbed.

    Raises
    ------
    TestbedError : it is none; names those that there are.
    """
    if kind in _MAKERS:
        return
    if kind.startswith("/dev/"):
        _refuse_bare_device(kind[:_NAME_SHOWN])
    is_path = _is_directory(kind) or ("/" in kind and not _is_there(kind))
    guess = f"dir:{kind}" if is_path else "dir:PATH"
    raise TestbedError(
        f"'{kind[:_NAME_SHOWN]}' is not a kind of testbed{nearest(kind[:_NAME_SHOWN], _MAKERS)}",
        f"use --on loop:1g, --on {guess[:_NAME_SHOWN]}, --on device:/dev/DISK, --on sim:PROFILE or "
        "--on null:",
    )


def _refuse_bare_device(path: str) -> None:
    """Refuse a device without the word that says what happens to it.

    Raises
    ------
    TestbedError : always; says whether the device is there.
    """
    if not _is_there(path):
        raise TestbedError(
            f"there is no {path}",
            "`lsblk` lists the disks; --on device:/dev/DISK measures one and erases it, "
            "--on loop:1g needs none",
        )
    raise TestbedError(
        f"{path} is not a kind of testbed",
        f"--on device:{path} measures the device and erases it, --on dir:PATH measures a directory "
        "and leaves what is there",
    )


def make_testbed(
    kind: str, argument: str, options: Mapping[str, str], *, is_here: bool = True
) -> Testbed:
    """The testbed of ``KIND[:ARGUMENT]`` and its options, with its further places.

    Parameters
    ----------
    is_here : False if it lies on another host, where its agent looks whether paths exist.

    Raises
    ------
    TestbedError : not a testbed, or an option or a place that it does not have.
    """
    refuse_unknown_kind(kind)
    own = {name: value for name, value in options.items() if name != OPTION}
    try:
        main = (_MAKERS if is_here else _MAKERS_ELSEWHERE)[kind](argument, own)
    except OSError as error:
        raise TestbedError(
            f"{kind}:{argument[:_NAME_SHOWN]}: {error.strerror}", "name another one"
        ) from None
    if OPTION not in options:
        return main
    return _with_places(main, options[OPTION], partial(make_testbed, is_here=is_here))


def _with_places(main: Testbed, text: str, make: Make) -> Testbed:
    places = parse_places(text, main, make)
    if isinstance(main, NullTestbed):  # It has none, which was said.
        return main
    return replace(main, places=places)


def with_journal_device(testbed: Testbed) -> Testbed:
    """The same testbed with a second device, for an external journal."""
    if not isinstance(testbed, LoopTestbed):
        return testbed
    return replace(testbed, device_count=max(2, testbed.device_count))


def with_twins(testbed: Testbed, count: int) -> Testbed:
    """The same testbed with `count` devices made alike, for alternating slices."""
    return replace(testbed, twin_count=count) if isinstance(testbed, LoopTestbed) else testbed


def _loop(argument: str, options: Mapping[str, str]) -> LoopTestbed:
    made = _loop_with(argument, options, _absolute)
    image_dir = made.image_dir
    if not image_dir.is_dir():
        what = "is not a directory" if image_dir.exists() else "does not exist"
        raise TestbedError(
            f"--image-dir {image_dir} {what}"
            if "image_dir" in options
            else f"{image_dir}, where images of loop devices lie, {what}",
            "name a directory for the image, as in --image-dir /var/tmp",
        )
    return made


def _loop_elsewhere(argument: str, options: Mapping[str, str]) -> LoopTestbed:
    return _loop_with(argument, options, _absolute_elsewhere)


def _loop_with(
    argument: str, options: Mapping[str, str], absolute: Callable[[str], Path]
) -> LoopTestbed:
    only(options, "loop", ("image_dir", "device_count", "logical_block_bytes"))
    try:
        size_bytes = units.parse_bytes(argument) if argument else DEFAULT_LOOP_BYTES
    except ValueError as error:
        raise TestbedError(f"loop:{argument}: {error}", "as in --on loop:1g") from None
    return LoopTestbed(
        size_bytes,
        absolute(options.get("image_dir", str(DEFAULT_IMAGE_DIR))),
        _one_of(options, "device_count", (1, 2)),
        _one_of(options, "logical_block_bytes", (512, 4096)),
    )


def _directory(argument: str, options: Mapping[str, str]) -> DirectoryTestbed:
    made = _directory_with(argument, options, _absolute)
    path = made.path
    if not path.exists():
        command = shlex.join(["mkdir", "-p", str(path)])
        raise TestbedError(f"{path} does not exist", f"make it first: `{command}`")
    if not path.is_dir():
        raise TestbedError(f"{path} is not a directory", "name the directory that shall be used")
    return made


def _directory_elsewhere(argument: str, options: Mapping[str, str]) -> DirectoryTestbed:
    made = _directory_with(argument, options, _absolute_elsewhere)
    if made.is_in_place:
        raise TestbedError(
            f"{made.text}: files in a directory of the user's own are looked at here, not on hosts",
            "leave in_place out",
        )
    return DirectoryElsewhere(made.path, made.allow_knobs_on)


def _directory_with(
    argument: str, options: Mapping[str, str], absolute: Callable[[str], Path]
) -> DirectoryTestbed:
    only(options, "dir", ("allow_knobs_on", "in_place", "devices", "identity"))
    if not argument:
        raise TestbedError("dir: needs a path", "as in --on dir:/tank/scratch")
    path = absolute(argument)
    names = options.get("allow_knobs_on", "").split(",")
    is_in_place = options.get("in_place", "false")
    if is_in_place not in ("false", "true"):
        raise TestbedError(f"in_place = {is_in_place} is neither true nor false")
    allowed = tuple(name.strip() for name in names if name.strip())
    devices = tuple(name for name in options.get("devices", "").split(",") if name)
    if not all(name.startswith("/") for name in devices):
        raise TestbedError("devices are whole paths", 'as in devices = "/dev/sdx"')
    identity = options.get("identity", "")
    return DirectoryTestbed(path, allowed, is_in_place == "true", devices, identity)


def _absolute(text: str) -> Path:
    try:
        return Path(text).expanduser().resolve()
    except (RuntimeError, OSError) as error:
        raise TestbedError(f"{text}: {error}", "write the whole path") from None


def _absolute_elsewhere(text: str) -> Path:
    if not text.startswith("/"):
        raise TestbedError(f"{text} is no whole path", "on hosts, write it from / on")
    return Path(os.path.normpath(text))


def _no_device_elsewhere(argument: str, options: Mapping[str, str]) -> Testbed:
    del options
    raise TestbedError(
        f"device:{argument} on several hosts: each disk is erased by its own serial number only",
        "measure it on each host, and judge all with `iolab fleet`",
    )


def _nothing_elsewhere(kind: str, why: str) -> Callable[[str, Mapping[str, str]], Testbed]:
    def refuse(argument: str, options: Mapping[str, str]) -> Testbed:
        del options
        raise TestbedError(f"{kind}:{argument} needs no hosts: {why}", "leave --hosts out")

    return refuse


def _simulated(argument: str, options: Mapping[str, str]) -> Testbed:
    from iolab.testbed.sim import simulated_testbed

    return simulated_testbed(argument, options)


def _null(argument: str, options: Mapping[str, str]) -> Testbed:
    from iolab.testbed.null import null_testbed

    return null_testbed(argument, options)


_MAKERS: Final[dict[str, Callable[[str, Mapping[str, str]], Testbed]]] = {
    "loop": _loop,
    "dir": _directory,
    "device": device_testbed,
    "sim": _simulated,
    "null": _null,
}
_MAKERS_ELSEWHERE: Final[dict[str, Callable[[str, Mapping[str, str]], Testbed]]] = {
    "loop": _loop_elsewhere,
    "dir": _directory_elsewhere,
    "device": _no_device_elsewhere,
    "sim": _nothing_elsewhere("sim", "it is the same simulation on each"),
    "null": _nothing_elsewhere("null", "it measures iolab itself"),
}
_NAME_SHOWN: Final = 200


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # Longer than any name.
        return False


def _is_directory(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # Longer than any name.
        return False


def _one_of(options: Mapping[str, str], name: str, allowed: tuple[int, ...]) -> int:
    text = options.get(name, str(allowed[0]))
    if text not in map(str, allowed):
        raise TestbedError(f"{name} = {text} is not one of {', '.join(map(str, allowed))}")
    return int(text)
