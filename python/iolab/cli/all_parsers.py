"""Parsers of the commands and of their own commands: for running, completing and describing them.

Left out: command lines of other programs, whose options are in the tables of their dialects.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from iolab.cli.parser import Parser
from iolab.wording import sentence_case

if TYPE_CHECKING:
    from iolab.cli.subjects import Subject


def command_parser(module: str) -> Parser:
    """Parser of a command.

    Parameters
    ----------
    module : its module of `iolab.cli`.
    """
    command = import_module(f"iolab.cli.{module}")
    about = f"{sentence_case(command.HELP)}."
    parser = Parser(prog=f"iolab {command.NAME}", description=about, allow_abbrev=False)
    command.add_arguments(parser)
    return parser


def subject_parsers(module: str) -> dict[str, Parser]:
    """Parser of each command of a command, as of `iolab trace show`; most commands have none.

    Parameters
    ----------
    module : module of `iolab.cli` of the outer command.
    """
    command = import_module(f"iolab.cli.{module}")
    subjects: Mapping[str, Subject] = getattr(command, "SUBJECTS", {})
    found = dict[str, Parser]()
    for name, (declare, _, about) in subjects.items():
        prog = f"iolab {command.NAME} {name}"
        found[name] = Parser(prog=prog, description=about, allow_abbrev=False)
        declare(found[name])
    return found
