"""Sizes, durations and shares as people type them, and back.

Sizes are binary throughout (``4k`` is 4096 bytes), as in every storage tool this laboratory stands
beside. Parsers raise :class:`ValueError` with a message that names the accepted forms; callers add
the place where the text was found.

Amounts of bytes *for reading* are written in powers of 1024 (``iec``: KiB, MiB) or of 1000 (``si``:
kB, MB). Which one is a property of what is being written, as the precision of a `decimal` is: it
holds inside ``with shown_in(...)`` and everything formed there agrees, however deep in sentences.
What is stored is always in bytes; what a user typed (``4k``) is never rewritten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal

from iolab.frozen import frozen
from iolab.pattern import pattern

if TYPE_CHECKING:
    from decimal import Decimal

_SIZE_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = pattern(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_RATE = pattern(r"(\d+(?:\.\d+)?)\s*(B|[kKMGT]B|[KMGT]iB)/s")
_RATE_UNITS: Final = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
    "kB": 1000,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}
_DURATION_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_DURATION_PART = pattern(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d)")
_RANGE = pattern(r"\s*(\S+?)\s*\.\.\s*(\S+)\s*")
SIZE_MAX: Final = 1 << 62
"""Bytes that a size may mean: 4 EiB."""
System = Literal["iec", "si"]
SYSTEMS: Final[tuple[System, ...]] = ("iec", "si")
_SHOWN: Final[ContextVar[System]] = ContextVar("iolab_units", default="iec")
_IEC_AMOUNT = pattern(
    "(?<![\\w.,\u202f])(?<!\\d )"
    r"(\d{1,3}(?:[,\u202f]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?) ([KMGT]iB)\b"
)
"""A number, perhaps with its digits in groups; of one whose groups have blanks nothing is taken."""


@frozen
class ByteUnit:
    """A unit that amounts of bytes are read in."""

    name: str
    size: int
    """Bytes in one of it."""


_UNITS: Final[dict[System, tuple[ByteUnit, ...]]] = {
    "iec": tuple(
        ByteUnit(name, 1024**i) for i, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))
    ),
    "si": tuple(ByteUnit(name, 1000**i) for i, name in enumerate(("B", "kB", "MB", "GB", "TB"))),
}


def shown() -> System:
    """Return the system in which amounts of bytes are written now."""
    return _SHOWN.get()


@contextmanager
def shown_in(system: System) -> Generator[None, None, None]:
    """Write amounts of bytes in a system while the block runs; threads do not see each other's."""
    token = _SHOWN.set(system)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def kilobyte() -> ByteUnit:
    """Return KiB or kB."""
    return _UNITS[shown()][1]


def megabyte() -> ByteUnit:
    """Return MiB or MB, the unit of throughputs."""
    return _UNITS[shown()][2]


def readable(value: float) -> ByteUnit:
    """Return the largest unit that leaves an amount of bytes at 1 or above."""
    return next((u for u in reversed(_UNITS[shown()]) if value >= u.size), _UNITS[shown()][0])


def parse_bytes(text: str | int) -> int:
    """Bytes of a size such as ``4k``, ``64 MiB`` or ``512``.

    Raises
    ------
    ValueError : not a positive size, or one beyond 2**62 bytes.
    """
    if isinstance(text, bool):
        raise ValueError(f"{text} is not a size: write 4k, 64m or 1g")
    if isinstance(text, int):
        value = text
    elif not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"'{text}' is not a size: write a whole number and k, m, g or t")
    else:
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not a size: write a whole number and k, m, g or t")
        value = int(match[1]) * _SIZE_UNITS[match[2].lower()]
    if not 0 < value <= SIZE_MAX:
        raise ValueError(f"'{text}' is not a size between 1 byte and 4 EiB")
    return value


def parse_rate(text: str) -> int:
    """Bytes per second as data sheets print them: ``3100MB/s`` is decimal, ``3100MiB/s`` binary.

    Raises
    ------
    ValueError : not a rate above zero.
    """
    match = _RATE.fullmatch(str(text).strip())
    from decimal import Decimal

    value = int(Decimal(match[1]) * _RATE_UNITS[match[2]]) if match else 0
    if not 0 < value <= SIZE_MAX:
        raise ValueError(f"'{text}' is not a rate: write 3100MB/s (decimal) or 2956MiB/s")
    return value


def format_bytes(value: int) -> str:
    """Canonical text of a size: the largest unit that divides it, ``4k`` or ``512``."""
    for suffix in ("t", "g", "m", "k"):
        unit = _SIZE_UNITS[suffix]
        if value and value % unit == 0:
            return f"{value // unit}{suffix}"
    return str(value)


