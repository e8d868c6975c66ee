"""Asking before a whole device is erased (rule R5) and before it is worn (rule R11).

What is typed is the serial of this device, which no habit types. There is no flag that says yes to
whatever comes. Nothing is changed before the answer is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from iolab import units
from iolab.errors import RefusedError
from iolab.frozen import frozen
from iolab.run.observer import Observer
from iolab.run.wear import Forecast
from iolab.testbed.device import DeviceTestbed

WEAR_ASKED_SHARE: Final = 0.01
"""Rule R11: above this share of what a drive is rated to write, the user is asked."""
UNRATED_DRIVE_WRITES: Final = 200
"""Number of drive writes that a drive without data is taken to be rated for: Intel SSD 660p, 200
TBW for 1 TB.
"""


@frozen
class Device:
    """A device as the agent found it."""

    node: str
    serial: str
    serial_is: str
    model: str
    size_bytes: int
    phrase: str
    is_confirmed: bool
    is_rotational: bool
    rated_bytes: int | None
    stored: str | None = None
    """A warning, if something is stored between its blank ends."""

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> Self:
        """Wear that the facts of an opened testbed tell."""
        rated = facts.get("erase.rated_bytes")
        return cls(
            node=facts["erase.node"],
            serial=facts["erase.serial"],
            serial_is=facts["erase.serial_is"],
            model=facts["erase.model"],
            size_bytes=int(facts["erase.size_bytes"]),
            phrase=facts["erase.phrase"],
            is_confirmed=facts["erase.is_confirmed"] == "true",
            is_rotational=facts["erase.is_rotational"] == "true",
            rated_bytes=int(rated) if rated else None,
            stored=facts.get("erase.stored"),
        )

    def describe(self) -> str:
        """Several lines that can be compared with the sticker on the drive."""
        serial_is = "" if self.serial_is == "serial" else f"   ({self.serial_is}: it has no serial)"
        stored = f"\n  WARNING {self.stored}" if self.stored else ""
        return (
            f"  device  {self.node}\n"
            f"  model   {self.model}\n"
            f"  serial  {self.serial}{serial_is}\n"
            f"  size    {units.format_bytes_rounded(self.size_bytes)} ({self.size_bytes} bytes)"
            f"{stored}"
        )


@frozen
class Wear:
    """Writes of a study to a device, and their meaning for it."""

    planned_bytes: int
    device: Device
    is_bound: bool = False
    """True if it cannot become more than planned."""
    earlier_bytes: int = 0
    """Bytes that earlier starts of the study wrote; part of what is planned."""

    @classmethod
    def of(cls, forecast: Forecast, device: Device) -> Self:
        """Meaning of a forecast for `device`."""
        return cls(forecast.total_bytes, device, forecast.is_bound, forecast.earlier_bytes)

    @property
    def drive_writes(self) -> float:
        """Number of times that the whole device is written."""
        return self.planned_bytes / max(1, self.device.size_bytes)

    @property
    def share(self) -> float | None:
        """Share of what the drive is rated to write; None if discs do not wear."""
        if self.device.is_rotational:
            return None
        rated = self.device.rated_bytes or UNRATED_DRIVE_WRITES * self.device.size_bytes
        return self.planned_bytes / max(1, rated)

    @property
    def unasked_bytes(self) -> int | None:
        """Number of bytes that may be written without a question; None if discs do not wear."""
        if self.device.is_rotational:
            return None
        rated = self.device.rated_bytes or UNRATED_DRIVE_WRITES * self.device.size_bytes
        return int(WEAR_ASKED_SHARE * rated)

    @property
    def is_asked(self) -> bool:
        """Tell whether the user must agree."""
        return self.share is not None and self.share > WEAR_ASKED_SHARE

    def describe(self) -> str:
        """One line."""
        text = (
            f"{'at most' if self.is_bound else 'about'} "
            f"{units.format_bytes_rounded(self.planned_bytes)} are written in all, "
            f"{units.format_times(self.drive_writes)} times the device"
        )
        if not self.is_bound:
            text += " (an estimate: it depends on the device's speed or on the file system)"
        if self.earlier_bytes:
            written = units.format_bytes_rounded(self.earlier_bytes)
            text += f", {written} of them by earlier starts"
        if self.share is None:
            return text
        rating = (
            "of what it is rated for"
            if self.device.rated_bytes
            else f"of {UNRATED_DRIVE_WRITES} drive writes; it does not say what it is rated for"
        )
        return f"{text}: {units.grouped(100 * self.share, 2)}% {rating}"


def check_key(testbed: DeviceTestbed, device: Device, *, is_from_file: bool) -> None:
    """Refuse a study file that does not name the serial of the device it erases (rule R0).

    Raises
    ------
    RefusedError : the key is missing, or names another device.
    """
    named = testbed.allow_destructive
    if not named and is_from_file:
        raise RefusedError(
            f"the study file erases {device.node} but does not name its serial",
            f'add allow_destructive = "{device.serial}" to its testbed, or name the device with '
            f"--on device:{device.node}, if you mean that one",
        )
    if named and named != device.serial:
        raise RefusedError(
            f"the study file allows to erase '{named}', but {device.node} is {device.model} "
            f"{device.serial}",
            "look which device you mean: lsblk -o NAME,SERIAL,MODEL,SIZE; nothing was changed",
        )


def confirm_erasure(device: Device, typed_serial: str | None, observer: Observer) -> str | None:
    """Serial that the user confirmed; None if this study was confirmed within a day.

    Raises
    ------
    RefusedError : it was not confirmed, or another serial was typed.
    """
    if typed_serial is not None:
        if typed_serial == device.serial:
            if device.stored:
                observer.note(f"iolab: warning: {device.node} is erased: {device.stored}")
            return typed_serial
        raise RefusedError(
            f"{device.node} is not the device with the serial '{typed_serial}': it is "
            f"{device.model} {device.serial}",
            "look which device you mean: lsblk -o NAME,SERIAL,MODEL,SIZE; nothing was changed",
        )
    if device.is_confirmed:
        observer.note(
            f"iolab: {device.node} ({device.model} {device.serial}) was confirmed for this very "
            "study within the last 24 hours, and the samples of what it left are unchanged; it is "
            "erased again"
        )
        return None
    observer.note(f"iolab: EVERYTHING on this device will be lost:\n{device.describe()}")
    question = f"to go on, type: {device.phrase}"
    if observer.ask(question, f"--erase-serial {device.serial}") != device.phrase:
        raise RefusedError(
            f"that is not the phrase for {device.node}", "nothing was changed; try again"
        )
    return device.serial


def confirm_wear(wear: Wear, accepted_bytes: int | None, observer: Observer) -> int | None:
    """Ask before a drive is worn by more than a percent; returns how much may be written.

    That is what ``--accept-writes`` says, else what was typed, else the percent above which it
    would have been asked; None for discs, of which nobody is asked.

    Raises
    ------
    RefusedError : the user did not agree.
    """
    observer.note(f"iolab: {wear.describe()}")
    if accepted_bytes is not None and accepted_bytes <= wear.earlier_bytes:
        raise RefusedError(
            f"--accept-writes {accepted_bytes}: earlier starts of this study have written "
            f"{wear.earlier_bytes} bytes already",
            f"nothing was changed; to go on: --accept-writes {wear.planned_bytes}",
        )
    if accepted_bytes is not None and (not wear.is_asked or wear.planned_bytes <= accepted_bytes):
        _tell_limit(accepted_bytes, observer)
        return accepted_bytes
    if not wear.is_asked:
        return wear.unasked_bytes
    amount = units.format_bytes_rounded(wear.planned_bytes).replace(" ", "")
    phrase = f"WRITE {amount}"
    flag = f"--accept-writes {wear.planned_bytes}"
    observer.note("iolab: that wears the drive by more than 1 %")
    if observer.ask(f"to go on, type: {phrase}", flag) != phrase:
        raise RefusedError("that is not the phrase", "nothing was changed; plan fewer rounds")
    _tell_limit(wear.planned_bytes, observer)
    return wear.planned_bytes


def _tell_limit(accepted_bytes: int, observer: Observer) -> None:
    observer.note(
        f"iolab: it is stopped when {units.format_bytes_rounded(accepted_bytes)} are written"
    )
