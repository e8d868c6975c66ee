"""Counters of disks and processors, and the figures that two readings of them give.

Sources: Linux ``Documentation/admin-guide/iostats.rst`` (``/proc/diskstats``, sectors of 512 bytes
whatever the device's are), proc(5) (``/proc/stat``, ``/proc/uptime``), sysstat 12.6 for the
formulas of `Figures`, and the kstat formulas of Solaris' iostat for `solaris_figures`.

Left out: counters per partition of kernels before 2.6.25, which had four numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iolab.errors import IolabError
from iolab.frozen import frozen, replace

_COUNTERS: Final = (
    *("rd_ios", "rd_merges", "rd_sect", "rd_ticks", "wr_ios", "wr_merges", "wr_sect", "wr_ticks"),
    *("in_flight", "io_ticks", "rq_ticks", "dc_ios", "dc_merges", "dc_sect", "dc_ticks"),
    *("fl_ios", "fl_ticks"),
)
_COUNTERS_MIN: Final = 11
"""Kernels before 4.18 count no discards, those before 5.5 no flushes: missing ones are 0."""
_KIB_PER_SECTOR: Final = 0.5
_MS_PER_S: Final = 1000.0


@frozen
class Counters:
    """Cumulative counters of one device; ticks are milliseconds, `in_flight` is a level."""

    rd_ios: int = 0
    rd_merges: int = 0
    rd_sect: int = 0
    rd_ticks: int = 0
    wr_ios: int = 0
    wr_merges: int = 0
    wr_sect: int = 0
    wr_ticks: int = 0
    in_flight: int = 0
    io_ticks: int = 0
    rq_ticks: int = 0
    dc_ios: int = 0
    dc_merges: int = 0
    dc_sect: int = 0
    dc_ticks: int = 0
    fl_ios: int = 0
    fl_ticks: int = 0

    @staticmethod
    def of_row(row: Sequence[int]) -> Counters:
        """Counters in the kernel's order; newer kernels may have more at the end."""
        return Counters(*row[: len(_COUNTERS)])

    def since(self, before: Counters) -> Counters:
        """Counts since another reading; 0 for a counter that went backwards, a level as it is."""
        pairs = ((getattr(self, name), getattr(before, name)) for name in _COUNTERS)
        counted = Counters(*(max(0, now - then) for now, then in pairs))
        return replace(counted, in_flight=self.in_flight)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was counted that iostat shows."""
        return self.rd_ios + self.wr_ios + self.dc_ios + self.fl_ios == 0


@frozen
class Processors:
    """Ticks of all processors together, as ``/proc/stat`` counts them."""

    user: int = 0
    nice: int = 0
    system: int = 0
    idle: int = 0
    iowait: int = 0
    irq: int = 0
    softirq: int = 0
    steal: int = 0

    def shares(self, before: Processors) -> dict[str, float]:
        """Per cent of the time since another reading, in the order of iostat's columns."""
        spent = {
            name: max(0, getattr(self, name) - getattr(before, name))
            for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        }
        total = sum(spent.values())
        shares = {name: 100.0 * ticks / total if total else 0.0 for name, ticks in spent.items()}
        system = shares["system"] + shares["irq"] + shares["softirq"]
        return {
            **{"user": shares["user"], "nice": shares["nice"], "system": system},
            **{name: shares[name] for name in ("iowait", "steal", "idle")},
        }


@frozen
class Reading:
    """Everything that was read at one moment."""

    uptime_s: float
    n_processors: int
    processors: Processors
    disks: dict[str, Counters]
    """By name of the device, in the kernel's order."""


