"""``iolab iostat``: what the disks do, in the layouts of Linux and Solaris, and as JSON.

The first report covers the time since the machine started, as iostat's does, unless ``-y`` leaves
it out. Nothing is changed and no right is needed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from iolab.cli import iostat_stored
from iolab.cli.console import Console
from iolab.cli.iostat_layout import ReportLayout, columns_of, row_of
from iolab.cli.parser import Parser
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library import disk_tables
from iolab.library.disk_counters import (
    Counters,
    Figures,
    Processors,
    Reading,
    figures,
    kstat_of,
    read_counters,
    solaris_figures,
)
from iolab.library.services import Services
from iolab.library.stored import is_stored
from iolab.wording import nearest

NAME = "iostat"
HELP = "show what the disks do, in the layouts of iostat"

_INTERVAL_MAX_S: Final = 86_400.0
_TICK_S: Final = 0.01
"""The kernel tells its uptime in hundredths of a second."""
_SHOWN: Final = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the words of iostat."""
    if isinstance(parser, Parser):
        parser.mixes_words = True
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RESULTS | DEVICE | INTERVAL [COUNT]",
        help="a stored study, whose intervals are shown; devices to show (all that were used); "
        "seconds; number of reports",
    )
    parser.add_argument("-x", action="store_true", help="extended statistics")
    parser.add_argument("-s", action="store_true", help="short: one row for all directions")
    parser.add_argument("-m", action="store_true", help="megabytes instead of kilobytes")
    parser.add_argument("-k", action="store_true", help="kilobytes (as without it)")
    parser.add_argument("-z", action="store_true", help="leave out devices that did nothing")
    parser.add_argument("-t", action="store_true", help="print the time of each report")
    parser.add_argument("-y", action="store_true", help="leave out the report since the start")
    parser.add_argument(
        "-p", action="store_true", help="partitions, too; as -p ALL or -p sda,sdb as well"
    )
    parser.add_argument("-c", action="store_true", help="only processors; with --solaris: also")
    parser.add_argument("-d", action="store_true", help="only devices")
    parser.add_argument(
        "-n", action="store_true", help="with --solaris -x: names in the last column"
    )
    parser.add_argument("-o", metavar="JSON", dest="output", help="JSON instead of a table")
    parser.add_argument("--trial", metavar="ID", help="of a stored study only this one, as t0001")
    parser.add_argument("--solaris", action="store_true", help="layout of Solaris; implies -x")


@frozen
class Wanted:
    """Reports that were asked for."""

    devices: tuple[str, ...]
    interval_s: float | None
    count: int | None
    """Number of reports; None: until stopped."""
    flags: argparse.Namespace
    has_processors: bool
    has_devices: bool


def execute(arguments: argparse.Namespace, _: Services, console: Console) -> int:
    """Print reports until there were enough."""
    stored = [Path(word) for word in arguments.words if _is_results(word)]
    if stored:
        return _show_stored(arguments, stored, console)
    wanted = understand(arguments)
    try:
        for piece in reports(wanted, read_counters, time.sleep):
            console.stream(piece.encode(errors="replace"))
    except KeyboardInterrupt:
        if wanted.flags.output:
            console.stream(json_end().encode())
    return 0


def _is_results(word: str) -> bool:
    """Tell whether a word means a stored study, not a device."""
    return not _is_number(word) and is_stored(Path(word))


def _show_stored(arguments: argparse.Namespace, stored: list[Path], console: Console) -> int:
    """Print the intervals of a stored study; returns the exit code.

    Raises
    ------
    IolabError : words or flags do not belong to it, or it has no intervals.
    """
    devices = [word for word in arguments.words if not _is_results(word)]
    if len(stored) > 1 or any(map(_is_number, devices)):
        raise IolabError(
            "the intervals of a stored study are those in which it was measured",
            "name one study, and its devices if not all are wanted",
        )
    for flag, meaning in (("c", "processors"), ("p", "partitions"), ("t", "times of day")):
        if getattr(arguments, flag):
            raise IolabError(f"-{flag}: a stored study has no {meaning}", "leave it out")
    if arguments.output not in (None, "JSON"):
        raise IolabError(f"-o {arguments.output}: there is only JSON", "write -o JSON")
    if arguments.output and arguments.solaris:
        raise IolabError("--solaris is a table, -o JSON is none", "leave one out")
    return iostat_stored.show(stored[0], devices, ReportLayout(arguments), console)


