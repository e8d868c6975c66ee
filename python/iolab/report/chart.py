"""ChartSpec: a chart as plain data, drawn by `iolab.report.svg` and, natively, by `report.xlsx`.

Six kinds cover all charts. `rows`: categories from top to bottom, a value to the right, intervals
lie. `plane`: two numeric axes, intervals stand, points may be joined. `strip`: a grid of coloured
squares. `heat`: a grid of shaded cells with their values. `surface`: heights over two numeric
factors, in perspective. `stack`: as `rows`, but values are parts of a whole, bars end to end from
zero; these are the only bars. There is no kind that joins categories.
"""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from typing import Final, Literal

from iolab import units
from iolab.frozen import frozen
from iolab.visible import cell_text

ChartKind = Literal["rows", "plane", "strip", "heat", "surface", "stack"]
ScaleKind = Literal["linear", "log"]
Value = str | float | int | None

GREY = -1
"""Colour slot of what only forms the background."""
SPOTLIGHT_MAX = 8
"""As many series as there are colours; further ones are grey or repeat colours in other shapes."""
PANELS_MAX = 12
"""Panels drawn per chart; what is beyond stays in the data table, and the caption says so."""


@frozen
class Axis:
    """A numeric axis, or the names of the rows."""

    label: str
    unit: str = ""
    scale: ScaleKind = "linear"
    categories: tuple[str, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    """Fixed ticks (value, text), for sizes; empty = chosen by the renderer."""
    is_from_zero: bool = False
    is_ratio: bool = False
    """True if 1 means no difference: the workbook's axis then crosses at 1, in its middle."""

    @property
    def title(self) -> str:
        """Label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def log_title(self) -> str:
        """Label of an axis that is drawn logarithmic: straight lines are bent there."""
        if self.is_ratio or not self.unit:
            return self.title
        return f"{self.label} ({self.unit}, log scale)"


@frozen
class Point:
    """One mark. In `rows`, `stack` and `strip`, `y` is the index of the row, from the top."""

    x: float
    y: float
    low: float | None = None
    """Interval along the value axis: x in `rows`, y in `plane`; in `stack` that of the whole
    row, at one of its points."""
    high: float | None = None
    title: str = ""
    """Shown on hover."""
    is_hollow: bool = False
    """Exploratory or not a discovery."""
    is_emphasised: bool = False
    """Pooled, hence larger."""
    symbol: str = ""
    """Text inside a square of a `strip` (one character) or a cell of a `heat`."""
    shade: float | None = None
    """Darkness of a cell of a `heat`, from 0 to 1."""
    is_start: bool = False
    """No line leads to it: between it and the point before nothing was there to be measured."""
    z: float = 0.0
    """Height of a point of a `surface`, whose x and y are places among the categories."""


@frozen
class Series:
    """Marks that belong together: one colour, one row of the legend."""

    name: str
    points: tuple[Point, ...]
    slot: int
    """Index of colour and shape, or GREY."""
    is_joined: bool = False
    """Joined by a line; only where values between the points make sense."""
    dash: int = 0
    """Pattern of its broken line, 0 is not broken: beside one of its colour, or on top of
    another.
    """
    has_marks: bool = True
    """False for a line that was computed, where nothing was measured at its points."""

    def runs(self) -> list[tuple[Point, ...]]:
        """Return the stretches of points without a gap."""
        starts = [0, *(i for i, p in enumerate(self.points) if p.is_start and i), len(self.points)]
        return [self.points[a:b] for a, b in pairwise(starts)]


@frozen
class Shape:
    """Something that explains a panel of a `plane`: a shaded box, a line, or a mark on the axis."""

    kind: Literal["warm_up", "window", "slope", "level", "stall"]
    x: tuple[float, float]
    y: tuple[float, float] | None = None
    """Vertical extent, None is the full height."""
    label: str = ""


@frozen
class Panel:
    """One of several small charts that share their axes."""

    title: str
    series: tuple[Series, ...]
    shapes: tuple[Shape, ...] = ()
    """Left out by the workbook."""
    guides: tuple[tuple[float, str], ...] = ()
    """As those of the chart, where panels differ."""


@frozen
class Band:
    """A grey range of the value axis, with a line at `middle`."""

    low: float
    high: float
    middle: float
    label: str


BYTES_COLUMN: Final = "(bytes)"
RATE_COLUMN: Final = "(bytes/s)"
PER_BYTE_COLUMN: Final = "(ns/byte)"
"""End of the headers of those table columns that hold amounts of bytes."""
IN_WORDS: Final = "in words"
"""Header of a column that says what the others hold; it is read, not saved."""


@frozen
class Table:
    """The data behind a chart, units in the headers; bytes and bytes/s are not scaled.

    What is saved (`to_csv`) is the same whatever units are shown; what is read is `for_reading`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV with a header line; None is empty, floats have 9 digits."""
        kept = [i for i, name in enumerate(self.columns) if name != IN_WORDS]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_csv_value(self.columns[i]) for i in kept)
        writer.writerows([_csv_value(row[i]) for i in kept] for row in self.rows)
        return text.getvalue()

    def for_reading(self) -> Table:
        """Return the table with its amounts of bytes in the units that are shown now."""
        columns, scales = list(self.columns), dict[int, float]()
        for i, name in enumerate(self.columns):
            head, space, ending = name.rpartition(" ")
            if ending == RATE_COLUMN:
                unit = units.megabyte()
                shown, scales[i] = f"({unit.name}/s)", 1 / unit.size
            elif ending == BYTES_COLUMN:
                unit = units.readable(self._largest(i))
                shown, scales[i] = f"({unit.name})", 1 / unit.size
            elif ending == PER_BYTE_COLUMN:
                unit = units.kilobyte()
                shown, scales[i] = f"(µs/{unit.name})", unit.size / 1000
            else:
                continue
            columns[i] = f"{head}{space}{shown}"
        if not scales:
            return self
        rows = (
            tuple(_scaled(value, scales.get(i)) for i, value in enumerate(row)) for row in self.rows
        )
        return Table(tuple(columns), tuple(rows))

    def _largest(self, column: int) -> float:
        return max((v for row in self.rows if isinstance(v := row[column], int | float)), default=0)


def _scaled(value: Value, scale: float | None) -> Value:
    return value * scale if scale is not None and isinstance(value, int | float) else value


def _csv_value(value: Value) -> Value:
    if value is None:
        return ""
    if isinstance(value, str):
        return cell_text(value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


@frozen
class ChartSpec:
    """A chart: what to draw, what it says (`caption`), and the data to check it by."""

    name: str
    """Identifier, unique in a report; also the name of the CSV file."""
    kind: ChartKind
    title: str
    caption: str
    """The conclusion, as a sentence."""
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    table: Table
    band: Band | None = None
    marks: tuple[tuple[float, str], ...] = ()
    """Instants on the x axis of a `plane` with what happened then; drawn as upright lines."""
    guides: tuple[tuple[float, str], ...] = ()
    """Values on the value axis with what they are: dotted lines (a noise floor, a bound)."""
    has_own_scales: bool = False
    """True if each panel has a value axis of its own: panels then show different quantities."""
    tab: tuple[str, str] | None = None
    """Name of a figure with several views, and of this view; views follow each other."""
    is_folded: bool = False
    """Shown by the page when it is unfolded, left out by the workbook."""
    notes: tuple[tuple[str, str], ...] = ()
    """Meanings of unusual marks: a sign and its meaning, below the drawing."""
    z: Axis | None = None
    """Axis of the heights of a `surface`."""

    @property
    def value_axis(self) -> Axis:
        """The axis that values lie along, and their intervals."""
        return self.z or (self.x if self.kind in ("rows", "stack") else self.y)

    def legend(self) -> list[Series]:
        """Return one series per name, in the order of their colours, grey ones left out."""
        seen: dict[str, Series] = {}
        for panel in self.panels:
            for series in panel.series:
                if series.slot != GREY:
                    seen.setdefault(series.name, series)
        return sorted(seen.values(), key=lambda series: series.slot)
