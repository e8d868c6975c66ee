"""Entry point of ``iolab``: chooses the command, turns errors into one line and an exit code."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from iolab.cli.console import Console, open_closed_streams
from iolab.errors import DEBUG_VARIABLE, DialectError, InternalError, IolabError, StoppedError
from iolab.version import iolab_version

if TYPE_CHECKING:
    from types import ModuleType

    from iolab.library.services import Services

COMMANDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("compare", "compare", "compare schedulers, file systems, options or record sizes"),
    ("run", "run", "run a study file, or a stored study again"),
    ("merge", "merge", "make one study of the shards that `iolab run --shard` made"),
    (
        "check",
        "check",
        "say whether a directory meets a published requirement, such as etcd's: exit 0, 4 or 5",
    ),
    (
        "advise",
        "advise",
        "print the lines that tune a file system for an array or for random I/O, and why",
    ),
    ("plan", "plan", "say how many rounds, how much time and space a study needs, before it runs"),
    ("aa", "aa", "compare a treatment with itself: noise and honesty of a testbed"),
    ("report", "report", "show the results of a study again"),
    (
        "watch",
        "watch",
        "show a running or finished study: progress, intervals as they close, caveats",
    ),
    (
        "export",
        "export",
        "write the values of a study as CSV, JSON or Parquet, one row per value",
    ),
    ("import", "import_", "judge what fio, iozone or bonnie++ wrote, or a CSV table"),
    ("bon-csv2txt", "bon_csv2txt", "show CSV lines of bonnie++, versions 1.03 to 2.00, as a table"),
    ("diff", "diff", "compare two stored studies cell by cell"),
    (
        "history",
        "history",
        "show one metric over stored studies, where it changed, and which are comparable",
    ),
    ("fleet", "fleet", "judge one study that several hosts have run"),
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
        "put a study into one file, check or unpack it, or export it to fio or IOzone",
    ),
    ("restore", "restore", "put back what a killed run left changed"),
    ("doctor", "doctor", "say what is possible as this user and what is noisy here"),
    (
        "install-agent",
        "install_agent",
        "let users measure without being root: root's own copy of the agent, and sudo's rule",
    ),
    (
        "sim",
        "sim",
        "look into the simulator: scenarios, dispatch, trace, probe, profiles, schedulers, "
        "software, calibrate-cpu, reproduce, against-kernel",
    ),
    (
        "trace",
        "trace",
        "record and read block traces: record, live, show, convert, stages, summary, plot, diff",
    ),
    (
        "pattern",
        "pattern",
        "say how an application reads and writes its files, from strace, truss or a block trace",
    ),
    (
        "iostat",
        "iostat",
        "show what the disks do, in the layouts of iostat",
    ),
    (
        "workloads",
        "workloads",
        "list workloads in which streams compete, or print one as a study file",
    ),
)
"""Name, module of `iolab.cli` and help of each command; only the module asked for is imported."""
DIALECTS: Final = ("iozone", "bonnie++", "mkfile", "fio", "filebench", "ycsb")
"""Other programs whose command lines are understood; also by the name of the program itself."""
_BEFORE_DIALECT: Final = (
    "--on",
    "--repeat",
    "--out",
    "--image-dir",
    "--erase-serial",
    "--overwrite",
    "--trace-events",
)
"""Options with a value that may also stand before a dialect's name."""
_OURS: Final = re.compile(r"^--overwrite(?=$|=)")
"""An option that fio has as well."""
_FLAGS_BEFORE_DIALECT: Final = ("--compat", "--trace")
"""The same without a value."""
EXIT_OF_FIO: Final = 128
EXIT_BUG: Final = InternalError.exit_code
"""Not a user's mistake and none of rule R12's codes: ``EX_SOFTWARE`` of sysexits.h."""

_OBJECTS_BEFORE_GC: Final = 50_000
"""Usually 700: imports make many objects, and none of them is garbage."""
EXIT_CODES: Final = (
    (0, "done"),
    (
        1,
        "not done as asked: a wrong option, level or file; something is missing; or it could not "
        "be measured",
    ),
    (
        2,
        "refused for safety: nothing was changed; or stopped at the accepted amount of writes: "
        "everything was put back",
    ),
    (3, "something could not be put back; `iolab restore` says what"),
    (4, "undecided, or it depends, with `--strict` or by `gate` or `check`"),
    (
        5,
        "a check failed: other data than was written (`--verify`), a damaged study or archive, a "
        "regression (`gate`), a requirement that is not met (`check`), a broken rule (`lint`), "
        "another order (`sim scenarios`), a damaged trace",
    ),
    (EXIT_BUG, "a bug in iolab; `IOLAB_DEBUG=1` shows where, please report it"),
    (EXIT_OF_FIO, "`iolab fio`: stopped by the user; partial results were printed"),
    (130, "stopped by the user"),
)
"""Meaning of each exit code; `docs/explanation/safety.md` has the same table."""

_NAME_MAX: Final = 100
_MESSAGE_MAX: Final = 2000
"""Longer ones quote what nobody typed."""

