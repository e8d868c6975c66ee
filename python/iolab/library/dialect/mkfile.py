"""Needs of mkfile's command line beyond those of all dialects: an iostat that looks on, times.

Both tell of virtual time, so they belong to simulated stacks alone. The first report of iostat,
since the start of the machine, is left out: a simulated machine has just started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import TestbedError
from iolab.frozen import frozen
from iolab.library import disk_tables
from iolab.library.disk_counters import (
    Counters,
    Kstat,
    figures,
    solaris_figures,
)

if TYPE_CHECKING:
    from iolab.library.dialect.plan import DialectPlan
    from iolab.protocol import (
        CounterSeries,
        MkfileIostat,
        Record,
        ShownByMkfile,
        TrialSpec,
    )
    from iolab.run.observer import Observer

NAME: Final = "mkfile"
_SIMULATED: Final = "sim:"
_NS_PER_S: Final = 1_000_000_000
_WHOLE_NS: Final = 1 << 60
"""Distance of readings of which only the first and the last are wanted: 36 years."""
_S_PER_MINUTE: Final = 60


def check_virtual(plan: DialectPlan) -> None:
    """Refuse what tells of virtual time elsewhere than on a simulated stack.

    Raises
    ------
    TestbedError : it is asked for elsewhere; says what to do there.
    """
    shown = _shown(plan)
    if shown is None or str(plan.common["on"] or "").startswith(_SIMULATED):
        return
    for flag, is_asked, instead in (
        ("--iostat", bool(shown["iostat"]), "`iolab iostat -x 5` in another window"),
        ("--time", shown["is_clocked"], "`time iolab mkfile ...`"),
    ):
        if is_asked:
            raise TestbedError(
                f"{flag} tells of virtual time, which only a simulated stack has",
                f"add --on sim:STACK; elsewhere use {instead}",
            )


def with_readings(plan: DialectPlan, spec: TrialSpec) -> TrialSpec:
    """The spec with the readings that the reports need, if any are asked for."""
    shown = _shown(plan)
    if shown is None or not (shown["iostat"] or shown["is_clocked"]):
        return spec
    every_ns = shown["iostat"]["interval_ns"] if shown["iostat"] else _WHOLE_NS
    # A field of simulated trials alone.
    return cast("TrialSpec", {**spec, "readings_every_ns": every_ns})


def show_reports(plan: DialectPlan, record: Record, console: Observer) -> None:
    """Print the reports of iostat, and the times to standard error."""
    shown = _shown(plan)
    if shown is None or record["status"] != "ok":
        return
    for phase in record["phases"]:
        for device in phase["devices"]:
            series = device.get("series")
            if series is None or not series.get("host"):
                continue
            asked = shown["iostat"]
            if asked:
                _show_intervals(device["name"], series, asked, console)
            host = series.get("host", [])[-1]
            if shown["is_clocked"]:
                times = (phase["elapsed_ns"], host["user_ns"], host["calls_ns"])
                console.note(clock_text(*times))


def _shown(plan: DialectPlan) -> ShownByMkfile | None:
    if plan.dialect != NAME:
        return None
    return cast("ShownByMkfile", plan.values["show"])


def clock_text(real_ns: int, user_ns: int, system_ns: int) -> str:
    """Times as time(1) of Solaris prints them."""
    rows = (("real", real_ns), ("user", user_ns), ("sys", system_ns))
    return "\n".join(["", *(f"{name:<4} {_clock(ns):>10}" for name, ns in rows)])


def _clock(ns: int) -> str:
    tenths = round(ns / (_NS_PER_S // 10))
    minutes, rest = divmod(tenths, 10 * _S_PER_MINUTE)
    seconds = f"{rest // 10}.{rest % 10}"
    return f"{minutes}:{seconds.zfill(4)}" if minutes else seconds


@frozen
class HostInterval:
    """Difference of two readings."""

    length_ns: int
    counters: Counters
    host: Mapping[str, int]
    """Times of processors in ns, as of `iolab.protocol.HostReading`."""

    @property
    def kstat(self) -> Kstat:
        """Differences of Solaris' counters: what waits in the host is told apart."""
        counted, host = self.counters, self.host
        area = counted.rq_ticks * 1e6
        queued = min(float(host["queued_ns"]), area)
        return Kstat(
            *(counted.rd_ios, counted.wr_ios, counted.rd_sect * 512, counted.wr_sect * 512),
            *(queued, area - queued, float(host["queue_busy_ns"]), counted.io_ticks * 1e6),
        )

    @property
    def shares(self) -> dict[str, float]:
        """Per cent of the processors' time, in the order of iostat's columns."""
        host = self.host
        names = ("user_ns", "system_ns", "wait_ns", "idle_ns")
        user, system, wait, idle = (float(host[name]) for name in names)
        whole = max(1.0, user + system + wait + idle) / 100.0
        return {
            **{"user": user / whole, "nice": 0.0, "system": system / whole},
            **{"iowait": wait / whole, "steal": 0.0, "idle": idle / whole},
        }


def intervals(series: CounterSeries) -> Iterator[HostInterval]:
    """Differences between neighbouring readings that also tell of the processors."""
    hosts = cast("Sequence[Mapping[str, int]]", series.get("host", []))
    rows = list(zip(series["at_ns"], series["counters"], hosts, strict=True))
    for (begin_ns, before, host), (end_ns, now, later) in pairwise(rows):
        passed = {name: max(0, later[name] - host[name]) for name in later}
        counted = Counters.of_row(now).since(Counters.of_row(before))
        yield HostInterval(end_ns - begin_ns, counted, passed)


def _show_intervals(
    device: str, series: CounterSeries, asked: MkfileIostat, console: Observer
) -> None:
    whole = [one for one in intervals(series) if one.length_ns == asked["interval_ns"]]
    wanted: Sequence[HostInterval] = whole[: asked.get("reports")]
    for interval in wanted:
        is_idle = interval.counters.is_idle and asked["hides_idle"]
        console.result(report_text([] if is_idle else [device], interval, asked).rstrip("\n"))
    ran_ns = series["at_ns"][-1]
    left_ns = ran_ns - len(whole) * asked["interval_ns"]
    if not wanted:
        console.note(
            f"iolab: note: it took {ran_ns / _NS_PER_S:.1f} s of virtual time, no whole interval"
            f" of {asked['interval_ns'] / _NS_PER_S:g} s: ask for a shorter one"
        )
    elif left_ns > 0 and len(wanted) == len(whole):
        console.note(
            f"iolab: note: the last {left_ns / _NS_PER_S:.1f} s are no whole interval and have no"
            " report"
        )


def report_text(devices: Sequence[str], interval: HostInterval, asked: MkfileIostat) -> str:
    """One report of iostat, in the layout that was asked for."""
    seconds = interval.length_ns / _NS_PER_S
    if asked["is_linux"]:
        columns = disk_tables.extended_columns("kB")
        of = figures(interval.counters, seconds)
        rows = [(name, disk_tables.extended_row(of, is_mb=False)) for name in devices]
        processors = disk_tables.linux_processors(interval.shares)
        return f"{processors}\n{disk_tables.linux_table(columns, rows)}\n\n"
    of_device = solaris_figures(interval.kstat, seconds)
    return disk_tables.solaris_table(
        [(name, of_device) for name in devices],
        interval.shares if asked["has_processors"] else None,
        has_names_last=asked["has_names_last"],
    )
