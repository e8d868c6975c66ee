"""``iolab watch``: a running or finished study in the terminal."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from iolab.cli.console import Console
from iolab.errors import IolabError
from iolab.library.services import Services

NAME = "watch"
HELP = "show a running or finished study: progress, intervals as they close, caveats"

_INTERVAL_S: Final = 2.0
_INTERVAL_MIN_S: Final = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR", help="what --out named, or an archive")
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        default=str(_INTERVAL_S),
        help=f"time between two looks ({_INTERVAL_S:g})",
    )
    parser.add_argument(
        "--once", action="store_true", help="print it once as plain text, also in a terminal"
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Show the study until it ends; once where nobody can see it change."""
    from iolab.library.watching import Watched, live_text

    interval_s = _interval(arguments.interval)
    watched = Watched(Path(arguments.results), services)
    state = watched.look()
    has_view = console.is_terminal and not arguments.once
    if has_view and find_spec("rich") is not None:
        from iolab.cli.watch_view import show

        show(watched, state, interval_s)
        return 0
    console.result(live_text(state, console.width))
    if has_view and state.status == "running":
        console.note(
            "iolab: note: this is one look; a view that goes on needs pip install 'iolab[watch]'"
        )
    return 0


def _interval(text: str) -> float:
    try:
        interval_s = float(text)
    except ValueError:
        interval_s = 0.0
    if not _INTERVAL_MIN_S <= interval_s <= 3600:
        raise IolabError(
            f"--interval {text}: not a number of seconds from {_INTERVAL_MIN_S:g} to 3600",
            "as in --interval 5",
        )
    return interval_s