EXAMPLES: Final = """\
iolab compares I/O schedulers, file systems, options and record sizes. For example:

  iolab compare --on loop:1g --scheduler none,mq-deadline,bfq --record-size 4k,32k
  iolab compare --on dir:/var/tmp --record-size 4k..1m --test read,random-read
  iolab check /var/lib/etcd --for etcd
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
        gc.set_threshold(_OBJECTS_BEFORE_GC)
        open_closed_streams()
        console = Console()
    try:
        if arguments is None:
            arguments = [*_dialect_called(sys.argv[0]), *sys.argv[1:]]
        return _dispatch(list(arguments), services, console)
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get(DEBUG_VARIABLE) and not isinstance(error, KeyboardInterrupt):
            raise
        return _answer_to(error, console)


def _answer_to(error: BaseException, console: Console) -> int:
    """Tell what ended a command; returns its exit code."""
    match error:
        case DialectError():
            # Its lines belong together: the second is what was typed, the third points at it.
            console.note(f"iolab: {error}")
            return error.exit_code
        case IolabError():
            console.note(f"iolab: {_one_line(str(error))}")
            return error.exit_code
        case KeyboardInterrupt():
            console.note("iolab: stopped")
            return StoppedError.exit_code
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case OSError(filename=str(name) | bytes(name)):
            told = os.fsencode(name).decode(errors="backslashreplace")
            shown = told if len(told) <= _NAME_MAX else told[:_NAME_MAX] + "..."
            console.note(f"iolab: {shown} cannot be used: {error.strerror}: name another place")
            return IolabError.exit_code
        case _:
            return _tell_bug(error, console)


def _tell_bug(error: BaseException, console: Console) -> int:
    console.note(
        f"iolab: this is a bug in iolab ({type(error).__name__}: {_one_line(str(error))}); "
        f"{DEBUG_VARIABLE}=1 shows where, please report it"
    )
    return EXIT_BUG


def program() -> NoReturn:
    """Run as a program of its own.

    Its memory is left to the kernel: taking apart what was imported takes Python a fifth of a short
    command. Who traces or profiles it gets the usual end.
    """
    code = main()
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _dispatch(arguments: list[str], services: Services | None, console: Console) -> int:
    if not arguments:
        console.result(EXAMPLES)
        return 0
    if arguments[0] == "help" and len(arguments) > 1:
        arguments = [*arguments[1:], "--help"]
    if arguments[0] in ("-h", "--help", "help"):
        console.result(_help())
        return 0
    if arguments[0] == "--version":
        console.result(f"iolab {iolab_version()}")
        return 0
    if arguments[0].partition("=")[0] == "--completion":
        from iolab.cli.completion import completion

        shell = "".join([*arguments[0].partition("=")[2:], *arguments[1:2]])
        console.result(completion(shell, COMMANDS, DIALECTS))
        return 0
    _check_names(arguments)
    from iolab.library.services import Services

    services = services or Services()
    dialect, words = _dialect(arguments)
    if dialect is not None:
        from iolab.cli.defaults import results_root
        from iolab.library.dialect.run import execute

        return execute(dialect, words, services, console, results_root())
    from iolab.cli.all_parsers import command_parser
    from iolab.cli.defaults import apply_defaults

    command = _command(arguments[0])
    parser = command_parser(command.__name__.rpartition(".")[2])
    apply_defaults(parser, arguments[0])
    parsed = parser.understand(arguments[1:])
    return int(command.execute(parsed, services, console))


def _check_names(arguments: list[str]) -> None:
    """Refuse what cannot be stored, sent to the agent or shown as it is.

    Raises
    ------
    IolabError : a word, or the name of the working directory, is not UTF-8, or that is gone.
    """
    try:
        place = str(Path.cwd())
    except OSError as error:
        raise IolabError(
            f"the working directory cannot be used: {error.strerror}", "`cd` to one that exists"
        ) from None
    for word in arguments:
        _check_encoded("argument", word, "write it in UTF-8, or rename the file")
    _check_encoded("the working directory", place, "rename it, or `cd` to one whose name is UTF-8")


def _check_encoded(what: str, text: str, hint: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(text).decode(errors="backslashreplace")
        raise IolabError(f"{what} '{shown}' is not UTF-8", hint) from None


def _dialect_called(program: str) -> list[str]:
    """The dialect whose program's name this one was started by: a link to `iolab`."""
    name = Path(program).name.removesuffix(".sh")
    return [name] if name in DIALECTS else []


def _dialect(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The dialect that is asked for, and its words; options of iolab may stand before its name."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--"):
        name, _, attached = arguments[at].partition("=")
        if name in _FLAGS_BEFORE_DIALECT:
            at += 1
        elif name in _BEFORE_DIALECT:
            at += 1 if attached else 2
        else:
            break
    if at < len(arguments) and arguments[at] in DIALECTS:
        # Before the dialect's name they are never the dialect's own.
        before = [_OURS.sub("--iolab-overwrite", word) for word in arguments[:at]]
        return arguments[at], [*before, *arguments[at + 1 :]]
    return None, arguments


def _command(name: str) -> ModuleType:
    modules = {command: module for command, module, _ in COMMANDS}
    if name not in modules:
        from iolab.wording import nearest

        what = "option" if name.startswith("-") else "command"
        raise IolabError(
            f"there is no {what} '{name}'{nearest(name, [*modules, *DIALECTS])}",
            f"commands are {', '.join([*modules, *DIALECTS])}",
        )
    return import_module(f"iolab.cli.{modules[name]}")


def _help() -> str:
    width = max(map(len, [*(name for name, *_ in COMMANDS), *DIALECTS])) + 2
    lines = [f"  {name:{width}}{text}" for name, _, text in COMMANDS]
    programs = [
        f"  {name:{width}}run a command line of {name}, and print what {name} prints"
        for name in DIALECTS
    ]
    return "\n".join(
        [
            *(EXAMPLES, "", "Commands:", *lines, "", "Other programs' command lines:", *programs),
            *("", "Completion: source <(iolab --completion bash), or zsh; fish: ... | source"),
            *("", "Exit codes:", *(f"  {code:<5}{text}" for code, text in EXIT_CODES)),
        ]
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_MAX else line[:_MESSAGE_MAX] + " ..."
