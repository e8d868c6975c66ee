"""Entry point of ``iolab``: chooses the command, turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from iolab.cli.console import Console, open_closed_streams
from iolab.cli.parser import Parser
from iolab.cli.services import Services, iolab_version
from iolab.errors import DialectError, IolabError, StoppedError

COMMANDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("compare", "compare", "compare schedulers, file systems, options or record sizes"),
    ("run", "run", "run a study file"),
    ("plan", "plan", "rounds needed, chances, time, bytes and space of a study, before it runs"),
    ("aa", "aa", "the same treatment under two labels: noise and honesty of a testbed"),
    ("report", "report", "show the results of a study again"),
    ("import", "import_", "judge what iozone or bonnie++ wrote, or a CSV table"),
    ("bon-csv2txt", "bon_csv2txt", "CSV lines of bonnie++, versions 1.03 to 2.00, as a table"),
    ("diff", "diff", "compare two stored studies cell by cell"),
    (
        "gate",
        "gate",
        "fail if a study is worse than a baseline: exit 0 pass, 4 undecided, 5 regression",
    ),
    (
        "lint",
        "lint",
        "say which rules of sound benchmarking a study or table breaks: exit 5 if any",
    ),
    (
        "archive",
        "archive",
        "put a study into one file, check or unpack it, or tell it to fio and IOzone",
    ),
    ("restore", "restore", "put back what a killed run left changed"),
    ("doctor", "doctor", "say what is possible as this user and what is noisy here"),
    (
        "sim",
        "sim",
        "look into the simulator: scenarios, dispatch, trace, probe, profiles, schedulers",
    ),
    (
        "workloads",
        "workloads",
        "list workloads in which streams compete, or print one as a study file",
    ),
)
"""Name, module of `iolab.cli` and help of each command; only the module asked for is imported."""
DIALECTS: Final = ("iozone", "bonnie++", "mkfile")
"""Other programs whose command lines are understood; also by the name of the program itself."""
_BEFORE_DIALECT: Final = ("--on", "--repeat", "--out", "--image-dir", "--erase-serial")
"""Options with a value that may also stand before a dialect's name; `--compat` has none."""
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
        if arguments is None:
            arguments = [*_dialect_called(sys.argv[0]), *sys.argv[1:]]
        return _dispatch(list(arguments), services or Services(), console)
    except DialectError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        # Its lines belong together: the second is what was typed, the third points at the problem.
        console.note(f"iolab: {error}")
        return error.exit_code
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
    dialect, words = _dialect(arguments)
    if dialect is not None:
        from iolab.cli.dialect.run import execute

        return execute(dialect, words, services, console)
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


def _dialect_called(program: str) -> list[str]:
    """The dialect whose program's name this one was started by: a link to `iolab`."""
    name = Path(program).name
    return [name] if name in DIALECTS else []


def _dialect(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The dialect that is asked for, and its words; options of iolab may stand before its name."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--"):
        name, _, attached = arguments[at].partition("=")
        if name == "--compat":
            at += 1
        elif name in _BEFORE_DIALECT:
            at += 1 if attached else 2
        else:
            break
    if at < len(arguments) and arguments[at] in DIALECTS:
        return arguments[at], [*arguments[:at], *arguments[at + 1 :]]
    return None, arguments


def _command(name: str) -> ModuleType:
    modules = {command: module for command, module, _ in COMMANDS}
    if name not in modules:
        from iolab.study.factors import nearest

        what = "option" if name.startswith("-") else "command"
        raise IolabError(
            f"there is no {what} '{name}'{nearest(name, [*modules, *DIALECTS])}",
            f"commands are {', '.join([*modules, *DIALECTS])}",
        )
    return import_module(f"iolab.cli.{modules[name]}")


def _help() -> str:
    lines = [f"  {name:11}{text}" for name, _, text in COMMANDS]
    programs = [f"  {name:11}the command line of {name}, with its own output" for name in DIALECTS]
    return "\n".join(
        [EXAMPLES, "", "Commands:", *lines, "", "Other programs' command lines:", *programs]
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_MAX else line[:_MESSAGE_MAX] + " ..."
