"""Entry point of ``iolab``: chooses the command, turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from iolab.cli import (
    aa,
    archive,
    compare,
    diff,
    doctor,
    gate,
    import_,
    lint,
    plan,
    report,
    restore,
    run,
    sim,
    workloads,
)
from iolab.cli.console import Console, open_closed_streams
from iolab.cli.parser import Parser
from iolab.cli.services import Services, iolab_version
from iolab.errors import IolabError, StoppedError
from iolab.study.factors import nearest

COMMANDS: Final[tuple[ModuleType, ...]] = (
    compare,
    run,
    plan,
    aa,
    report,
    import_,
    diff,
    gate,
    lint,
    archive,
    restore,
    doctor,
    sim,
    workloads,
)
DEBUG_VARIABLE: Final = "IOLAB_DEBUG"
EXIT_BUG: Final = 70
"""Not a user's mistake and none of rule R12's codes: ``EX_SOFTWARE`` of sysexits.h."""

_MESSAGE_MAX: Final = 2000
"""Longer ones quote what nobody typed."""

EXAMPLES: Final = """\
iolab compares I/O schedulers, file systems, options and record sizes, honestly. For example:

  iolab compare --on loop:1g --scheduler none,mq-deadline,bfq --record-size 4k,32k
  iolab compare --on dir:/var/tmp --record-size 4k..1m --test read,random-read
  iolab run study.toml --dry-run
  iolab report iolab-out/scheduler-record-size-1
  iolab doctor

`iolab COMMAND --help` tells the rest."""


def main(
    arguments: Sequence[str] | None = None,
    *,
    services: Services | None = None,
    console: Console | None = None,
) -> int:
    """Run one command; returns the exit code of rule R12."""
    if console is None:
        open_closed_streams()
        console = Console()
    try:
        return _dispatch(
            list(sys.argv[1:] if arguments is None else arguments), services or Services(), console
        )
    except IolabError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        console.note(f"iolab: {_one_line(str(error))}")
        return error.exit_code
    except KeyboardInterrupt:
        console.note("iolab: stopped")
        return StoppedError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        console.note(
            f"iolab: this is a bug in iolab ({type(error).__name__}: {_one_line(str(error))}); "
            f"{DEBUG_VARIABLE}=1 shows where, please report it"
        )
        return EXIT_BUG


def _dispatch(arguments: list[str], services: Services, console: Console) -> int:
    if not arguments:
        console.result(EXAMPLES)
        return 0
    if arguments[0] in ("-h", "--help", "help"):
        console.result(_help())
        return 0
    if arguments[0] == "--version":
        console.result(f"iolab {iolab_version()}")
        return 0
    command = _command(arguments[0])
    parser = Parser(
        prog=f"iolab {arguments[0]}",
        description=command.HELP.capitalize() + ".",
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    parsed, unknown = parser.parse_known_args(arguments[1:])
    parser.refuse_unknown(unknown)
    return int(command.execute(parsed, services, console))


def _command(name: str) -> ModuleType:
    names = {command.NAME: command for command in COMMANDS}
    if name not in names:
        what = "option" if name.startswith("-") else "command"
        raise IolabError(
            f"there is no {what} '{name}'{nearest(name, names)}",
            f"commands are {', '.join(names)}",
        )
    return names[name]


def _help() -> str:
    lines = [f"  {command.NAME:11}{command.HELP}" for command in COMMANDS]
    return "\n".join([EXAMPLES, "", "Commands:", *lines])


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_MAX else line[:_MESSAGE_MAX] + " ..."
