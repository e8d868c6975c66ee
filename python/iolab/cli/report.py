"""``iolab report``: judge and draw a stored study again."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.finish import answer_form, open_page, open_report, show_answer
from iolab.cli.flags import (
    OVERWRITE,
    add_full_flag,
    add_overwrite_flag,
    add_quiet_flag,
    add_strict_flag,
    add_units_flag,
)
from iolab.errors import IolabError
from iolab.library.services import Services

NAME = "report"
HELP = "show the results of a study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR|FILE", help="what --out named, or an archive")
    parser.add_argument(
        "--out", metavar="DIR", help="write the report elsewhere; with --chart: a file"
    )
    add_overwrite_flag(parser)
    add_strict_flag(parser)
    add_full_flag(parser)
    parser.add_argument("--metric", metavar="METRIC", help="judge by another metric, as in p99")
    parser.add_argument("--metric-of", metavar="PART", help="stream or test whose metric it is")
    add_units_flag(parser)
    add_quiet_flag(parser)
    parser.add_argument(
        "--open", action="store_true", help="show the page in the browser, once it is written"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--md",
        dest="markdown",
        action="store_true",
        help="print Markdown, for a pull request, and write no files",
    )
    kinds.add_argument("--json", action="store_true", help="print verdict.json and write no files")
    kinds.add_argument(
        "--chart",
        metavar="METRIC:FACTOR[:BY]",
        action="append",
        default=[],
        help="draw this instead of the report, as in p99:scheduler:record_size (may be repeated): "
        "a page in DIR, or the file that --out names, .html, .svg or .png",
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the report and print the answer; also works while the study still runs."""
    from iolab.library.answer import answer, printed_answer

    console.is_quiet = arguments.quiet
    if arguments.chart:
        return _draw(arguments, console)
    results, form = Path(arguments.results), answer_form(arguments, console)
    if arguments.markdown or arguments.json:
        _refuse_files(arguments)
        kind = "markdown" if arguments.markdown else "json"
        found = printed_answer(results, kind, form, services, console.note)
    else:
        out = Path(arguments.out) if arguments.out else None
        found = answer(results, out, form, services, console.note)
    if arguments.open:
        open_report(found, console)
    return show_answer(found, console, is_strict=arguments.strict, is_full=arguments.full)


def _draw(arguments: argparse.Namespace, console: Console) -> int:
    """Draw charts into a file; nothing is judged."""
    from iolab.library.chart import write_charts

    for flag in ("strict", "full", "quiet", "metric", "metric_of"):
        if getattr(arguments, flag):
            raise IolabError(
                f"--chart draws and gives no verdict: --{flag.replace('_', '-')} means nothing",
                "leave it out",
            )
    out = Path(arguments.out) if arguments.out else None
    form = (arguments.units, arguments.overwrite)
    drawn = write_charts(Path(arguments.results), arguments.chart, out, form, console.note)
    for caption in drawn.captions:
        console.result(textwrap.fill(caption, console.width, break_on_hyphens=False))
    console.result(f"\nchart:    {drawn.path}")
    if arguments.open:
        open_page(drawn.path, console)
    return 0


def _refuse_files(arguments: argparse.Namespace) -> None:
    """Refuse flags about files where none is written."""
    flag = "--md" if arguments.markdown else "--json"
    if arguments.quiet or arguments.full:
        other = "--quiet" if arguments.quiet else "--full"
        raise IolabError(f"{flag} prints all of one form", f"leave out {other}")
    if arguments.out or arguments.overwrite or arguments.open:
        given = "--out" if arguments.out else OVERWRITE if arguments.overwrite else "--open"
        raise IolabError(f"{flag} prints and writes no files", f"leave out {given}")
