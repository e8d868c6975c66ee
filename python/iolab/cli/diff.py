"""``iolab diff``: two studies, what differs around them and what came out differently."""

from __future__ import annotations

import argparse
import json

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, table_words
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
    from iolab.library.comparing import diff_studies

    del services
    words = table_words(arguments)
    found = diff_studies(arguments.before, arguments.after, words, console.note)
    if arguments.json:
        console.result(json.dumps(found.diff.to_dict(), indent=2, ensure_ascii=False))
    elif arguments.markdown:
        console.result(found.markdown())
    else:
        console.result(found.text(console.width))
    return 0
