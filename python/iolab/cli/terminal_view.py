"""Parts that the views in a terminal share: `iolab watch`, `iolab trace live`.

Names come from files of other people: they are drawn as text without control characters, never as
markup.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

from rich.text import Text

from iolab.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType


@contextmanager
def interrupted() -> Generator[Event]:
    """Event that Ctrl-C sets, in place of an exception: one that is raised while a library calls
    back from compiled code can be lost, and the view would go on.
    """
    event = Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        event.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def plain(text: str, style: str = "") -> Text:
    """Text of others, drawn as it is."""
    return Text(visible_line(text), style=style)
