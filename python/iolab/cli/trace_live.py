"""``iolab trace live``: what a device does, second by second."""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

from iolab.cli.console import Console
from iolab.cli.trace_record import add_devices, add_reading_flags
from iolab.library.services import Services
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.library.live_device import LiveWords
    from iolab.protocol import LiveSecond, TraceRecorded


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the words of watching."""
    add_devices(parser)
    parser.add_argument("--seconds", metavar="N", help="watch so long (until Ctrl-C)")
    parser.add_argument(
        "--json", action="store_true", help="one line of JSON for each second; times in ns"
    )
    parser.add_argument(
        "--plain", action="store_true", help="one line of text for each second, in a terminal, too"
    )
    add_reading_flags(parser)


def live(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Show each second until the end; returns the exit code."""
    from iolab.library.live_device import LiveWords

    del services
    asked = LiveWords(
        devices=tuple(arguments.devices),
        seconds=arguments.seconds,
        backend=arguments.backend,
        buffer=arguments.buffer,
    )
    has_view = console.is_terminal and not arguments.json and not arguments.plain
    if has_view and find_spec("rich") is not None:
        from iolab.cli.live_view import show

        answer = show(asked, console.note)
    else:
        if has_view:
            console.note("iolab: note: a view of the whole minute needs pip install 'iolab[watch]'")
        answer = _print_lines(asked, console, is_json=arguments.json)
    _tell_end(answer, console)
    return 0


def _print_lines(asked: LiveWords, console: Console, *, is_json: bool) -> TraceRecorded:
    from iolab.library.live_device import LastMinute, line_of, watch_devices

    minute = LastMinute()

    def heed(second: LiveSecond) -> None:
        minute.add(second)
        line = json.dumps(second) if is_json else line_of(second, minute.stage())
        console.stream((line + "\n").encode())

    return watch_devices(asked, heed, console.note)


def _tell_end(answer: TraceRecorded, console: Console) -> None:
    for warning in answer.get("warnings", ()):
        console.note(f"iolab: note: {warning['message']}; {warning['hint']}")
    lost = sum(answer["recorded"]["lost"].values())
    if lost:
        console.note(
            f"iolab: note: {counted(lost, 'event')} lost in all: a larger --buffer loses fewer"
        )
