"""``iolab fleet``: one verdict over the studies of several hosts."""

from __future__ import annotations

import argparse
import json

from iolab.cli.console import Console
from iolab.cli.finish import EXIT_UNDECIDED
from iolab.library.services import Services

NAME = "fleet"
HELP = "judge one study that several hosts have run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "studies",
        metavar="[HOST=]DIR",
        nargs="+",
        help="results directory or archive of each host, named like it unless HOST= is given; or "
        "the directory that --hosts made",
    )
    parser.add_argument(
        "--margin", metavar="SHARE", help="smallest difference that matters (that of the study)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit 4 if undecided or if it depends"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the answer."""
    from iolab.library.fleets import printed, read_fleet

    del services
    fleet = read_fleet(arguments.studies, arguments.margin or "", console.note)
    if arguments.json:
        console.result(json.dumps(fleet.to_dict(), indent=2, ensure_ascii=False))
    else:
        console.result(printed(fleet, console.width))
    return EXIT_UNDECIDED if arguments.strict and fleet.is_open else 0