def understand(arguments: argparse.Namespace) -> Wanted:
    """Tell devices from numbers, and refuse what means nothing.

    Raises
    ------
    IolabError : a number is no interval or count, or flags contradict each other.
    """
    numbers = [word for word in arguments.words if _is_number(word)]
    typed = [word for word in arguments.words if not _is_number(word)]
    if arguments.p:
        # As for sysstat's iostat: a list with commas, or all of them.
        typed = [part for word in typed if word != "ALL" for part in word.split(",") if part]
    devices = [_name_of(word) for word in typed]
    if len(numbers) > 2:
        raise IolabError(f"'{numbers[2]}' is one number too many", "name an interval and a count")
    interval_s = float(numbers[0]) if numbers else None
    if interval_s is not None and not _TICK_S <= interval_s <= _INTERVAL_MAX_S:
        raise IolabError(
            f"'{numbers[0]}' is no interval",
            f"name seconds from {_TICK_S} to {_INTERVAL_MAX_S:.0f}",
        )
    count = 1 if interval_s is None else None
    if len(numbers) == 2:
        if not numbers[1].isdecimal() or int(numbers[1]) == 0:
            raise IolabError(f"'{numbers[1]}' is no count", "name a whole number from 1 on")
        count = int(numbers[1])
    if arguments.output not in (None, "JSON"):
        raise IolabError(f"-o {arguments.output}: there is only JSON", "write -o JSON")
    if arguments.output and arguments.solaris:
        raise IolabError("--solaris is a table, -o JSON is none", "leave one out")
    if arguments.c and arguments.d and not arguments.solaris:
        raise IolabError("-c shows only processors, -d only devices", "leave one out")
    if arguments.trial is not None:
        raise IolabError(
            "--trial names a trial of a stored study", "name its results directory, too"
        )
    has_devices = not arguments.c or arguments.solaris
    has_processors = arguments.c if arguments.solaris else not arguments.d
    return Wanted(tuple(devices), interval_s, count, arguments, has_processors, has_devices)


def _is_number(word: str) -> bool:
    whole, _, fraction = word.partition(".")
    return whole.isdecimal() and (fraction.isdecimal() or not fraction)


def _name_of(word: str) -> str:
    """Name of a device in the kernel's list: without ``/dev/``, links followed."""
    return os.path.realpath(word).rpartition("/")[2] if "/" in word else word


_NOTHING: Final = Reading(0.0, 1, Processors(), {})


def reports(
    wanted: Wanted, read: Callable[[], Reading], sleep: Callable[[float], None]
) -> Iterator[str]:
    """Text of all reports, piece by piece.

    Raises
    ------
    IolabError : a device is not there, or the counters cannot be read.
    """
    before, now = _NOTHING, read()
    for name in wanted.devices:
        if name not in now.disks:
            shown = ", ".join(list(now.disks)[:_SHOWN])
            raise IolabError(
                f"there is no device {name}{nearest(name, now.disks)}", f"there are {shown}"
            )
    writer = _Json(wanted) if wanted.flags.output else _Table(wanted)
    yield writer.begin(now)
    done = 0
    if wanted.flags.y and wanted.interval_s is not None:
        yield writer.skipped()
        sleep(wanted.interval_s)
        before, now = now, read()
    while True:
        yield writer.report(before, now)
        done += 1
        if wanted.interval_s is None or done == wanted.count:
            break
        sleep(wanted.interval_s)
        before, now = now, read()
    yield writer.end()


def _date(form: str, iso: str) -> str:
    """Date or time as iostat prints it: of the locale, or with S_TIME_FORMAT=ISO."""
    return time.strftime(iso if os.environ.get("S_TIME_FORMAT") == "ISO" else form)


@frozen
class Measured:
    """One device in one interval."""

    name: str
    delta: Counters
    seconds: float

    @property
    def figures(self) -> Figures:
        """Figures of Linux."""
        return figures(self.delta, self.seconds)


def measured(wanted: Wanted, before: Reading, now: Reading) -> list[Measured]:
    """Devices that are shown, sorted by name unless the user named them."""
    seconds = max(_TICK_S, round(now.uptime_s - before.uptime_s, 2))
    chosen = list[Measured]()
    for name in wanted.devices or sorted(now.disks):
        if name not in now.disks:
            continue  # It was taken away meanwhile.
        counters = now.disks[name]
        whole = _disk_of(name, now)
        is_hidden = whole is not None and not wanted.flags.p
        if not wanted.devices and (is_hidden or counters.is_idle):
            continue
        delta = counters.since(before.disks.get(name, Counters()))
        if not (wanted.flags.z and delta.is_idle):
            chosen.append(Measured(name, delta, seconds))
        if wanted.devices and wanted.flags.p:
            parts = (part for part in sorted(now.disks) if _disk_of(part, now) == name)
            for part in parts:
                delta = now.disks[part].since(before.disks.get(part, Counters()))
                if not (wanted.flags.z and delta.is_idle):
                    chosen.append(Measured(part, delta, seconds))
    return chosen


