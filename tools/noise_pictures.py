"""Draws the pictures of the tutorial about noise from a stored measurement.

The measurement is an A/A study in slices, kept as `docs/images/noise.csv`: a line of comments, then
the operations per second of one slice after the other. ``--from STUDY.db`` takes it from a study of
yours; what was measured and the captions are written into the page, too. The charts are those of
the report of `iolab aa --design pairs`; here they are drawn 400 pixels wide, with a paper and fonts
of their own, because a page on the web lends them neither.

``python tools/noise_pictures.py [--from STUDY.db --note TEXT]``
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from iolab.report.chart import GREY, ChartSpec, Series
from iolab.report.charts.noise import noise_charts
from iolab.report.scale import Scale, make_scale
from iolab.stats.noise_by_length import errors_of_series
from iolab.store.db import Store

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
DATA = FOLDER / "noise.csv"
PAGE = ROOT / "docs" / "tutorial" / "noise-in-pictures.md"
MEASURED = "Measured: "
WIDTH, HEIGHT = 400, 280
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 30, 44
FONT = 12
ROW = 16
PER_LINE = 16
COLORS = ("#0b5fa5", "#b34700", "#5b2a86", "#1e7a3c")
DASHES = ("none", "6 3", "2 3", "9 3 2 3")
SOFT = "#5f6b76"


def series_of(path: Path) -> tuple[str, list[float], float]:
    """Note of a data file on itself, its ln-rates, and the mean length of a slice in ns."""
    note, *lines = path.read_text(encoding="utf-8").splitlines()
    head, _, said = note.removeprefix("# ").partition("; ")
    slice_ns = float(head.split()[2]) * 1e6
    return said, [math.log(float(value)) for line in lines for value in line.split(",")], slice_ns


def keep(database: Path, note: str) -> None:
    """Write the data file from the longest series of an A/A study in slices."""
    with Store.open_reader(database) as store:
        data = store.load_data()
    found = sorted(
        (begin, ops * 1e9 / length, length)
        for row in data.slices
        for begin, ops, length in zip(row.begin_ns, row.ops, row.length_ns, strict=True)
        if ops
    )
    mean_ms = math.fsum(length for *_, length in found) / len(found) / 1e6
    rates = [f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}" for _, rate, _ in found]
    rows = [",".join(rates[i : i + PER_LINE]) for i in range(0, len(rates), PER_LINE)]
    head = f"# slices of {mean_ms:.3f} ms, operations per second; {note}"
    DATA.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def text_of(x: float, y: float, text: str, more: str = "") -> str:
    """A text element."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def axes(spec: ChartSpec, x: Scale, y: Scale) -> Iterator[str]:
    """Grid, ticks and titles with units."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value, text in x.ticks:
        at = LEFT + x.place(value) * (right - LEFT)
        yield f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>'
        yield text_of(at, bottom + 15, text, ' text-anchor="middle"')
    for value, text in y.ticks:
        at = bottom - y.place(value) * (bottom - TOP)
        yield f'<path class="grid" d="M{LEFT} {at:.1f}H{right}"/>'
        yield text_of(LEFT - 5, at + 4, text, ' text-anchor="end"')
    middle = (TOP + bottom) / 2
    yield text_of((LEFT + right) / 2, HEIGHT - 9, spec.x.title, ' text-anchor="middle"')
    turned = f' text-anchor="middle" transform="rotate(-90 13 {middle:.0f})"'
    yield text_of(13, middle, spec.y.title, turned)


def line_of(series: Series, x: Scale, y: Scale) -> Iterator[str]:
    """One series: its line, its points and their bars."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    color = SOFT if series.slot == GREY else COLORS[series.slot % len(COLORS)]

    def px(value: float) -> float:
        return LEFT + min(1.0, max(0.0, x.place(value))) * (right - LEFT)

    def py(value: float) -> float:
        return bottom - min(1.0, max(0.0, y.place(value))) * (bottom - TOP)

    places = [(px(point.x), py(point.y)) for point in series.points]
    steps = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    dash = DASHES[series.dash % len(DASHES)]
    yield f'<polyline points="{steps}" stroke="{color}" stroke-dasharray="{dash}"/>'
    for point, (a, b) in zip(series.points, places, strict=True):
        if point.low is not None and point.high is not None:
            yield f'<path stroke="{color}" d="M{a:.1f} {py(point.low):.1f}V{py(point.high):.1f}"/>'
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>'