def read_counters(proc: Path = Path("/proc")) -> Reading:
    """Read all counters.

    Raises
    ------
    IolabError : a file of the kernel cannot be read or understood.
    """
    uptime, stat, diskstats = (_text(proc / name) for name in ("uptime", "stat", "diskstats"))
    try:
        uptime_s = float(uptime.split()[0])
    except (ValueError, IndexError):
        raise _not_understood(proc / "uptime", uptime) from None
    return Reading(
        uptime_s, *_processors(proc / "stat", stat), parse_diskstats(diskstats, proc / "diskstats")
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise IolabError(
            f"{path} cannot be read: {error.strerror or error}",
            "iostat needs a Linux with /proc; some containers hide it",
        ) from None


def _not_understood(path: Path, line: str) -> IolabError:
    return IolabError(f"{path}: `{line[:60].strip()}` is not understood", "report it, please")


def _processors(path: Path, text: str) -> tuple[int, Processors]:
    lines = text.splitlines()
    n_processors = sum(line.startswith("cpu") and line[3:4].isdigit() for line in lines)
    first = next((line for line in lines if line.startswith("cpu ")), "")
    try:
        return max(1, n_processors), Processors(*map(int, first.split()[1:9]))
    except (ValueError, TypeError):
        raise _not_understood(path, first) from None


def parse_diskstats(text: str, path: Path = Path("diskstats")) -> dict[str, Counters]:
    """Counters by name, from the text of ``/proc/diskstats``.

    Raises
    ------
    IolabError : a line has too few numbers, or others than numbers.
    """
    disks = dict[str, Counters]()
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        try:
            numbers = [int(word) for word in words[3 : 3 + len(_COUNTERS)]]
        except ValueError:
            raise _not_understood(path, line) from None
        if len(numbers) < _COUNTERS_MIN:
            raise _not_understood(path, line)
        disks[words[2]] = Counters.of_row(numbers)
    return disks


def _per(amount: float, count: float) -> float:
    return amount / count if count else 0.0


@frozen
class Direction:
    """Figures of reads, writes or discards."""

    per_s: float
    kib_per_s: float
    merged_per_s: float
    merged_percent: float
    await_ms: float
    """Mean time from entering the queue to completion."""
    kib_per_request: float


@frozen
class Figures:
    """Work of a device in an interval."""

    read: Direction
    write: Direction
    discard: Direction
    flush_per_s: float
    flush_await_ms: float
    queue: float
    """Mean number of requests that were waiting or being served."""
    busy_percent: float
    """Share of the time at which there was a request; not saturation where several run at once."""
    all: Direction
    """Reads, writes and discards together."""
    kib: tuple[float, float, float]
    """Read, written and discarded."""


def figures(delta: Counters, seconds: float) -> Figures:
    """Figures of what was counted in so many seconds."""
    ios = (delta.rd_ios, delta.wr_ios, delta.dc_ios)
    merges = (delta.rd_merges, delta.wr_merges, delta.dc_merges)
    sectors = (delta.rd_sect, delta.wr_sect, delta.dc_sect)
    ticks = (delta.rd_ticks, delta.wr_ticks, delta.dc_ticks)

    def direction(count: int, merged: int, sectors: int, ms: int) -> Direction:
        kib = sectors * _KIB_PER_SECTOR
        return Direction(
            per_s=_per(count, seconds),
            kib_per_s=_per(kib, seconds),
            merged_per_s=_per(merged, seconds),
            merged_percent=100.0 * _per(merged, merged + count),
            await_ms=_per(ms, count),
            kib_per_request=_per(kib, count),
        )

    read, write, discard = (
        direction(*row) for row in zip(ios, merges, sectors, ticks, strict=True)
    )
    kib_read, kib_written, kib_discarded = (count * _KIB_PER_SECTOR for count in sectors)
    return Figures(
        read=read,
        write=write,
        discard=discard,
        flush_per_s=_per(delta.fl_ios, seconds),
        flush_await_ms=_per(delta.fl_ticks, delta.fl_ios),
        queue=_per(delta.rq_ticks, _MS_PER_S * seconds),
        busy_percent=100.0 * _per(delta.io_ticks, _MS_PER_S * seconds),
        all=direction(sum(ios), sum(merges), sum(sectors), sum(ticks)),
        kib=(kib_read, kib_written, kib_discarded),
    )


@frozen
class Kstat:
    """Differences of Solaris' I/O counters of a device: bytes, and integrals in ns."""

    reads: int
    writes: int
    nread: int
    nwritten: int
    wlentime: float
    """Length of the wait queue times time."""
    rlentime: float
    """Requests in the device times time."""
    wtime: float
    """Time at which the wait queue was not empty."""
    rtime: float
    """Time at which the device had a request."""


@frozen
class SolarisFigures:
    """Figures of a device that Solaris' iostat shows."""

    reads_per_s: float
    writes_per_s: float
    kib_read_per_s: float
    kib_written_per_s: float
    wait: float
    active: float
    service_ms: float
    wait_service_ms: float
    active_service_ms: float
    wait_percent: float
    busy_percent: float


def kstat_of(delta: Counters) -> Kstat:
    """Linux' counters as those of Solaris.

    Linux does not tell waiting requests from those in the device: all count as being in it.
    """
    return Kstat(
        *(delta.rd_ios, delta.wr_ios, delta.rd_sect * 512, delta.wr_sect * 512),
        *(0.0, delta.rq_ticks * 1e6, 0.0, delta.io_ticks * 1e6),
    )


def solaris_figures(delta: Kstat, seconds: float) -> SolarisFigures:
    """Figures of what was counted in so many seconds.

    References
    ----------
    OpenSolaris ``usr/src/cmd/stat/iostat/iostat.c``, 2008: the arithmetic only.
    """
    ns = seconds * 1e9
    per_s = _per(delta.reads + delta.writes, seconds)
    wait, active = _per(delta.wlentime, ns), _per(delta.rlentime, ns)
    return SolarisFigures(
        reads_per_s=_per(delta.reads, seconds),
        writes_per_s=_per(delta.writes, seconds),
        kib_read_per_s=_per(delta.nread / 1024, seconds),
        kib_written_per_s=_per(delta.nwritten / 1024, seconds),
        wait=wait,
        active=active,
        service_ms=_per((wait + active) * _MS_PER_S, per_s),
        wait_service_ms=_per(wait * _MS_PER_S, per_s),
        active_service_ms=_per(active * _MS_PER_S, per_s),
        wait_percent=100.0 * _per(delta.wtime, ns),
        busy_percent=100.0 * _per(delta.rtime, ns),
    )