def format_bytes_rounded(value: float) -> str:
    """A size for reading, to about three digits: ``1.4 GiB`` or ``1.5 GB``."""
    unit = readable(value)
    return f"{_three_digits(value / unit.size)} {unit.name}" if unit.size > 1 else f"{value:.0f} B"


def reworded(text: str) -> str:
    """A recorded message, its amounts (``1.4 GiB``) in the units shown now, to three digits.

    Messages are recorded in powers of 1024; the digits that were rounded away then stay lost.
    """
    if shown() == "iec":
        return text
    names = [unit.name for unit in _UNITS["iec"]]

    def said(found: re.Match[str]) -> str:
        number = float(re.sub("[,\u202f]", "", found[1]))
        return format_bytes_rounded(number * 1024 ** names.index(found[2]))

    return _IEC_AMOUNT.sub(said, text)


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"


def format_times(value: float) -> str:
    """Number of times that something happens, to about two digits: ``0.11``, ``7.6``,
    ``690 000``.
    """
    if value == 0:
        return "0"
    if value < 0.001:
        return "less than 0.001"
    digits = 1 - math.floor(math.log10(value))
    return grouped(round(value, digits), max(0, digits)).removesuffix(".0")


def grouped(value: float, decimals: int = 0) -> str:
    """Number with its digits in groups of three: ``690 000``."""
    return f"{value:,.{decimals}f}".replace(",", " ")


def parse_duration_ns(text: str | float) -> int:
    """Nanoseconds of a duration such as ``30m``, ``1h30m``, ``2.5s``; bare numbers are seconds.

    Raises
    ------
    ValueError : not a positive duration.
    """
    total = _duration_ns(text)
    if not 1 <= total < SIZE_MAX:
        raise ValueError(f"'{text}' is not a duration above zero")
    return round(total)


def parse_pause_ns(text: str | float) -> int:
    """Nanoseconds of a pause: a duration, or 0 (with or without a unit) for none.

    Raises
    ------
    ValueError : not a duration of 0 or more.
    """
    total = 0 if text == "0" else _duration_ns(text)
    return 0 if total == 0 else parse_duration_ns(text)


def _duration_ns(text: str | float) -> Decimal | float:
    if isinstance(text, bool):
        raise ValueError(f"{text} is not a duration: write 30s, 30m or 2h")
    if isinstance(text, int | float):
        return text * _DURATION_UNITS_NS["s"]
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"'{text}' is not a duration: write 30s, 30m, 2h or 1h30m")
    compact = text.replace(" ", "").lower()
    parts = _DURATION_PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(f"'{text}' is not a duration: write 30s, 30m, 2h or 1h30m")
    from decimal import Decimal

    return sum((Decimal(number) * _DURATION_UNITS_NS[unit] for number, unit in parts), Decimal(0))


def format_duration(value_ns: int) -> str:
    """Canonical text of a duration, exact to the nanosecond: ``1h30m``, ``2s500ms``."""
    rest, parts = value_ns, list[str]()
    for suffix in ("d", "h", "m", "s", "ms", "us", "ns"):
        count, rest = divmod(rest, _DURATION_UNITS_NS[suffix])
        if count:
            parts.append(f"{count}{suffix}")
    return "".join(parts) or "0s"


def format_duration_rounded(value_ns: float) -> str:
    """A duration for reading, in at most two units: ``3 min 20 s``."""
    seconds = max(0, round(value_ns / 1e9))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def parse_share(text: str | float) -> float:
    """A share in (0, 1) from ``5%``, ``5 %`` or ``0.05``.

    Raises
    ------
    ValueError : not a share above 0 % and below 100 %.
    """
    if isinstance(text, bool):
        raise ValueError(f"{text} is not a share: write 5% or 0.05")
    try:
        if isinstance(text, str) and text.strip().endswith("%"):
            value = float(text.strip()[:-1]) / 100
        else:
            value = float(text)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"'{text}' is not a share: write 5% or 0.05") from None
    if not 0 < value < 1:
        raise ValueError(f"'{text}' is not between 0 % and 100 %: write 5% or 0.05")
    return value


def doubling_range(text: str) -> tuple[str, str] | None:
    """Both ends of ``4k..16m``, or None if `text` is not a range."""
    match = _RANGE.fullmatch(text)
    return (match[1], match[2]) if match else None


def expand_doubling(low: int, high: int) -> tuple[int, ...]:
    """`low`, 2 `low`, 4 `low` ... up to and including `high`.

    Raises
    ------
    ValueError : `high` is not reached by doubling, or lies below `low`.
    """
    values = [low]
    while values[-1] < high:
        values.append(values[-1] * 2)
    if values[-1] != high:
        raise ValueError(f"{high} is not {low} doubled some times")
    return tuple(values)
