"""``iolab diff``: two studies, what differs around them and what came out differently."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, wishes_of
from iolab.cli.studies import check_table_flags, read_study
from iolab.library.services import Services

NAME = "diff"
HELP = "compare two stored studies cell by cell"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("before", metavar="A", help="results directory, archive or CSV file")
    parser.add_argument("after", metavar="B", help="the study that is compared with A")
    parser.add_argument(
        "--md", dest="markdown", action="store_true", help="print Markdown, for a pull request"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_table_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the comparison; the exit code says only whether it could be made."""
    from iolab.report.diff_text import diff_markdown, diff_text
    from iolab.stats.diff import compare_studies

    check_table_flags(arguments, [arguments.before, arguments.after])
    before = read_study(Path(arguments.before), arguments, console)
    after = read_study(Path(arguments.after), arguments, console)
    diff = compare_studies(before, after, margin=wishes_of(arguments).margin)
    diff = replace(diff, before=arguments.before, after=arguments.after)
    if arguments.json:
        console.result(json.dumps(diff.to_dict(), indent=2, ensure_ascii=False))
    elif arguments.markdown:
        console.result(diff_markdown(diff))
    else:
        console.result(diff_text(diff, console.width))
    return 0
