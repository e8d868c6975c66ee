"""``iolab report``: judge and draw a stored study again."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.finish import find_database, show_results
from iolab.cli.services import Services

NAME = "report"
HELP = "show the results of a study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR", help="what --out named")
    parser.add_argument("--out", metavar="DIR", help="write the report elsewhere")
    parser.add_argument("--strict", action="store_true", help="exit 4 if undecided")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the report and print the answer; also works while the study still runs."""
    database = find_database(Path(arguments.results))
    out_dir = Path(arguments.out) if arguments.out else database.parent
    return show_results(database, out_dir, services, console, is_strict=arguments.strict)
