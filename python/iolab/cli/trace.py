"""``iolab trace``: block traces recorded, watched, shown, converted, measured and compared."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli import trace_live, trace_record
from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.subjects import Subject, add_subjects, execute_subject
from iolab.errors import TraceError
from iolab.library import block_traces
from iolab.library.block_traces import Traced
from iolab.library.services import Services
from iolab.units import parse_pause_ns
from iolab.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.protocol import (
        OnlyReadAnswer,
        TraceMeasuredAnswer,
        TracesCompared,
        TraceShowOptions,
    )

NAME = "trace"
HELP = "record and read block traces: record, live, show, convert, stages, summary, plot, diff"

EXIT_DAMAGED: Final = 5
_FILE_HELP: Final = "the trace; several files of blktrace, or their common name, are one trace"
_GROUPS: Final = ("process", "direction", "size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subject; each has flags of its own."""
    add_subjects(parser, SUBJECTS)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Do what one subject asks for."""
    return execute_subject(NAME, SUBJECTS, arguments, (services, console))


def tell_caveats(told: OnlyReadAnswer, console: Console) -> int:
    """Print what the reader found; returns the exit code."""
    for caveat in told["caveats"]:
        console.note(f"iolab: note: {caveat['text']}")
    return EXIT_DAMAGED if any(caveat["is_damage"] for caveat in told["caveats"]) else 0


def _declare_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=_FILE_HELP)
    _declare_devices(parser)


def _declare_devices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        action="append",
        default=[],
        help="only this device of the trace, or partition: loop3, 8:0, sda2 (may be repeated)",
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="only what happened from this time on, counted from the first event as in "
        "`iolab trace show`: 1.5, 200ms",
    )
    parser.add_argument("--until", metavar="TIME", help="only what happened before this time")


def _traced(arguments: argparse.Namespace) -> Traced:
    return _traced_of(arguments, arguments.files)


def _traced_of(arguments: argparse.Namespace, files: Sequence[str]) -> Traced:
    return Traced(files, arguments.device, _part_ns(arguments))


_LATEST_NS: Final = (1 << 64) - 1


def _part_ns(arguments: argparse.Namespace) -> tuple[int, int] | None:
    """Times between which a trace is wanted; None: all of it."""
    if arguments.since is None and arguments.until is None:
        return None
    begin = 0 if arguments.since is None else _time_ns("--since", arguments.since)
    end = _LATEST_NS if arguments.until is None else _time_ns("--until", arguments.until)
    if begin >= end:
        after = "the beginning" if arguments.since is None else f"--since {arguments.since}"
        raise TraceError(f"--until {arguments.until} is not after {after}", "name a later time")
    return begin, end


def _time_ns(flag: str, text: str) -> int:
    """A time since the beginning of a trace: seconds, or a duration with its unit."""
    try:
        return parse_pause_ns(text if any(map(str.isalpha, text)) else f"{text}s")
    except ValueError:
        raise TraceError(
            f"{flag}: {text} is no time",
            "write seconds from the first event on, or a number with its unit: 1.5, 200ms",
        ) from None


# Show.


def _declare_show(parser: argparse.ArgumentParser) -> None:
    _declare_trace(parser)
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


def _show(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    options: TraceShowOptions = {
        "format": arguments.format,
        "kinds": ",".join(arguments.kinds) or None,
        "has_times": arguments.times,
        "is_quiet": arguments.quiet,
        "has_programs": arguments.programs,
    }
    told = block_traces.show_trace(_traced(arguments), options, console.stream, services)
    return tell_caveats(told, console)


# Convert.


def _declare_convert(parser: argparse.ArgumentParser) -> None:
    _declare_trace(parser)
    parser.add_argument("out", metavar="OUT", help="file to make; - is standard output")
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        help="iolab, blktrace, blkparse, csv, iolog, parquet or arrow (by OUT's ending)",
    )
    add_overwrite_flag(parser)


def _convert(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    traced, out = _traced(arguments), Path(arguments.out)
    output = block_traces.output_format(arguments.out, arguments.to, services)
    if arguments.out == block_traces.STANDARD:
        told = block_traces.convert_trace(traced, output, console.stream, services)
        return tell_caveats(told, console)
    told = block_traces.convert_into(traced, output, out, arguments.overwrite, services)
    events = counted(told["written"], "event")
    console.result(f"{told['format']}: {events} in {out} ({told['output']})")
    if told["output"] == "blktrace":
        console.note(
            f"iolab: note: one file for all CPUs, as `blkparse -d` writes it: read it with "
            f"`btt -i {out}` or `blkparse -i - < {out}`"
        )
    if told["left_out"]:
        console.note(
            f"iolab: note: left out, because {told['output']} has no place for them: "
            f"{counted(told['left_out'], 'event')}"
        )
    return tell_caveats(told, console)


# Measures.


def _declare_stages(parser: argparse.ArgumentParser) -> None:
    _declare_trace(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--by", choices=_GROUPS, help="also for each process, direction or size")
    group.add_argument(
        "--btt", action="store_true", help="the text of `btt -A`, counted as btt does"
    )
    _declare_json(parser, "everything")


def _stages(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    by = "process" if arguments.btt else arguments.by or "device"
    style = "btt" if arguments.btt else "stages"
    told = block_traces.measure_trace(_traced(arguments), by, style, services)
    return _tell_measures(told, console, is_json=arguments.json)


def _declare_summary(parser: argparse.ArgumentParser) -> None:
    _declare_trace(parser)
    _declare_json(parser, "everything")


def _summary(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    told = block_traces.measure_trace(_traced(arguments), "process", "summary", services)
    return _tell_measures(told, console, is_json=arguments.json)


def _tell_measures(told: TraceMeasuredAnswer, console: Console, *, is_json: bool) -> int:
    console.stream((_as_json(told["report"]) if is_json else told["text"]).encode())
    return tell_caveats(told, console)


def _declare_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="FIRST", help="a trace; files of blktrace by their name")
    parser.add_argument("second", metavar="SECOND", help="another one")
    _declare_devices(parser)
    _declare_json(parser, "all figures")


def _diff(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    first, second = (_traced_of(arguments, [name]) for name in (arguments.first, arguments.second))
    told: TracesCompared = block_traces.diff_traces(first, second, services)
    console.stream((_as_json(told["pairs"]) if arguments.json else told["text"]).encode())
    return max(tell_caveats(trace, console) for trace in told["traces"])


def _declare_plot(parser: argparse.ArgumentParser) -> None:
    _declare_trace(parser)
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        required=True,
        help="page (.html), drawing (.svg) or image (.png) to make",
    )
    parser.add_argument(
        "--beside", metavar="FILE", help="a second trace, beside the first one on the same axes"
    )
    parser.add_argument(
        "--animate",
        action="store_true",
        help="a page on which the head of the disk moves, with play, speed and a slider",
    )
    add_overwrite_flag(parser)


def _plot(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from shlex import join

    traces = [(Path(arguments.files[0]).name, _traced(arguments))]
    words = ["iolab", "trace", "plot", *arguments.files]
    if arguments.beside is not None:
        other = _traced_of(arguments, [arguments.beside])
        traces.append((Path(arguments.beside).name, other))
        words += ["--beside", arguments.beside]
    for device in arguments.device:
        words += ["--device", device]
    for flag, time in (("--since", arguments.since), ("--until", arguments.until)):
        words += [] if time is None else [flag, time]
    if arguments.animate:
        words.append("--animate")
    out = Path(arguments.out)
    wanted = block_traces.PlotWanted(
        out,
        command=join([*words, "-o", arguments.out]),
        overwrite=arguments.overwrite,
        is_movie=arguments.animate,
    )
    plots = block_traces.plot_traces(traces, wanted, services)
    for (name, _), plot in zip(traces, plots, strict=True):
        for device in plot["devices"]:
            title = name if name == device["device"] else f"{name}, {device['device']}"
            console.result(
                f"{title}: {counted(device['requests'], 'request')}, "
                f"{device['sequential_share']:.0%} sequential, in {plot['span_ns'] / 1e9:.3g} s"
            )
    console.result(f"picture: {out}")
    return max(tell_caveats(plot, console) for plot in plots)


def _declare_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"{what}, as JSON; times in ns")


def _as_json(found: object) -> str:
    return json.dumps(found, indent=1) + "\n"


SUBJECTS: Final[dict[str, Subject]] = {
    "record": (
        trace_record.declare,
        trace_record.record,
        "Record what devices do, until a command ends, a time is over, or Ctrl-C.",
    ),
    "live": (
        trace_live.declare,
        trace_live.live,
        "Show what a device does each second: rates, latencies, depth, processes.",
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
    "plot": (
        _declare_plot,
        _plot,
        "Draw places over time, throughput, and distances; two traces beside each other.",
    ),
    "diff": (_declare_diff, _diff, "Compare the figures of two traces."),
}
