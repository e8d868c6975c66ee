"""``iolab iostat RESULTS``: what the disks did during the trials of a stored study.

A table per trial, operation and device, with a row per interval: the first column is the end of the
interval in seconds since the workers began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.iostat_layout import ReportLayout
from iolab.errors import IolabError
from iolab.library import disk_tables
from iolab.library.disk_counters import (
    Counters,
    Figures,
    figures,
    kstat_of,
    solaris_figures,
)
from iolab.library.disk_series import DiskSeries, disk_series

_NS_PER_S = 1e9


def show(place: Path, devices: Sequence[str], layout: ReportLayout, console: Console) -> int:
    """Print the stored intervals; returns the exit code.

    Raises
    ------
    IolabError : nothing of what was asked for is stored.
    """
    found = 0
    documents = list[str]()
    measured = dict[str, None]()
    for series in disk_series(place, trial=layout.trial):
        measured[series.device] = None
        if devices and series.device not in devices:
            continue
        found += 1
        if layout.is_json:
            documents.append(_document(series, layout))
        else:
            console.result(_table(series, layout))
    if not found and measured:
        raise IolabError(
            f"{place}{f' {layout.trial}' if layout.trial else ''} has no intervals of "
            f"{', '.join(devices)}",
            f"it measured {', '.join(measured)}",
        )
    if not found:
        asked = " ".join(filter(None, [layout.trial or "", *devices]))
        raise IolabError(
            f"{place} holds no intervals{f' of {asked}' if asked else ''}",
            "trials are t0001, t0002 and so on; slices and simulations have no intervals (record a "
            "trace: --trace), nor have studies of earlier versions",
        )
    if layout.is_json:
        console.result('{"intervals": [\n' + ",\n".join(documents) + "\n]}")
    return 0


def _intervals(series: DiskSeries) -> Iterator[tuple[float, float, Counters]]:
    """End and length of each interval in seconds, and what was counted in it."""
    pairs = zip(series.at_ns, map(Counters.of_row, series.counters), strict=True)
    begin_ns, before = next(pairs)
    for at_ns, now in pairs:
        if at_ns > begin_ns:
            yield at_ns / _NS_PER_S, (at_ns - begin_ns) / _NS_PER_S, now.since(before)
        begin_ns, before = at_ns, now


def _table(series: DiskSeries, layout: ReportLayout) -> str:
    head = f"{series.trial} ({series.treatment}) {series.operation}, {series.device}:\n"
    if layout.is_solaris:
        kstats = [
            (f"{end_s:.3f}s", solaris_figures(kstat_of(delta), length_s))
            for end_s, length_s, delta in _intervals(series)
        ]
        return head + disk_tables.solaris_table(kstats, None, has_names_last=layout.has_names_last)
    rows = [
        (f"{end_s:.3f}s", layout.row(figures(delta, length_s)))
        for end_s, length_s, delta in _intervals(series)
    ]
    return head + disk_tables.linux_table(layout.columns, rows, first="Until")


def _document(series: DiskSeries, layout: ReportLayout) -> str:
    def values(of: Figures) -> dict[str, float]:
        row = layout.row(of)
        return {column.key: round(row[column.key], column.decimals) for column in layout.columns}

    rows = [
        {
            "end_s": round(end_s, 3),
            "length_s": round(length_s, 3),
            **values(figures(delta, length_s)),
        }
        for end_s, length_s, delta in _intervals(series)
    ]
    names = {
        **{"trial": series.trial, "treatment": series.treatment},
        **{"operation": series.operation, "disk_device": series.device},
    }
    return json.dumps({**names, "rows": rows})
