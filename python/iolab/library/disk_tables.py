"""Layouts of iostat: Linux (sysstat 12.6) plain, ``-x``, ``-s``, JSON; Solaris ``-x`` to ``-xnc``.

Source: recorded output, `tests/golden/iostat`; the Solaris layout after the listings of
its time. Numbers and layout are those of the programs; their texts for people are not used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from iolab.frozen import frozen
from iolab.library.disk_counters import Figures, SolarisFigures

_NAME: Final = "{:<13}"
_TITLE: Final = "extended device statistics"
_SOLARIS_NAME_MIN: Final = 6
_SOLARIS_NAME_MAX: Final = 24
_CPU_HEAD: Final = " us sy wt id"


@frozen
class Column:
    """A column of a Linux layout: its key in JSON, its head, its width, its decimals."""

    key: str
    head: str
    width: int
    decimals: int = 2


Row = Mapping[str, float]


def extended_columns(unit: str) -> tuple[Column, ...]:
    """Columns of ``-x``; `unit` is kB or MB."""
    columns = list[Column]()
    for letter in "rwd":
        columns += [
            Column(f"{letter}/s", f"{letter}/s", 7),
            Column(f"{letter}{unit}/s", f"{letter}{unit}/s", 9),
            Column(f"{letter}rqm/s", f"{letter}rqm/s", 8),
            Column(f"{letter}rqm", f"%{letter}rqm", 6),
            Column(f"{letter}_await", f"{letter}_await", 7),
            Column(f"{letter}areq-sz", f"{letter}areq-sz", 8),
        ]
    return (
        *columns,
        *(Column("f/s", "f/s", 7), Column("f_await", "f_await", 7)),
        *(Column("aqu-sz", "aqu-sz", 7), Column("util", "%util", 6)),
    )


def extended_row(figures: Figures, *, is_mb: bool) -> Row:
    """Values of `extended_columns`."""
    unit, scale = ("MB", 1024.0) if is_mb else ("kB", 1.0)
    row = dict[str, float]()
    for letter, of in (("r", figures.read), ("w", figures.write), ("d", figures.discard)):
        row |= {
            f"{letter}/s": of.per_s,
            f"{letter}{unit}/s": of.kib_per_s / scale,
            f"{letter}rqm/s": of.merged_per_s,
            f"{letter}rqm": of.merged_percent,
            f"{letter}_await": of.await_ms,
            f"{letter}areq-sz": of.kib_per_request,
        }
    return row | {
        "f/s": figures.flush_per_s,
        "f_await": figures.flush_await_ms,
        "aqu-sz": figures.queue,
        "util": figures.busy_percent,
    }


def short_columns(unit: str) -> tuple[Column, ...]:
    """Columns of ``-x -s``."""
    return (
        *(
            Column("tps", "tps", 8),
            Column(f"{unit}/s", f"{unit}/s", 9),
            Column("rqm/s", "rqm/s", 8),
        ),
        *(Column("await", "await", 7), Column("areq-sz", "areq-sz", 8)),
        *(Column("aqu-sz", "aqu-sz", 7), Column("util", "%util", 6)),
    )


def short_row(figures: Figures, *, is_mb: bool) -> Row:
    """Values of `short_columns`."""
    unit, scale = ("MB", 1024.0) if is_mb else ("kB", 1.0)
    return {
        "tps": figures.all.per_s,
        f"{unit}/s": figures.all.kib_per_s / scale,
        "rqm/s": figures.all.merged_per_s,
        "await": figures.all.await_ms,
        "areq-sz": figures.all.kib_per_request,
        "aqu-sz": figures.queue,
        "util": figures.busy_percent,
    }


def plain_columns(unit: str, *, is_short: bool) -> tuple[Column, ...]:
    """Columns without ``-x``; with ``-s`` writes and discards are one."""
    kinds = ("read", "w+d") if is_short else ("read", "wrtn", "dscd")
    return (
        Column("tps", "tps", 8),
        *(Column(f"{unit}_{kind}/s", f"{unit}_{kind}/s", 12) for kind in kinds),
        *(Column(f"{unit}_{kind}", f"{unit}_{kind}", 10, 0) for kind in kinds),
    )


def plain_row(figures: Figures, *, is_mb: bool) -> Row:
    """Values of `plain_columns`, with and without ``-s``; amounts are whole, cut off."""
    unit, scale = ("MB", 1024.0) if is_mb else ("kB", 1.0)
    rates = [of.kib_per_s / scale for of in (figures.read, figures.write, figures.discard)]
    amounts = [float(int(kib / scale)) for kib in figures.kib]
    both = float(int((figures.kib[1] + figures.kib[2]) / scale))
    return {
        "tps": figures.all.per_s,
        **{
            f"{unit}_{kind}/s": rate
            for kind, rate in zip(("read", "wrtn", "dscd"), rates, strict=True)
        },
        **{
            f"{unit}_{kind}": kib
            for kind, kib in zip(("read", "wrtn", "dscd"), amounts, strict=True)
        },
        f"{unit}_w+d/s": rates[1] + rates[2],
        f"{unit}_w+d": both,
    }


def linux_table(
    columns: Iterable[Column], rows: Iterable[tuple[str, Row]], *, first: str = "Device"
) -> str:
    """Head and rows, each with its line end; `first` is the head of the first column."""
    columns = tuple(columns)
    lines = [_NAME.format(first) + "".join(f" {c.head:>{c.width}}" for c in columns)]
    for name, row in rows:
        cells = "".join(f" {row[c.key]:{c.width}.{c.decimals}f}" for c in columns)
        lines.append(_NAME.format(name) + cells)
    return "".join(f"{line}\n" for line in lines)


def linux_processors(shares: Mapping[str, float]) -> str:
    """The block ``avg-cpu``."""
    head = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle"
    return f"{head}\n       " + "".join(f" {share:7.2f}" for share in shares.values()) + "\n"


_JSON_ORDER: Final = ("/s", "kB/s", "MB/s", "rqm/s", "rqm", "_await", "areq-sz")


def json_disk(name: str, columns: Iterable[Column], row: Row) -> str:
    """One device in JSON, keys in the order of sysstat."""
    columns = tuple(columns)
    if any(column.key == "f_await" for column in columns):
        columns = tuple(sorted(columns, key=_json_place))
    cells = [f'"{c.key}": {row[c.key]:.{c.decimals}f}' for c in columns]
    return "{" + ", ".join([f'"disk_device": {json.dumps(name)}', *cells]) + "}"


def _json_place(column: Column) -> int:
    """Order of sysstat, which lists each quantity for all directions; the sort is stable."""
    if column.key[0] in "rwdf" and column.key[1:] in _JSON_ORDER:
        return _JSON_ORDER.index(column.key[1:])
    return len(_JSON_ORDER)


def json_processors(shares: Mapping[str, float]) -> str:
    """Processors in JSON."""
    return "{" + ", ".join(f'"{name}": {share:.2f}' for name, share in shares.items()) + "}"


def solaris_table(
    rows: Iterable[tuple[str, SolarisFigures]],
    shares: Mapping[str, float] | None = None,
    *,
    has_names_last: bool = False,
) -> str:
    """Solaris ``-x`` or, with names last, ``-xn``; processors stand in the first device's row."""
    rows = tuple(rows)
    names = [name[:_SOLARIS_NAME_MAX] for name, _ in rows]
    width = max(map(len, [*names, " " * _SOLARIS_NAME_MIN]))
    if has_names_last:
        head = "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b"
        device = " device"
    else:
        head = "device".ljust(width) + "    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b "
        device = ""
    title, processors = _TITLE.center(len(head)), ""
    if shares is not None:
        title += "       cpu"
        cells = (
            shares["user"] + shares["nice"],
            shares["system"],
            shares["iowait"],
            shares["idle"],
        )
        # Virtual processors that waited for a real one were not idle: their time is the system's.
        cells = (cells[0], cells[1] + shares["steal"], cells[2], cells[3])
        processors = "".join(f" {share:2.0f}" for share in cells)
    cpu_head = _CPU_HEAD if shares is not None else ""
    lines = [title.rstrip(), head + cpu_head + device]
    for index, (name, of) in enumerate(zip(names, (figures for _, figures in rows), strict=True)):
        own = processors if index == 0 else " " * len(processors)
        lines.append(_solaris_row(name, of, own, None if has_names_last else width))
    return "".join(f"{line}\n" for line in lines)


def _solaris_row(name: str, of: SolarisFigures, processors: str, width: int | None) -> str:
    rates = (of.reads_per_s, of.writes_per_s, of.kib_read_per_s, of.kib_written_per_s)
    cells = "".join(f" {rate:6.1f}" for rate in rates) + f" {of.wait:4.1f} {of.active:4.1f}"
    shares = f" {of.wait_percent:3.0f} {of.busy_percent:3.0f}"
    if width is None:
        times = f" {of.wait_service_ms:6.1f} {of.active_service_ms:6.1f}"
        return f"{cells}{times}{shares}{processors} {name}"
    return f"{name:{width}}{cells} {of.service_ms:6.1f}{shares} {processors}"
