"""``iolab history``: one metric over stored studies, with changes and what is comparable."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag, add_units_flag
from iolab.errors import IolabError
from iolab.library.services import Services

NAME = "history"
HELP = "show one metric over stored studies, where it changed, and which are comparable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "studies",
        metavar="DIR",
        nargs="+",
        help="results directories, archives or CSV files, or a folder of results directories such "
        "as iolab-out",
    )
    parser.add_argument(
        "--metric",
        metavar="METRIC",
        help="as in p99 (the one that the newest study is judged by)",
    )
    parser.add_argument(
        "--only",
        metavar="CELL",
        help="only cells whose name contains this, as in 'random-read · 4k'",
    )
    parser.add_argument(
        "--margin",
        metavar="SHARE",
        help="smallest change that matters (that of the newest study)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="draw it, too: a page (.html), a drawing (.svg) or an image (.png)",
    )
    add_overwrite_flag(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_units_flag(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the history, and draw it if a file is named."""
    from iolab import units
    from iolab.library.histories import HistoryQuestion, printed, read_history, write_history

    del services
    if arguments.overwrite and not arguments.out:
        raise IolabError("--overwrite names a file, and none is written", "add --out FILE")
    asked = HistoryQuestion(
        tuple(arguments.studies),
        metric=arguments.metric or "",
        only=arguments.only or "",
        margin=arguments.margin or "",
    )
    with units.shown_in(arguments.units):
        found = read_history(asked, console.note)
        if arguments.json:
            console.result(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        else:
            console.result(printed(found, console.width))
        if arguments.out:
            write_history(found, asked, Path(arguments.out), arguments.overwrite)
            if not arguments.json:
                console.result(f"\nchart:    {arguments.out}")
    return 0
