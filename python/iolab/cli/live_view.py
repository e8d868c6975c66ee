"""The view of `iolab trace live` in a terminal, drawn by the library rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iolab.cli.terminal_view import plain
from iolab.library.live_device import (
    PROCESSES_SHOWN,
    STAGE_NAMES,
    LastMinute,
    blocks_of,
    latency_text,
    process_text,
    range_text,
    rate_text,
    troubles,
    watch_devices,
)
from iolab.units import format_bytes_rounded, format_duration_rounded
from iolab.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from iolab.library.live_device import LiveWords, Stage
    from iolab.protocol import LiveSecond, TraceRecorded

_HEAT: Final = " ·░▒▓█"
"""Signs of a count, from none to the largest of the minute."""
_SPARK: Final = " ▁▂▃▄▅▆▇█"
_LABEL: Final = 10
_HEAT_COLORS: Final = ("", "blue", "cyan", "green", "yellow", "red")


def show(asked: LiveWords, note: Callable[[str], None]) -> TraceRecorded:
    """Draw each second until the end; the last picture stays visible.

    Ctrl-C is heard by the switch of `watch_devices`: a signal sets it, and nothing is raised while
    the library draws.
    """
    console, minute = Console(), LastMinute()
    with Live(
        drawn(asked.devices, minute, console.width),
        console=console,
        screen=True,
        auto_refresh=False,
    ) as live:

        def heed(second: LiveSecond) -> None:
            minute.add(second)
            live.update(drawn(asked.devices, minute, console.width), refresh=True)

        answer = watch_devices(asked, heed, note)
    console.print(drawn(asked.devices, minute, console.width))
    return answer


def drawn(devices: tuple[str, ...], minute: LastMinute, width: int) -> RenderableType:
    """Draw the last minute on a terminal of `width` columns."""
    head = plain(", ".join(devices), style="bold")
    second = minute.last
    if second is None:
        return Group(head, Text("The first second is not over yet.", style="dim"))
    head.append(f"  {format_duration_rounded(minute.elapsed_ns)}", style="dim")
    if minute.lost:
        head.append(f"  {minute.lost} events lost", style="bold red")
    stage = minute.stage()
    parts: list[RenderableType] = [head, "", *_rates(second), ""]
    parts += [*_heat(minute, stage, width), "", *_depths(minute, width)]
    rows = minute.processes()[:PROCESSES_SHOWN]
    if rows:
        parts += ["", _processes(minute)]
    parts += [plain(text, style="red") for text in troubles(second)]
    return Group(*parts)


def _rates(second: LiveSecond) -> Iterator[Text]:
    yield plain(f"{'read':{_LABEL}}{rate_text(second, 'reads')}")
    yield plain(f"{'write':{_LABEL}}{rate_text(second, 'writes')}")
    if second["discards"]["count"]:
        yield plain(f"{'discard':{_LABEL}}{rate_text(second, 'discards')}")
    if second["flushes"]:
        yield plain(f"{'flush':{_LABEL}}{second['flushes']}")
    for stage in ("device", "whole"):
        yield plain(f"{STAGE_NAMES[stage]:{_LABEL}}{latency_text(second[stage])}")


def _heat(minute: LastMinute, stage: Stage, width: int) -> Iterator[Text]:
    """A row for each range of latency, the longest above; a column for each second."""
    shown, columns = minute.heat(stage)
    yield Text(f"{STAGE_NAMES[stage]} of the last minute, each second a column", style="bold")
    if not shown:
        yield Text("No request has ended yet.", style="dim")
        return
    columns = columns[-max(1, width - _LABEL) :]
    top = max(max(counts) for counts in columns) if columns else 0
    for row in reversed(range(len(shown))):
        line = Text(f"{range_text(shown[row]):>{_LABEL - 1}} ")
        for sign in blocks_of([counts[row] for counts in columns], top, _HEAT):
            line.append(sign, style=_HEAT_COLORS[_HEAT.index(sign)])
        yield line


def _depths(minute: LastMinute, width: int) -> Iterator[Text]:
    yield Text("depth of the last minute", style="bold")
    for title, key in (("device", "in_device"), ("queue", "in_queue")):
        depths = [second[key] for second in minute.seconds][-max(1, width - _LABEL) :]
        top = max(depth["max"] for depth in depths)
        counts = [round(depth["mean"] * 1000) for depth in depths]
        line = Text(f"{title:{_LABEL}}")
        line.append(blocks_of(counts, max(counts), _SPARK), style="magenta")
        yield line
        mean = depths[-1]["mean"]
        told = f"{mean:.2f} in the last second, {top} at most in the minute"
        yield Text(f"{'':{_LABEL}}{told}", style="dim")


def _processes(minute: LastMinute) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("process, by bytes of the minute", overflow="ellipsis")
    for title in ("read", "written"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in minute.processes()[:PROCESSES_SHOWN]:
        sizes = (row.read_bytes, row.write_bytes)
        cells = [Text(visible_line(process_text(row.name, row.pid)))]
        table.add_row(*cells, *(Text(format_bytes_rounded(size)) for size in sizes))
    return table
