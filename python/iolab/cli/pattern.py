"""``iolab pattern``: what an application does to its files, from its system calls or its blocks."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.trace import tell_caveats
from iolab.cli.trace_record import tell_command
from iolab.errors import IolabError
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.protocol import PatternFoundAnswer

NAME = "pattern"
HELP = "say how an application reads and writes its files, from strace, truss or a block trace"

_FORMS: Final = ("study", "fio", "iozone")
_WAYS: Final = ("tracepoints", "strace")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="text of strace or truss, or a block trace; - is standard input; the files of "
        "`strace -ff` by their common name",
    )
    live = parser.add_mutually_exclusive_group()
    live.add_argument(
        "--for", dest="command", metavar="COMMAND", help="start this shell command and follow it"
    )
    live.add_argument(
        "--pid",
        metavar="PID",
        action="append",
        default=[],
        help="follow a process that runs already (may be repeated)",
    )
    parser.add_argument(
        "--with",
        dest="way",
        choices=_WAYS,
        help="follow by the kernel's trace points (root, slow a program little), or by strace "
        "(your own rights, all names of files); without it: strace for --for, trace points for "
        "--pid, where they may be used",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        help="follow for N seconds, then report; a command of --for is ended (without it: until it "
        "ends, or Ctrl-C)",
    )
    parser.add_argument(
        "--keep", metavar="FILE", help="keep the calls that were recorded, to read them again"
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        action="append",
        default=[],
        help="only this device of a block trace: loop3, 8:0 (may be repeated)",
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only files whose names have this in them"
    )
    parser.add_argument("--all", action="store_true", help="list all files (those with most bytes)")
    parser.add_argument(
        "--no-pictures", action="store_true", help="no pictures of places over time"
    )
    parser.add_argument(
        "--emit",
        choices=_FORMS,
        help="print a workload that does the same, instead: a study, a job file of fio, or command "
        "lines of IOzone",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the workload here, and print the report, too"
    )
    parser.add_argument("--json", action="store_true", help="all figures, as JSON; times in ns")
    add_overwrite_flag(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print patterns, or a workload; returns the exit code."""
    from iolab.library import patterns

    _check(arguments)
    wanted = patterns.PatternsWanted(
        only=arguments.only,
        is_all=arguments.all,
        has_pictures=not arguments.no_pictures,
        form=arguments.emit,
    )
    if arguments.out is not None:
        patterns.refuse_workload(Path(arguments.out), arguments.overwrite)
    if arguments.files:
        traced = patterns.Traced(arguments.files, arguments.device)
        found, code = patterns.patterns_of(traced, wanted, services), 0
    else:
        followed = patterns.Followed(
            command=arguments.command,
            pids=tuple(arguments.pid),
            seconds=_seconds(arguments.seconds),
            keep=None if arguments.keep is None else Path(arguments.keep),
            overwrite=tuple(arguments.overwrite),
            way=arguments.way,
        )
        found, code = patterns.follow(
            followed, wanted, services, lambda text: console.note(f"iolab: note: {text}")
        )
    workload = found["workload"]
    for loss in found["losses"]:
        console.note(f"iolab: not kept: {loss}")
    is_missing = workload is None and arguments.emit is not None
    if workload is not None and arguments.out is not None:
        patterns.write_workload(workload, Path(arguments.out), arguments.overwrite)
        console.note(f"workload: {arguments.out}")
        workload = None
    if workload is not None:
        console.stream(workload.encode())
    elif is_missing and arguments.out is None:
        pass  # Whoever redirects the output wants no report in the place of the workload.
    elif arguments.json:
        console.stream((json.dumps(found["report"], indent=1, ensure_ascii=False) + "\n").encode())
    else:
        console.stream(found["text"].encode())
    for note in found["report"]["notes"]:
        console.note(f"iolab: note: {note}")
    codes = [tell_caveats(found, console), tell_command(code, console)]
    if arguments.only and not found["report"]["files"]:
        codes.append(1)  # Nothing of what was asked for.
    if is_missing:
        codes.append(_tell_no_workload(found, arguments, console))
    return max(codes)


def _tell_no_workload(
    found: PatternFoundAnswer, arguments: argparse.Namespace, console: Console
) -> int:
    why = f"{arguments.emit} has no words for what the trace shows; the lines above say why"
    if not found["report"]["files"]:
        why = "the trace has no read or write of a file that is asked for"
    console.note(f"iolab: no workload was made: {why}")
    return 1


def _check(arguments: argparse.Namespace) -> None:
    is_live = arguments.command is not None or bool(arguments.pid)
    if is_live == bool(arguments.files):
        raise IolabError(
            "`iolab pattern` reads a trace, or follows a program"
            if arguments.files
            else "`iolab pattern` needs a trace, or a program to follow",
            "name a file, or write --for COMMAND, or --pid PID",
        )
    for name, key in (("seconds", "seconds"), ("keep", "keep"), ("with", "way")):
        if arguments.files and getattr(arguments, key) is not None:
            raise IolabError(f"--{name} is for a program that is followed", "leave it out")
    if arguments.out is not None and arguments.emit is None:
        raise IolabError("--out is for a workload, and none is wanted", "add --emit study")
    if arguments.emit is not None and arguments.json and arguments.out is None:
        raise IolabError("--emit and --json both print", "add --out FILE, or leave one out")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise IolabError(f"--seconds {text} is not a time", "write a number of seconds above 0")
    return seconds
