"""``iolab import``: other programs' output or a table, judged and drawn like a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from iolab import units
from iolab.cli.console import Console
from iolab.cli.finish import Place, show_results_of
from iolab.cli.flags import add_overwrite_flag, add_units_flag
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.run.outputs import OUTPUT_ROOT, check_free, fresh_directory, reports_in
from iolab.store.db import STORE_NAME
from iolab.store.users_files import Allowed
from iolab.version import iolab_version

if TYPE_CHECKING:
    from iolab.imported.mapping import Wishes

NAME = "import"
HELP = "judge what iozone or bonnie++ wrote, or a CSV table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "files",
        metavar="[LEVEL=]FILE",
        nargs="+",
        help="what iozone or bonnie++ wrote, one or more files; or one CSV table",
    )
    parser.add_argument("--out", metavar="DIR", help="results (iolab-out/NAME-N)")
    add_table_flags(parser)
    add_overwrite_flag(parser)
    parser.add_argument(
        "--strict", action="store_true", help="exit 4 if undecided or if it depends"
    )
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
    group.add_argument("--unit", metavar="UNIT", default="", help="unit of a table without one")
    group.add_argument("--name", metavar="NAME", default="", help="name of the study")
    group.add_argument("--compare", metavar="FACTOR", default="", help="factor to be ranked")
    group.add_argument(
        "--baseline", metavar="LEVEL", default="", help="level that ratios are formed against"
    )
    group.add_argument(
        "--margin", metavar="SHARE", default="5%", help="smallest difference that matters (5%%)"
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Understand the whole table first, then store, judge and draw it."""
    from iolab.imported.foreign.join import parse_argument
    from iolab.imported.study import store_imported, understand_files

    named = [parse_argument(text) for text in arguments.files]
    imported = understand_files(named, wishes_of(arguments))
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in imported.plan.study.name)
    out_dir = Path(arguments.out) if arguments.out else fresh_directory(name, OUTPUT_ROOT)
    check_free(out_dir)
    allowed = Allowed.of(arguments.overwrite)
    allowed.refuse_useless(reports_in(out_dir))
    database = out_dir / STORE_NAME
    store_imported(imported, database, iolab_version())
    for factor in imported.reading.mapping.factors:
        if factor.name != factor.column:
            console.note(f"column {factor.column} is the factor {factor.name}")
    if imported.checked.text:
        console.note(f"printed means: {imported.checked.text}")
    place = Place(database, out_dir, database, units=arguments.units, allowed=allowed)
    return show_results_of(place, services, console, is_strict=arguments.strict)


def wishes_of(arguments: argparse.Namespace) -> Wishes:
    """What the flags of `add_table_flags` say.

    Raises
    ------
    IolabError : a flag is not of its form.
    """
    from iolab.imported.mapping import Wishes

    columns = dict(_pair(text, "--map", "ROLE=COLUMN") for text in arguments.map)
    factors: dict[str, str] = {}
    for text in arguments.factor:
        column, _, name = text.partition("=")
        factors[column] = name or column
    try:
        margin = units.parse_share(arguments.margin)
    except ValueError as error:
        raise IolabError(f"--margin: {error}") from None
    return Wishes(
        columns,
        factors,
        arguments.unit,
        arguments.name,
        arguments.compare,
        arguments.baseline,
        margin,
    )


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    left, sign, right = text.partition("=")
    if not sign or not left or not right:
        raise IolabError(f"{flag} {text}: not of the form {form}", f"write {flag} value=mbps")
    return left, right
