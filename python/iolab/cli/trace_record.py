"""``iolab trace record``: block events of devices recorded into a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.errors import TraceError
from iolab.library.services import Services
from iolab.library.trace_words import TRACE_LAYERS, TRACE_SETS, EventsName
from iolab.units import format_bytes_rounded
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import TraceRecorded

_EXIT_COMMAND_FAILED: Final = 1


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the words of a recording."""
    add_devices(parser)
    parser.add_argument(
        "-o", "--out", metavar="FILE", required=True, help="file to make, such as t.iotrace"
    )
    until = parser.add_mutually_exclusive_group()
    until.add_argument(
        "--for", dest="command", metavar="COMMAND", help="record while this shell command runs"
    )
    until.add_argument(
        "--seconds", metavar="N", help="record so long; without --for and --seconds: until Ctrl-C"
    )
    parser.add_argument(
        "--events",
        metavar="LIST",
        default="full",
        help=(
            "block events, one of: "
            + _listed(TRACE_SETS)
            + "; beside them, separated by commas: "
            + _listed(TRACE_LAYERS)
        ),
    )
    parser.add_argument(
        "--pid",
        metavar="PID",
        action="append",
        default=[],
        help="process whose system calls are recorded, with what it starts (several times: "
        "several); with --for: the command's; without both those of all processes",
    )
    add_reading_flags(parser)
    add_overwrite_flag(parser)


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Declare the devices whose events are read."""
    parser.add_argument("devices", metavar="DEVICE", nargs="+", help="sda, /dev/nvme0n1, loop3")


def add_reading_flags(parser: argparse.ArgumentParser) -> None:
    """Declare how events are read from the kernel."""
    parser.add_argument(
        "--buffer", metavar="SIZE", default="8 MiB", help="kernel memory of each CPU (8 MiB)"
    )
    parser.add_argument(
        "--backend",
        choices=("auto", "tracefs", "perf"),
        default="auto",
        help="how events are read: by tracefs; perf events where tracefs cannot be written",
    )


def _listed(rows: Sequence[EventsName]) -> str:
    """Words and meanings, for help."""
    return ", ".join(f"{row.typed} ({row.help})" for row in rows)


def record(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Record, and say what was recorded; returns the exit code."""
    from iolab.library.trace_recording import RecordingWords, record_trace

    del services
    asked = RecordingWords(
        devices=tuple(arguments.devices),
        out=Path(arguments.out),
        command=arguments.command,
        seconds=arguments.seconds,
        events=arguments.events,
        backend=arguments.backend,
        pids=tuple(arguments.pid),
        buffer=arguments.buffer,
        overwrite=tuple(arguments.overwrite),
    )
    found = record_trace(asked, console.note)
    _tell(found.answer, arguments.out, console)
    return tell_command(found.command_code, console, f"; {arguments.out} has what it did")


def _tell(answer: TraceRecorded, out: str, console: Console) -> None:
    """Print what was recorded.

    Raises
    ------
    TraceError : it ended early.
    """
    recorded = answer["recorded"]
    for warning in answer.get("warnings", ()):
        console.note(f"iolab: note: {warning['message']}; {warning['hint']}")
    lost = {int(cpu): int(count) for cpu, count in recorded["lost"].items()}
    elapsed_s, cpu_s = recorded["elapsed_ns"] / 1e9, recorded["cpu_ns"] / 1e9
    size = format_bytes_rounded(recorded["bytes"])
    elapsed = f"{elapsed_s:.1f} s" if elapsed_s >= 1 else f"{elapsed_s * 1e3:.0f} ms"
    console.result(
        f"{', '.join(answer['devices'])}: {counted(recorded['events'], 'event')} in "
        f"{elapsed}, {sum(lost.values()) or 'none'} lost; {out} has {size}"
    )
    # Beginning and ending are the most of a short one.
    share = f" ({cpu_s / elapsed_s:.1%} of a CPU)" if elapsed_s >= 1 else ""
    console.result(f"recording took {cpu_s:.2f} s of CPU time{share}")
    if lost:
        listed = ", ".join(f"CPU {cpu}: {count}" for cpu, count in sorted(lost.items()))
        console.note(
            f"iolab: note: events were lost ({listed}): stages of requests of that time are "
            "missing or belong to others; use a larger --buffer or --events issue-complete"
        )
    if recorded["problem"]:
        raise TraceError(
            f"{out} could not be written any more after {elapsed_s:.1f} s: {recorded['problem']}",
            "make room, or name another place that no other program writes to; what the file still "
            "has can be read up to its last whole block",
        )
    if recorded["vanished"]:
        raise TraceError(
            f"{', '.join(recorded['vanished'])} went away while it was recorded",
            f"what was recorded before is in {out}",
        )


def tell_command(code: int, console: Console, result: str = "") -> int:
    """Say how a command ended that was not well, and what there is nevertheless; returns the exit
    code.
    """
    if code == 0:
        return 0
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    console.note(f"iolab: note: the command {how}{result}")
    return _EXIT_COMMAND_FAILED
