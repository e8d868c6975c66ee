"""Work of the devices, workload by workload: amounts, requests and depth, counted in block traces.

It answers what one would count by hand with blktrace: how much was read and written for what the
application asked, in which pieces, and whether the device ever was the one that was waited for.
"""

from __future__ import annotations

from statistics import fmean
from typing import Final

from iolab.report.chart import Table, Value
from iolab.report.charts.traced import TracedCell, traced_cells
from iolab.report.figures import command
from iolab.report.folding import fit_text
from iolab.report.labels import fitted
from iolab.report.markup import join, tag
from iolab.report.parts import Part
from iolab.report.tables import data_table, plain_table
from iolab.stats.effect_words import percent
from iolab.stats.ledger import factor_head
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData
from iolab.units import format_bytes_rounded, grouped
from iolab.wording import counted

NAME: Final = "device_work"
TITLE: Final = "Work of the device"
ROWS_MAX: Final = 40
"""Rows that a terminal shows."""
NAME_MIN: Final = 20
_LEFT_OUT_FIRST: Final = ("depth", "size")
"""Columns that a narrow terminal does without."""
_NOTHING: Final = "0 B"
_HEADS: Final = ("read", "written", "requests", "size", "depth", "busy")
NOTE: Final = (
    "Means of the recorded trials. Per byte asked: what the device read and wrote over what the"
    " application read and wrote; a page cache makes it less than 1, metadata and journals more."
    " Busy: share of the time with a read or write at the driver; flushes of the device's cache are"
    " not in it."
)


def work_part(data: StudyData, verdict: StudyVerdict) -> Part | None:
    """Draw the table; None without any trace."""
    table = work_table(data, verdict)
    if table is None:
        return None
    shown = table.for_reading()
    note = tag("p", NOTE, class_="soft")
    saved = data_table(table, NAME, command(NAME), rows_max=0)
    return Part(TITLE, join(plain_table(shown.columns, shown.rows), note, saved))


def work_text(data: StudyData, verdict: StudyVerdict, width: int) -> str:
    """Write the table for a terminal; empty without any trace."""
    cells = traced_cells(data, verdict)
    if not cells:
        return ""
    columns = list(zip(_HEADS, *map(_texts, cells[:ROWS_MAX]), strict=True))
    columns = [column for column in columns if set(column[1:]) != {_NOTHING}]
    rooms = [2 + max(map(len, column)) for column in columns]
    for head in _LEFT_OUT_FIRST:
        if sum(rooms) + NAME_MIN > width:
            place = next(at for at, column in enumerate(columns) if column[0] == head)
            del columns[place], rooms[place]
    texts = [_name(cell, data) for cell in cells[:ROWS_MAX]]
    room = min(max(len(TITLE), *(2 + len(text) for text in texts)), width - sum(rooms))
    names = [TITLE, *(f"  {text}" for text in fitted(texts, room - 2))]
    lines = [
        fit_text(name, room) + "".join(f"{text:>{r}}" for text, r in zip(row, rooms, strict=True))
        for name, *row in zip(names, *columns, strict=True)
    ]
    rest = len(cells) - ROWS_MAX
    more = [f"  {counted(rest, 'row')} more on the page"] if rest > 0 else []
    return "\n".join([*lines, *more])


def _name(cell: TracedCell, data: StudyData) -> str:
    parts = (cell.workload if len(data.study.workloads) > 1 else "", cell.cell, cell.level)
    return " · ".join(part for part in parts if part)


def _texts(cell: TracedCell) -> tuple[str, ...]:
    """Cells of a line of the terminal."""
    phases = cell.phases
    moved = fmean(phase.read_bytes + phase.write_bytes for phase in phases)
    transfers = fmean(phase.transfers for phase in phases)
    return (
        format_bytes_rounded(fmean(phase.read_bytes for phase in phases)),
        format_bytes_rounded(fmean(phase.write_bytes for phase in phases)),
        grouped(fmean(phase.requests for phase in phases)),
        format_bytes_rounded(moved / transfers) if transfers else "-",
        f"{fmean(phase.in_flight_mean for phase in phases):.1f}",
        percent(fmean(phase.busy_share for phase in phases)),
    )


def work_table(data: StudyData, verdict: StudyVerdict) -> Table | None:
    """Return one row per treatment and operation that was recorded; None without any."""
    cells = traced_cells(data, verdict)
    if not cells:
        return None
    columns = (
        "workload",
        "operation and cell",
        factor_head(verdict.compared_factor) if verdict.compared_factor else "level",
        "trials",
        "time (s)",
        "read (bytes)",
        "written (bytes)",
        "per byte asked",
        "requests",
        "mean request (bytes)",
        "bios per request",
        "sequential (%)",
        "mean depth",
        "largest depth",
        "busy (%)",
    )
    return Table(columns, tuple(map(_row, cells)))


def _row(cell: TracedCell) -> tuple[Value, ...]:
    phases = cell.phases
    moved = fmean(phase.read_bytes + phase.write_bytes for phase in phases)
    asked = fmean(phase.bytes_asked for phase in phases)
    transfers = fmean(phase.transfers for phase in phases)
    requests = fmean(phase.requests for phase in phases)
    sequential = cell.mean([phase.sequential_share for phase in phases])
    return (
        cell.workload,
        cell.cell,
        cell.level or None,
        len(phases),
        fmean(phase.span_ns[1] - phase.span_ns[0] for phase in phases) / 1e9,
        fmean(phase.read_bytes for phase in phases),
        fmean(phase.write_bytes for phase in phases),
        moved / asked if asked else None,
        requests,
        moved / transfers if transfers else None,
        fmean(phase.bios for phase in phases) / requests if requests else None,
        None if sequential is None else 100 * sequential,
        fmean(phase.in_flight_mean for phase in phases),
        max(phase.in_flight_max for phase in phases),
        100 * fmean(phase.busy_share for phase in phases),
    )
