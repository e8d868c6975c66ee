"""``iolab report``: judge and draw a stored study again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from iolab.cli.archive import is_archive, opened
from iolab.cli.console import Console
from iolab.cli.finish import Place, find_database, show_results, show_results_of
from iolab.cli.services import Services
from iolab.errors import AnalysisError, IolabError

_FILES: Final = ("report.html", "report.xlsx", "verdict.json")

NAME = "report"
HELP = "show the results of a study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR|FILE", help="what --out named, or an archive")
    parser.add_argument("--out", metavar="DIR", help="write the report elsewhere")
    parser.add_argument("--strict", action="store_true", help="exit 4 if undecided")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the report and print the answer; also works while the study still runs."""
    results = Path(arguments.results)
    if is_archive(results):
        return _from_archive(results, arguments, services, console)
    database = find_database(results)
    out_dir = Path(arguments.out) if arguments.out else database.parent
    return show_results(database, out_dir, services, console, is_strict=arguments.strict)


def _from_archive(
    results: Path, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Draw what an archive holds; the directory is not the study's, so nothing is replaced."""
    if not arguments.out:
        raise IolabError(
            "the report of an archive needs a directory", "name a new one with --out DIR"
        )
    out_dir = Path(arguments.out)
    there = next((name for name in _FILES if (out_dir / name).exists()), None)
    if there is not None:
        raise AnalysisError(f"{out_dir / there} exists already", "name another directory")
    with opened(results, console) as database:
        place = Place(database, out_dir, source=results)
        return show_results_of(place, services, console, is_strict=arguments.strict)
