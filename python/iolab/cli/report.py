"""``iolab report``: judge and draw a stored study again."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from iolab import units
from iolab.cli.archive import opened
from iolab.cli.console import Console
from iolab.cli.finish import EXIT_UNDECIDED, Place, show_results_of
from iolab.cli.flags import add_overwrite_flag, add_units_flag
from iolab.errors import IolabError
from iolab.library.rejudged import ON_COMMAND_LINE, rejudged
from iolab.library.services import Services
from iolab.library.stored import find_database, is_archive
from iolab.run.outputs import check_place_of_report, reports_in
from iolab.store import users_files
from iolab.store.db import Store
from iolab.store.read import without_collecting
from iolab.store.users_files import Allowed

NAME = "report"
HELP = "show the results of a study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR|FILE", help="what --out named, or an archive")
    parser.add_argument("--out", metavar="DIR", help="write the report elsewhere")
    add_overwrite_flag(parser)
    parser.add_argument(
        "--strict", action="store_true", help="exit 4 if undecided or if it depends"
    )
    parser.add_argument("--metric", metavar="METRIC", help="judge by another metric, as in p99")
    parser.add_argument("--metric-of", metavar="PART", help="stream or test whose metric it is")
    add_units_flag(parser)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--md",
        dest="markdown",
        action="store_true",
        help="print Markdown, for a pull request, and write no files",
    )
    kinds.add_argument("--json", action="store_true", help="print verdict.json and write no files")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the report and print the answer; also works while the study still runs."""
    results = Path(arguments.results)
    if arguments.markdown or arguments.json:
        return _printed(results, arguments, services, console)
    if is_archive(results):
        return _from_archive(results, arguments, services, console)
    database = find_database(results)
    out_dir = Path(arguments.out) if arguments.out else database.parent
    allowed = Allowed.of(arguments.overwrite)
    allowed.refuse_useless(reports_in(out_dir))
    if arguments.out:
        check_place_of_report(out_dir, allowed, database=database)
    place = _place(arguments, database, out_dir, database, allowed)
    return show_results_of(place, services, console, is_strict=arguments.strict)


def _place(
    arguments: argparse.Namespace, database: Path, out_dir: Path, source: Path, allowed: Allowed
) -> Place:
    return Place(
        database,
        out_dir,
        source,
        metric=arguments.metric,
        metric_of=arguments.metric_of,
        units=arguments.units,
        allowed=allowed,
    )


def _printed(
    results: Path, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Judge and print for a pull request or a program; nothing is written anywhere."""
    if arguments.out or arguments.overwrite:
        flag = "--md" if arguments.markdown else "--json"
        given = "--out" if arguments.out else users_files.FLAG
        raise IolabError(f"{flag} prints and writes no files", f"leave out {given}")
    with opened(results, console) if is_archive(results) else nullcontext(results) as found:
        database = find_database(found)
        with without_collecting(), Store.open_reader(database) as store:
            data = store.load_data()
        data = rejudged(data, arguments.metric, arguments.metric_of, ON_COMMAND_LINE)
    with without_collecting(), units.shown_in(arguments.units):
        verdict = services.judge(data)
        render = services.markdown if arguments.markdown else services.json
        console.result(render(data, verdict).rstrip("\n"))
    is_open = verdict.headline_word in ("undecided", "depends") and data.study.is_comparison
    return EXIT_UNDECIDED if arguments.strict and is_open else 0


def _from_archive(
    results: Path, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Draw what an archive holds."""
    if not arguments.out:
        raise IolabError(
            f"{results} is an archive, in which no report can be put",
            "name a new directory for it with --out DIR",
        )
    out_dir = Path(arguments.out)
    allowed = Allowed.of(arguments.overwrite)
    allowed.refuse_useless(reports_in(out_dir))
    check_place_of_report(out_dir, allowed)
    with opened(results, console) as database:
        place = _place(arguments, database, out_dir, results, allowed)
        return show_results_of(place, services, console, is_strict=arguments.strict)
