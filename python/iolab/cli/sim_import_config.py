"""``iolab sim import-config``: an administrator's lines as a stack file, and what each line did."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.library.import_config import Unsaid, import_config, stack_of, write_stack
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.protocol import ImportedConfig, ImportedLine

ABOUT = (
    "Make a stack file of lines that an administrator typed (/etc/system, newfs, tunefs, metainit, "
    "...), and say what each line did."
)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the files and what they do not tell."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="lines as they were typed")
    parser.add_argument("--out", metavar="STACK.toml", help="is made; without it: printed")
    parser.add_argument(
        "--explain", action="store_true", help="print what each line says, write nothing"
    )
    parser.add_argument("--device", metavar="PROFILE", help="what each disk is: no line says it")
    parser.add_argument("--memory", metavar="SIZE", help="if no line says physmem (128m)")
    parser.add_argument("--release", metavar="N", type=int, help="of Solaris, 7 to 10 (8)")
    parser.add_argument("--fs", metavar="NAME", help="if lines are of several: ufs, vxfs, qfs, zfs")
    parser.add_argument("--name", metavar="NAME", help="of the stack (that of its file)")
    parser.add_argument("--title", metavar="TEXT", help="headline of the stack")
    add_overwrite_flag(parser)


def answer(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the table or the stack, and write the file if one is named."""
    unsaid = Unsaid(
        device=arguments.device,
        memory=arguments.memory,
        release=_release(arguments.release),
        fs=_file_system(arguments.fs),
        name=arguments.name,
        title=arguments.title,
    )
    out = Path(arguments.out) if arguments.out else None
    paths = [Path(name) for name in arguments.files]
    imported = import_config(paths, unsaid, services, out=out)
    if arguments.explain:
        _print_table(imported, console)
        stack_of(imported)
    elif out is None:
        console.result(stack_of(imported).rstrip("\n"))
    else:
        write_stack(imported, out, arguments.overwrite)
        _print_table(imported, console)
        testbed = shlex.quote(f"sim:{out}")
        console.result(f"\nWritten to {out}: iolab mkfile --on {testbed} --iostat 5 500m testfile")
    return 0


def _release(number: int | None) -> int | None:
    from iolab.errors import StudyError

    if number is not None and number not in range(7, 11):
        raise StudyError(f"--release {number}: 7 to 10 are known", "as in --release 8")
    return number


def _file_system(name: str | None) -> str | None:
    from iolab.errors import StudyError
    from iolab.wording import nearest

    known = ("ufs", "vxfs", "qfs", "zfs")
    if name is not None and name not in known:
        raise StudyError(
            f"--fs {name} is none of Solaris'{nearest(name, known)}",
            f"there are {', '.join(known)}",
        )
    return name


def _print_table(imported: ImportedConfig, console: Console) -> None:
    """Print each line, and below it what it says."""
    rows = imported["rows"]
    for (place, typed), group in groupby(rows, key=lambda row: (row["place"], row["typed"])):
        console.result(f"{place}: {typed}")
        for row in group:
            _print_row(row, console)
    cautions = sum(row["is_caution"] for row in rows)
    if cautions:
        console.result(f"\n{cautions} of these, marked (!), contradict something: see above.")


def _print_row(row: ImportedLine, console: Console) -> None:
    mark = "(!) " if row["is_caution"] else ""
    value = f" = {row['value']}" if row["value"] else ""
    text = f"{mark}{row['tunable']}{value} -> {row['effect']}"
    folded = textwrap.fill(
        text, max(40, console.width - 4), subsequent_indent="    ", break_on_hyphens=False
    )
    console.result(textwrap.indent(folded, "    "))
