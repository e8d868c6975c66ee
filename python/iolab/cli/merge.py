"""``iolab merge``: the study of all its shards."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.library.services import Services

NAME = "merge"
HELP = "make one study of the shards that `iolab run --shard` made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "shards", metavar="DIR", nargs="+", help="results of a shard; all of them, in any order"
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="new directory of the whole study"
    )
    flags.add_overwrite_flag(parser)
    flags.add_strict_flag(parser)
    flags.add_full_flag(parser)
    flags.add_quiet_flag(parser)
    flags.add_units_flag(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Store the whole study, and print its answer."""
    from iolab.cli.conduct import show_conducted
    from iolab.library.merging import merged

    console.is_quiet = arguments.quiet
    shards = [Path(path) for path in arguments.shards]
    out, overwrite = Path(arguments.out), tuple(arguments.overwrite)
    done = merged(shards, out, overwrite, services, console)
    return show_conducted(done, arguments, services, console)
