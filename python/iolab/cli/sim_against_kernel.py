"""``iolab sim against-kernel``: what the running kernel does, beside what the simulator does."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.cli.subjects import Subject
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.library.against_kernel import Against, Compared, Progress

EXIT_DIFFERS: Final = 5
_GAP: Final = "  "
_NARROWEST: Final = 30
"""Columns that are left for what both sides did."""


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="WORKLOAD", nargs="*", help="without one all of them")
    parser.add_argument(
        "--fs",
        metavar="SYSTEM",
        action="append",
        help="ext4 or xfs; may be repeated (default: both)",
    )
    parser.add_argument(
        "--runs",
        metavar="N",
        type=int,
        default=3,
        help="runs of the kernel for each workload (default: 3)",
    )
    parser.add_argument("--out", metavar="DIR", help="keep the studies and traces of both sides")
    parser.add_argument("--list", action="store_true", help="name the workloads and run nothing")


def _execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from iolab.library import against_kernel

    del services
    checks = against_kernel.chosen(arguments.names)
    if arguments.list:
        width = max(len(check.name) for check in checks)
        for check in checks:
            console.result(f"{check.name:{width}}{_GAP}{check.dialect} {check.words}")
        return 0
    out = None if arguments.out is None else Path(arguments.out)
    systems = against_kernel.systems(arguments.fs or ())
    against_kernel.check_possible(systems, arguments.runs, out)
    words = Counter[str]()
    for system in systems:
        times = "once" if arguments.runs == 1 else f"{arguments.runs} times"
        told = "1 workload" if len(checks) == 1 else f"{len(checks)} workloads"
        console.note(f"{system}: {told}, in simulation and {times} on the kernel")
        rows = against_kernel.against_kernel(system, checks, arguments.runs, out, _Told(console))
        for line in table(rows, console.width):
            console.result(line)
        words.update(outcome.word for row in rows for outcome in row.outcomes)
        console.result("")
    told = ", ".join(f"{words[word]} {word}" for word in against_kernel.WORDS if words[word])
    console.result(f"Linux {against_kernel.kernel_release()}: {told}")
    return EXIT_DIFFERS if words["differs"] else 0


class _Told:
    """Tells how far the kernel's side is, ten times."""

    def __init__(self, console: Console) -> None:
        self._console, self._tenths = console, 0

    def __call__(self, progress: Progress) -> None:
        """Take what a run tells."""
        planned = progress.n_planned or 1
        tenths = 10 * progress.n_done // planned
        if tenths > self._tenths:
            self._console.note(f"{progress.n_done} of {planned} trials on the kernel")
        self._tenths = tenths


def table(rows: list[Against], width: int) -> list[str]:
    """Lines of a table, folded at a width: workload, measure, outcome, and what each side did."""
    heads = ("workload", "measure", "outcome")
    cells = [(row.check.name, told.measure, told.word) for row in rows for told in row.outcomes]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines, system = list[str](), ""
    for row in rows:
        if row.system != system:
            lines += ["", row.system] if lines else [row.system]
            lines.append(_line(heads, widths))
            system = row.system
        for told in row.outcomes:
            begin = _line((row.check.name, told.measure, told.word), widths)
            indent = " " * (sum(widths) + len(_GAP) * len(widths))
            lines += textwrap.wrap(
                _both(told),
                max(width, len(indent) + _NARROWEST),
                initial_indent=f"{begin:{len(indent)}}",
                subsequent_indent=indent,
            )
    return lines


def _both(told: Compared) -> str:
    """Doings of both sides, and where they part."""
    if told.word == "same":
        return told.kernel
    how = f"; {told.how}" if told.how else ""
    return f"kernel {told.kernel}; simulated {told.simulated}{how}"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip()


AGAINST_KERNEL: Final[Subject] = (
    _declare,
    _execute,
    "Run workloads on ext4 and xfs of the running kernel and in simulation, and compare "
    "read-ahead, requests, extents and journal (root); exit code 5 if any differs.",
)
