"""The view of `iolab watch` in a terminal, drawn by the library rich.

Names come from files of other people: they are drawn as text without control characters, never as
markup.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from iolab.cli.terminal_view import interrupted, plain
from iolab.library.watching import LevelLine, LiveState, Watched, ratio_text
from iolab.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

_COLORS: Final = {
    "better": "green",
    "worse": "red",
    "same": "cyan",
    "trivial": "cyan",
    "undecided": "yellow",
    "depends": "yellow",
    "running": "green",
    "stopped": "yellow",
    "finished": "cyan",
}
_BAR: Final = 40
_LEVEL_MAX: Final = 20
_SPARK_MIN: Final = 6
_REST: Final = 62
"""Columns that a row takes beside its blocks."""


def show(watched: Watched, state: LiveState, interval_s: float) -> None:
    """Draw a study until nothing writes it any more, or Ctrl-C; its last state stays visible."""
    console = Console()
    if state.status == "running":
        with suppress(KeyboardInterrupt):
            state = _follow(watched, state, interval_s, console)
    console.print(drawn(state, console.width))


def _follow(watched: Watched, state: LiveState, interval_s: float, console: Console) -> LiveState:
    """Look again and again; returns the last state."""
    first = drawn(state, console.width)
    with (
        interrupted() as is_over,
        Live(first, console=console, screen=True, auto_refresh=False) as live,
    ):
        while state.status == "running" and not is_over.wait(watched.pause_s(interval_s)):
            state = watched.look()
            live.update(drawn(state, console.width), refresh=True)
    return state


def drawn(state: LiveState, width: int) -> RenderableType:
    """Draw a state on a terminal of `width` columns."""
    parts: list[RenderableType] = [_head(state), *_progress(state)]
    if state.levels:
        parts += ["", *([plain(f"{state.part}:", "dim")] if state.part else [])]
        parts.append(_levels(state, width))
    elif not state.n_done:
        parts += ["", Text("No trial is finished yet.")]
    if state.caveats:
        parts += ["", Text(state.caveats_title, style="bold")]
        parts += [Padding(plain(f"- {text}"), (0, 0, 0, 1)) for text in state.caveats]
        if state.caveats_left_out:
            parts.append(Text(f" - and {state.caveats_left_out} more (iolab report DIR --full)"))
    if state.sentence:
        parts += ["", plain(state.sentence, style="bold" if state.status != "running" else "")]
    if state.note():
        parts += ["", plain(state.note(), style="dim")]
    return Group(*parts)


def _head(state: LiveState) -> Text:
    text = plain(state.name, style="bold")
    text.append(f"  {state.status}", style=_COLORS[state.status])
    text.append(f"  on {visible_line(state.where)}", style="dim")
    return text


def _progress(state: LiveState) -> Iterator[RenderableType]:
    bar = ProgressBar(total=1.0, completed=min(1.0, state.share_done), width=_BAR)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(bar, Text(f"{state.share_done:.0%}"))
    yield grid
    yield plain(state.progress_text())
    if state.upcoming and state.status == "running":
        yield plain(f"now {state.upcoming}", style="dim")


def _levels(state: LiveState, width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("level", overflow="ellipsis", max_width=_LEVEL_MAX)
    for title in (state.metric or "value", "by round"):
        table.add_column(title, no_wrap=True)
    if state.baseline:
        table.add_column(f"against {visible_line(state.baseline)}", overflow="ellipsis")
        table.add_column("interval", no_wrap=True)
    if state.latency_metric:
        for title in (state.latency_metric, "by round"):
            table.add_column(title, no_wrap=True)
    most = max(_SPARK_MIN, (width - _REST) // 3)
    for line in state.levels:
        table.add_row(*_row(state, line, most))
    if state.levels_left_out:
        table.add_row(f"and {state.levels_left_out} more")
    return table


def _row(state: LiveState, line: LevelLine, most: int) -> Iterator[Text]:
    """Cells of a level; rows of blocks are cut to the last `most`."""
    yield plain(line.level)
    yield plain(line.value)
    yield Text(line.values[-most:], style="blue")
    if state.baseline:
        said = ratio_text(line).replace(" times", "")
        yield plain(said or "baseline", style=_COLORS.get(line.word, "") or "dim")
        yield Text(line.closing[-most:], style="magenta")
    if state.latency_metric:
        yield plain(line.latency)
        yield Text(line.latencies[-most:], style="blue")