def legend(spec: ChartSpec) -> Iterator[str]:
    """Lines of the series with their names, below the drawing."""
    for index, series in enumerate(spec.panels[0].series):
        color = SOFT if series.slot == GREY else COLORS[series.slot % len(COLORS)]
        dash, y = DASHES[series.dash % len(DASHES)], HEIGHT + 10 + ROW * index
        yield f'<path stroke="{color}" stroke-dasharray="{dash}" d="M{LEFT} {y - 4}h30"/>'
        yield text_of(LEFT + 37, y, series.name)


def picture(spec: ChartSpec) -> str:
    """A chart of one panel as a file of its own."""
    points = [point for series in spec.panels[0].series for point in series.points]
    ends = [end for p in points for end in (p.low, p.high) if end is not None]
    x = make_scale(spec.x, [point.x for point in points])
    y = make_scale(spec.y, [point.y for point in points], ends)
    high = HEIGHT + 8 + ROW * len(spec.panels[0].series)
    style = (
        f"text{{font:{FONT}px sans-serif;fill:#1c2329}}.grid{{stroke:#d6dbe0}}"
        "polyline,path{fill:none;stroke-width:1.5}.grid{stroke-width:1}"
    )
    bold = ' font-weight="bold" style="font-weight:bold"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}"'
        f' width="{WIDTH}" height="{high}" role="img">',
        f"<title>{escape(spec.title)}</title><desc>{escape(spec.caption)}</desc>",
        f"<style>{style}</style>",
        f'<rect width="{WIDTH}" height="{high}" fill="#ffffff"/>',
        text_of(8, 18, spec.title, bold),
        *axes(spec, x, y),
        *(part for series in spec.panels[0].series for part in line_of(series, x, y)),
        *legend(spec),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


SHORT_TITLES = {
    "noise-where": "Where the noise lives",
    "noise-by_length": "Error after three minutes, by length of slice",
    "noise-decidable": "What three minutes can decide here",
}
"""Titles that fit 400 pixels."""


def pictures() -> dict[str, tuple[str, str]]:
    """Text of each file, by its name, and the caption that the page has below it."""
    _, logs, slice_ns = series_of(DATA)
    charts = [
        replace(chart, title=SHORT_TITLES[chart.name])
        for chart in noise_charts(errors_of_series(logs, slice_ns))
    ]
    return {f"{chart.name}.svg": (picture(chart), chart.caption) for chart in charts}


def page_text(page: str) -> str:
    """The page with the captions of its pictures, and with what was measured."""
    said, logs, slice_ns = series_of(DATA)
    told = f"{MEASURED}{said}; {len(logs)} slices of {slice_ns / 1e6:.0f} ms."
    page = re.sub(rf"(?m)^{MEASURED}.*$", lambda _: told, page)
    for name, (_, caption) in pictures().items():
        below = re.compile(rf"(?m)(^!\[[^]]*\]\(\.\./images/{re.escape(name)}\)\n\n)\*.*\*$")
        page = below.sub(lambda found, text=caption: f"{found[1]}*{text}*", page)
    return page


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--from", dest="database", type=Path, help="study.db of an A/A study")
    parser.add_argument("--note", default="", help="where and when it was measured")
    asked = parser.parse_args()
    if asked.database is not None:
        keep(asked.database, asked.note)
    for name, (text, _) in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
