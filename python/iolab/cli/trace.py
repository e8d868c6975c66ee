"""``iolab trace``: block traces recorded, shown, converted, measured and compared."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from iolab.cli import trace_record
from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.parser import Parser
from iolab.errors import IolabError, TraceError
from iolab.library.services import Services
from iolab.run.traces import ENDING, FOLDER
from iolab.store.users_files import Allowed, opened_new
from iolab.wording import nearest

NAME = "trace"
HELP = "record and read block traces: record, show, convert, stages, summary, diff"

EXIT_DAMAGED: Final = 5
STANDARD: Final = "-"
"""Standard input or output instead of a file."""
_FILE_HELP: Final = "the trace; several files of blktrace, or their common name, are one trace"
_GROUPS: Final = ("process", "direction", "size")

_Inputs = list[tuple[str, Callable[[int], bytes] | None]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subject; each has flags of its own."""
    parser.add_argument("subject", metavar="WHAT", nargs="?", help=", ".join(_SUBJECTS))
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="see `iolab trace WHAT --help`")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Do what one subject asks for."""
    if arguments.subject is None:
        raise IolabError(
            "`iolab trace` needs a word that says what to do",
            f"name what to do: {', '.join(_SUBJECTS)}",
        )
    if arguments.subject not in _SUBJECTS:
        raise IolabError(
            f"there is no 'iolab trace {arguments.subject}'{nearest(arguments.subject, _SUBJECTS)}",
            f"there are {', '.join(_SUBJECTS)}",
        )
    declare, answer, about = _SUBJECTS[arguments.subject]
    parser = Parser(prog=f"iolab trace {arguments.subject}", description=about, allow_abbrev=False)
    declare(parser)
    parsed = parser.understand(arguments.rest)
    return answer(parsed, services.load_core(), console)


def _inputs(names: Sequence[str], stack: ExitStack) -> _Inputs:
    """Files of a trace: by name, or by the name that the files of blktrace share."""
    inputs: _Inputs = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            path = _only_trace_in(path)
            name = str(path)
        if name == STANDARD or path.exists():
            inputs.append((name, _unpacked(path, stack) if name.endswith(".gz") else None))
            continue
        parts = [part for part in path.parent.glob("*") if _is_part_of(part, path.name)]
        if not parts:
            raise TraceError(f"{name}: there is no such file", "check its name")
        parts.sort(key=lambda part: int(part.name.rpartition(".")[2]))
        inputs.extend((str(part), None) for part in parts)
    return inputs


def _only_trace_in(directory: Path) -> Path:
    """The trace of a results directory, or of its folder of traces, if it has only one."""
    found = sorted({*directory.glob(f"*{ENDING}"), *(directory / FOLDER).glob(f"*{ENDING}")})
    if len(found) == 1:
        return found[0]
    if not found:
        raise TraceError(
            f"{directory} holds no trace", "run the study with --trace, or name a file"
        )
    raise TraceError(
        f"{directory} holds {len(found)} traces, one of each trial",
        f"name one of them: {found[0]}, ... {found[-1].name}",
    )


def _is_part_of(part: Path, name: str) -> bool:
    """Whether a file is ``NAME.blktrace.CPU``."""
    rest = part.name.removeprefix(f"{name}.blktrace.")
    return rest != part.name and rest.isdecimal()


def _unpacked(path: Path, stack: ExitStack) -> Callable[[int], bytes]:
    """Bytes of a file that gzip packed."""
    import gzip
    import zlib

    file = gzip.GzipFile(path, "rb")
    stack.callback(file.close)

    def read(count: int) -> bytes:
        try:
            return file.read1(count)
        except (OSError, EOFError, zlib.error) as error:
            raise TraceError(f"{path} cannot be unpacked: {error}", "name a whole file") from None

    return read


def _tell_caveats(told: dict[str, Any], console: Console) -> int:
    """Print what the reader found; returns the exit code."""
    for caveat in told["caveats"]:
        console.note(f"iolab: note: {caveat['text']}")
    return EXIT_DAMAGED if any(caveat["is_damage"] for caveat in told["caveats"]) else 0


# Show.


def _declare_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=_FILE_HELP)
    parser.add_argument(
        "-f", "--format", metavar="FORMAT", help=r"fields of blkparse: '%%T.%%t %%a\n'"
    )
    parser.add_argument(
        "-a", "--kinds", metavar="KIND", action="append", default=[], help="only such events: read"
    )
    parser.add_argument(
        "-t", "--times", action="store_true", help="append times since the step before"
    )
    parser.add_argument("-s", "--programs", action="store_true", help="sums per program, too")
    parser.add_argument("-q", "--quiet", action="store_true", help="no sums at the end")


def _show(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    options = {
        "format": arguments.format,
        "kinds": ",".join(arguments.kinds) or None,
        "has_times": arguments.times,
        "is_quiet": arguments.quiet,
        "has_programs": arguments.programs,
    }
    with ExitStack() as stack:
        inputs = _inputs(arguments.files, stack)
        told = json.loads(core.trace_show(inputs, json.dumps(options), console.stream))
    return _tell_caveats(told, console)


# Convert.


def _declare_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=_FILE_HELP)
    parser.add_argument("out", metavar="OUT", help="file to make; - is standard output")
    parser.add_argument(
        "--to", metavar="FORMAT", help="iolab, blktrace, blkparse, csv or iolog (by OUT's ending)"
    )
    add_overwrite_flag(parser)


def _convert(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    out = Path(arguments.out)
    output = arguments.to or core.trace_output_of(out.name)
    if output is None:
        raise TraceError(
            f"{out} does not say by its ending which format is meant",
            "name it with --to; endings are .iotrace .blktrace .txt .csv .iolog",
        )
    with ExitStack() as stack:
        inputs = _inputs(arguments.files, stack)
        facts = json.dumps({"converted from": ", ".join(Path(name).name for name, _ in inputs)})
        if arguments.out == STANDARD:
            told = json.loads(core.trace_convert(inputs, output, facts, console.stream))
            return _tell_caveats(told, console)
        try:
            with opened_new(out, Allowed.of(arguments.overwrite)) as file:
                told = json.loads(core.trace_convert(inputs, output, facts, file.write))
        except OSError as error:
            raise TraceError(
                f"{out} cannot be written: {error.strerror or error}", "name another place"
            ) from None
    console.result(f"{told['format']}: {told['written']} events in {out} ({told['output']})")
    if told["left_out"]:
        console.note(
            f"iolab: note: {told['left_out']} events have no place in {told['output']} and are "
            "left out"
        )
    return _tell_caveats(told, console)


# Measures.


def _declare_stages(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=_FILE_HELP)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--by", choices=_GROUPS, help="also for each process, direction or size")
    group.add_argument(
        "--btt", action="store_true", help="the text of `btt -A`, counted as btt does"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON; times in ns")


def _stages(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    by = "process" if arguments.btt else arguments.by or "device"
    return _measure(arguments, by, "btt" if arguments.btt else "stages", (core, console))


def _declare_summary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=_FILE_HELP)
    parser.add_argument("--json", action="store_true", help="everything, as JSON; times in ns")


def _summary(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    return _measure(arguments, "process", "summary", (core, console))


def _measure(arguments: argparse.Namespace, by: str, style: str, means: tuple[Any, Console]) -> int:
    core, console = means
    with ExitStack() as stack:
        told = json.loads(core.trace_stages(_inputs(arguments.files, stack), by, style))
    text = json.dumps(told["report"], indent=1) + "\n" if arguments.json else told["text"]
    console.stream(text.encode())
    return _tell_caveats(told, console)


def _declare_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="FIRST", help="a trace; files of blktrace by their name")
    parser.add_argument("second", metavar="SECOND", help="another one")
    parser.add_argument("--json", action="store_true", help="all figures, as JSON; times in ns")


def _diff(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    with ExitStack() as stack:
        first, second = _inputs([arguments.first], stack), _inputs([arguments.second], stack)
        told = json.loads(core.trace_diff(first, second))
    text = json.dumps(told["pairs"], indent=1) + "\n" if arguments.json else told["text"]
    console.stream(text.encode())
    return max(_tell_caveats(trace, console) for trace in told["traces"])


_Subject = tuple[
    Callable[[argparse.ArgumentParser], None],
    Callable[[argparse.Namespace, Any, Console], int],
    str,
]
_SUBJECTS: Final[dict[str, _Subject]] = {
    "record": (
        trace_record.declare,
        trace_record.record,
        "Record what devices do, until a command ends, a time is over, or Ctrl-C.",
    ),
    "show": (_declare_show, _show, "Print a trace as blkparse does, with its sums at the end."),
    "convert": (_declare_convert, _convert, "Write a trace in another format."),
    "stages": (
        _declare_stages,
        _stages,
        "Measure how long each stage of a request takes, and how deep the queues are.",
    ),
    "summary": (
        _declare_summary,
        _summary,
        "Tell what the devices did, where the time went, and which process asked for it.",
    ),
    "diff": (_declare_diff, _diff, "Compare the figures of two traces."),
}
