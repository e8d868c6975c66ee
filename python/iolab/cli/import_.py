"""``iolab import``: other programs' output or a table, judged and drawn like a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.cli.console import Console
from iolab.cli.defaults import results_root
from iolab.cli.finish import answer_form, show_answer
from iolab.cli.flags import (
    add_full_flag,
    add_overwrite_flag,
    add_quiet_flag,
    add_strict_flag,
    add_units_flag,
)
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.library.tables import TableWords

NAME = "import"
HELP = "judge what fio, iozone or bonnie++ wrote, or a CSV table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "files",
        metavar="[LEVEL=]FILE",
        nargs="+",
        help="what fio, iozone or bonnie++ wrote, one or more files; or one CSV table",
    )
    parser.add_argument("--out", metavar="DIR", help="results (iolab-out/NAME-N)")
    add_table_flags(parser)
    add_overwrite_flag(parser)
    add_strict_flag(parser)
    add_full_flag(parser)
    add_quiet_flag(parser)
    add_units_flag(parser)


def add_table_flags(parser: argparse.ArgumentParser) -> None:
    """Declare what says how a table is to be understood."""
    group = parser.add_argument_group("the table")
    group.add_argument(
        "--map",
        metavar="ROLE=COLUMN",
        action="append",
        default=[],
        help="column of a role: value, unit, operation, run, workload, notes",
    )
    group.add_argument(
        "--factor",
        metavar="COLUMN[=NAME]",
        action="append",
        default=[],
        help="column whose values are levels (every other column that varies)",
    )
    group.add_argument(
        "--unit",
        metavar="UNIT",
        default="",
        help="unit of a table, or of a log of fio, without one",
    )
    group.add_argument("--name", metavar="NAME", default="", help="name of the study")
    group.add_argument("--compare", metavar="FACTOR", default="", help="factor to be ranked")
    group.add_argument(
        "--baseline", metavar="LEVEL", default="", help="level that ratios are formed against"
    )
    group.add_argument(
        "--margin", metavar="SHARE", default="5%", help="smallest difference that matters (5%%)"
    )


def table_words(arguments: argparse.Namespace) -> TableWords:
    """Words of the flags of `add_table_flags`."""
    from iolab.library.tables import TableWords

    return TableWords(
        map=tuple(arguments.map),
        factor=tuple(arguments.factor),
        unit=arguments.unit,
        name=arguments.name,
        compare=arguments.compare,
        baseline=arguments.baseline,
        margin=arguments.margin,
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Import, then judge and draw."""
    from iolab.library.answer import answer
    from iolab.library.importing import import_files

    console.is_quiet = arguments.quiet
    out, form = Path(arguments.out) if arguments.out else None, answer_form(arguments, console)
    imported = import_files(
        arguments.files, table_words(arguments), out, form.overwrite, results_root()
    )
    for column, name in imported.renamed:
        console.note(f"column {column} is the factor {name}")
    for note in imported.notes:
        console.note(note)
    if imported.checked_means:
        console.note(f"printed means: {imported.checked_means}")
    found = answer(imported.path, None, form, services, console.note)
    return show_answer(found, console, is_strict=arguments.strict, is_full=arguments.full)