def _disk_of(name: str, now: Reading) -> str | None:
    """Disk of a partition: `sda` of `sda1`, `nvme0n1` of `nvme0n1p2`; None if it is none."""
    stem = name.rstrip("0123456789")
    if stem == name or Path("/sys/block", name).exists():
        return None
    for disk in (stem, stem.removesuffix("p")):
        if disk in now.disks:
            return disk
    return None


class _Table:
    """Reports as tables."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._flags = wanted.flags

    def begin(self, now: Reading) -> str:
        """Name of the machine; Solaris prints none."""
        if self._flags.solaris:
            return ""
        system = os.uname()
        date = _date("%x", "%Y-%m-%d")
        return (
            f"{system.sysname} {system.release} ({system.nodename}) \t{date} \t"
            f"_{system.machine}_\t({now.n_processors} CPU)\n"
        )

    def skipped(self) -> str:
        """Text instead of the report since the start."""
        return "" if self._flags.solaris else "\n"

    def report(self, before: Reading, now: Reading) -> str:
        """One report."""
        rows = measured(self._wanted, before, now)
        shares = now.processors.shares(before.processors) if self._wanted.has_processors else None
        if self._flags.solaris:
            table = disk_tables.solaris_table(
                [(row.name, solaris_figures(kstat_of(row.delta), row.seconds)) for row in rows],
                shares,
                has_names_last=self._flags.n,
            )
            return (
                f"{_date('%a %b %e %H:%M:%S %Y', '%FT%T%z')}\n" if self._flags.t else ""
            ) + table
        text = "\n"
        if self._flags.t:
            text += _date("%x %X", "%Y-%m-%dT%H:%M:%S%z") + "\n"
        if shares is not None:
            text += disk_tables.linux_processors(shares) + "\n"
        if self._wanted.has_devices:
            columns = columns_of(self._flags)
            cells = [(row.name, row_of(self._flags, row.figures)) for row in rows]
            text += disk_tables.linux_table(columns, cells)
        return text + "\n"

    def end(self) -> str:
        """Text after the last report."""
        return "" if self._flags.solaris else "\n"


class _Json:
    """Reports as one JSON document."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._is_first = True

    def begin(self, now: Reading) -> str:
        """The document up to the first report."""
        system = os.uname()
        date = _date("%x", "%Y-%m-%d")
        facts = (
            *(f'"nodename": "{system.nodename}"', f'"sysname": "{system.sysname}"'),
            *(f'"release": "{system.release}"', f'"machine": "{system.machine}"'),
            *(f'"number-of-cpus": {now.n_processors}', f'"date": "{date}"'),
        )
        lines = "".join(f"\t\t\t{fact},\n" for fact in facts)
        return '{"sysstat": {\n\t"hosts": [\n\t\t{\n' + lines + '\t\t\t"statistics": [\n'

    def skipped(self) -> str:
        """Nothing."""
        return ""

    def report(self, before: Reading, now: Reading) -> str:
        """One report, with the comma that the one before needs."""
        parts = list[str]()
        if self._wanted.flags.t:
            parts.append(f'"timestamp": "{_date("%x %X", "%Y-%m-%dT%H:%M:%S%z")}"')
        if self._wanted.has_processors:
            shares = now.processors.shares(before.processors)
            parts.append(f'"avg-cpu":  {disk_tables.json_processors(shares)}')
        if self._wanted.has_devices:
            flags = self._wanted.flags
            # sysstat has no short form without -x in JSON.
            columns = columns_of(argparse.Namespace(x=flags.x, s=flags.s and flags.x, m=flags.m))
            disks = [
                "\t\t\t\t\t\t"
                + disk_tables.json_disk(row.name, columns, row_of(flags, row.figures))
                for row in measured(self._wanted, before, now)
            ]
            parts.append('"disk": [\n' + ",\n".join(disks) + "\n\t\t\t\t\t]")
        comma = "" if self._is_first else ",\n"
        self._is_first = False
        return comma + "\t\t\t\t{\n\t\t\t\t\t" + ",\n\t\t\t\t\t".join(parts) + "\n\t\t\t\t}"

    def end(self) -> str:
        """The rest of the document."""
        return json_end()


def json_end() -> str:
    """Text that closes the document."""
    return "\n\t\t\t]\n\t\t}\n\t]\n}}\n"
