"""A whole block device of the user (class C): everything on it is lost.

Here is only what was asked for. Whether the device may be used at all is the agent's to say, and
whether the user has confirmed it the command line's to ask.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from iolab import units
from iolab.errors import RefusedError, TestbedError
from iolab.frozen import frozen
from iolab.testbed.places import Place, options_with, spec_with, text_with
from iolab.testbed.real import RealTestbed, only

EDGE_BYTES: Final = 1 << 20
"""Bytes that are left alone at each end."""
PRECONDITIONS: Final = ("none", "fill", "fill2x", "random")
DRIVE_WRITES: Final = {"none": 0, "fill": 1, "fill2x": 2, "random": 4}
"""At most so many times the whole device is written before the first trial."""
_DRIVE_WRITES_LEAST: Final = {"none": 0, "fill": 1, "fill2x": 2, "random": 2}
"""At least so many times, without its ends."""
DEFAULT_ROUND_NS: Final = 60_000_000_000
"""SNIA PTS 2.0, 7: a round of the preconditioning lasts a minute."""
_SECTOR_BYTES: Final = 512


@frozen
class DeviceTestbed(RealTestbed):
    """A whole device, raw or with a file system made by iolab."""

    needs_root: ClassVar[bool] = True
    has_knobs_on_paper: ClassVar[bool] = True

    path: Path
    allow_destructive: str = ""
    """Serial that the study file names."""
    precondition: str = "none"
    precondition_round_ns: int = DEFAULT_ROUND_NS
    erase_serial: str | None = None
    """Serial that the user typed; no part of the study."""
    plan_digest: str | None = None
    """The study that is run: only the same one may go on without asking."""
    protected: tuple[str, ...] = ()
    """Paths that must not lie on the device, such as the results."""
    places: tuple[Place, ...] = ()

    @property
    def text(self) -> str:
        """Canonical short form."""
        return text_with(f"device:{self.path}", self.places)

    @property
    def request(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Kind, argument and options that differ from the defaults, canonically."""
        options = {
            "allow_destructive": (self.allow_destructive, ""),
            "precondition": (self.precondition, "none"),
            "precondition_round": (
                units.format_duration(self.precondition_round_ns),
                units.format_duration(DEFAULT_ROUND_NS),
            ),
        }
        chosen = tuple((name, value) for name, (value, usual) in options.items() if value != usual)
        return "device", str(self.path), options_with(chosen, self.places)

    def agent_spec(self) -> Mapping[str, object]:
        """Testbed spec of the agent protocol."""
        spec = {
            "kind": "device",
            "path": str(self.path),
            "erase_serial": self.erase_serial,
            "study": self.plan_digest,
            "protected": list(self.protected),
            "precondition": self.precondition,
            "precondition_round_ns": self.precondition_round_ns,
        }
        return spec_with(spec, self.places)

    def check_space(self, file_bytes: int) -> None:
        """Refuse a study whose files cannot fit on the device.

        Raises
        ------
        RefusedError : too small; says how large it is.
        """
        size = self.size_bytes()
        if size is None or file_bytes <= size - 2 * EDGE_BYTES:
            return
        raise RefusedError(
            f"{self.path} has {units.format_bytes_rounded(size)}; files of "
            f"{units.format_bytes_rounded(file_bytes)} do not fit on it",
            "use smaller files, or fewer workers",
        )

    def size_bytes(self) -> int | None:
        """Size of the device; None if it is none."""
        status = self.path.stat()
        if not stat.S_ISBLK(status.st_mode):
            return None  # The agent says what it is instead.
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        try:
            sectors = Path("/sys/dev/block", number, "size").read_text()
        except OSError:
            return None
        return int(sectors) * _SECTOR_BYTES

    def precondition_bytes(self, size_bytes: int) -> int:
        """At most so much is written before the first trial."""
        return DRIVE_WRITES[self.precondition] * size_bytes

    def least_precondition_bytes(self, size_bytes: int) -> int:
        """At least so much is written before the first trial."""
        return _DRIVE_WRITES_LEAST[self.precondition] * max(0, size_bytes - 2 * EDGE_BYTES)


def device_testbed(argument: str, options: Mapping[str, str]) -> DeviceTestbed:
    """The testbed of ``device:PATH`` and its options.

    Raises
    ------
    TestbedError : no path at all, or an option that means nothing.
    RefusedError : nothing lies at that path.
    """
    only(options, "device", ("allow_destructive", "precondition", "precondition_round"))
    if not argument:
        raise TestbedError("device: needs a path", "as in --on device:/dev/disk/by-id/NAME")
    # Aliases stay as they are: by-id names mean the same disk tomorrow.
    path = Path.cwd() / Path(argument).expanduser()
    if not path.exists():
        # As the agent's word about whatever else is no device: one exit code for a wrong PATH.
        raise RefusedError(
            f"{path} does not exist, so it is no device",
            "see lsblk -o NAME,SERIAL,MODEL,SIZE; nothing was changed",
        )
    precondition = options.get("precondition", "none")
    if precondition not in PRECONDITIONS:
        raise TestbedError(
            f"precondition = {precondition} is not one of {', '.join(PRECONDITIONS)}"
        )
    round_text = options.get("precondition_round")
    try:
        round_ns = units.parse_duration_ns(round_text) if round_text else DEFAULT_ROUND_NS
    except ValueError as error:
        raise TestbedError(f"precondition_round: {error}", "as in 60s") from None
    return DeviceTestbed(path, options.get("allow_destructive", ""), precondition, round_ns)
