"""``iolab export``: the values of a study for other programs, one row per value."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.wording import counted

NAME = "export"
HELP = "write the values of a study as CSV, JSON or Parquet, one row per value"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR|FILE", help="what --out named, or an archive")
    parser.add_argument(
        "--out", metavar="FILE", help="file to write (standard output); its ending says the format"
    )
    add_overwrite_flag(parser)
    kinds = parser.add_mutually_exclusive_group()
    for kind, about in (
        ("csv", "comma-separated values, with a header (the default)"),
        ("json", "an array of objects, one on a line"),
        ("parquet", "Parquet, which needs pip install 'iolab[parquet]'"),
    ):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=about)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the values to standard output or into a file."""
    from iolab.library.exported_values import kind_of, print_values, write_values

    del services
    results = Path(arguments.results)
    out = Path(arguments.out) if arguments.out else None
    kind = kind_of(out, arguments.kind)
    if out is None:
        if arguments.overwrite:
            raise IolabError("--overwrite names a file, and none is written", "add --out FILE")
        print_values(results, kind, console.stream, console.note)
        return 0
    done = write_values(results, out, kind, arguments.overwrite, console.note)
    console.result(f"{done.path}: {counted(done.rows, 'value')} in {len(done.columns)} columns")
    return 0
