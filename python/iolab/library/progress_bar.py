"""A progress bar for `iolab.run`: in a notebook a bar below the cell, in a terminal one line."""

from __future__ import annotations

import html
import sys
import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final, Protocol, TextIO, cast

from iolab.visible import to_ascii, visible_line

if TYPE_CHECKING:
    from iolab.run.progress import Progress

_PAUSE_S: Final = 0.1
"""Time between two drawings, except of the last one and of notices."""
_BAR: Final = 20
"""Characters of the bar in a terminal."""


class _Cell(Protocol):
    """Place below the cell of a notebook that can be drawn anew."""

    def update(self, obj: _Html, /) -> None: ...


class ProgressBar:
    """A function for ``progress`` of :func:`iolab.run` that shows where a study is.

    In a notebook it is a bar below the cell; on a terminal one line that is rewritten; elsewhere a
    line per round. Notices stand above it. Shown again and again, it draws ten times a second at
    most.

    Parameters
    ----------
    stream : where text goes; None is standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._cell = None if stream is not None else _cell()
        self._notices: list[str] = []
        self._drawn_at = 0.0
        self._width = 0
        self._round = 0

    def __call__(self, progress: Progress) -> None:
        """Show a place."""
        if progress.kind == "notice":
            self._notice(progress.message)
            return
        if progress.kind == "failed" and progress.trial is not None:
            self._notice(f"{progress.trial.trial_id} failed: {progress.message}")
        is_last = progress.kind != "phase" and progress.n_done == progress.n_planned
        if self._cell is None and not self._stream.isatty():
            self._line(progress, is_last=is_last)
        elif is_last or time.monotonic() - self._drawn_at >= _PAUSE_S:
            self._drawn_at = time.monotonic()
            if self._cell is not None:
                self._cell.update(_Html(self._html(progress)))
            else:
                self._rewrite(f"{_bar(progress)} {progress.text}", is_last=is_last)

    def _notice(self, text: str) -> None:
        self._notices.append(text)
        if self._cell is None:
            self._rewrite("", is_last=False)
            self._print(f"note: {visible_line(text)}\n")

    def _html(self, progress: Progress) -> str:
        total = f' max="{progress.n_planned}"' if progress.n_planned else ""
        value = f' value="{progress.n_done}"' if progress.n_planned else ""
        notices = "".join(f"<div>{html.escape(text)}</div>" for text in self._notices)
        bar = f'<progress{total}{value} style="width: 20em; vertical-align: middle"></progress>'
        return f"{notices}<div>{bar} {html.escape(visible_line(progress.text))}</div>"

    def _rewrite(self, text: str, *, is_last: bool) -> None:
        if not self._stream.isatty():
            return
        shown = visible_line(text)[: get_terminal_size().columns - 1]
        self._print("\r" + shown + " " * max(0, self._width - len(shown)))
        self._print("\n" if is_last else "" if shown else "\r")
        self._width = 0 if is_last else len(shown)

    def _line(self, progress: Progress, *, is_last: bool) -> None:
        if progress.kind != "finished" or progress.trial is None:
            return
        if progress.trial.round != self._round or is_last:
            self._round = progress.trial.round
            self._print(f"{visible_line(progress.text)}\n")

    def _print(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = to_ascii(text)
        self._stream.write(text)
        self._stream.flush()


class _Html:
    """Markup that a notebook shows as it is."""

    def __init__(self, markup: str) -> None:
        self._markup = markup

    def _repr_html_(self) -> str:
        return self._markup


def _cell() -> _Cell | None:
    """Place below the running cell; None outside a notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython  # pyright: ignore
    from IPython.display import display  # pyright: ignore

    shell = get_ipython()  # pyright: ignore
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return cast("_Cell", display(_Html(""), display_id=True))  # pyright: ignore


def _bar(progress: Progress) -> str:
    if not progress.n_planned:
        return ""
    full = _BAR * progress.n_done // progress.n_planned
    return "[" + "#" * full + "-" * (_BAR - full) + "]"
