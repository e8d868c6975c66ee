"""Cells of the workbook: tables, formulas that count as iolab does, and links from charts to them.

A formula carries the value that iolab found, so that readers which do not calculate show it, too;
whoever changes a number sees every cell and chart that follows from it change. Formulas use
functions that Excel 2007 and LibreOffice share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from iolab.frozen import frozen
from iolab.report.chart import Value
from iolab.report.workbook import Book, CellFormat

HEADER_HEIGHT: Final = 32
"""Room for two lines, in points."""
COLUMNS_MAX: Final = 16_000
"""Excel has 16,384 columns."""
ROWS_MAX: Final = 1_000_000
"""Excel has 1,048,576 rows."""
LINE_POINTS: Final = 15.0
ROW_POINTS_MAX: Final = 400.0
"""Excel has rows of at most 409 points."""
DIGIT_PIXELS: Final = 7
"""Width of a digit in Excel's usual font."""
USUAL_PIXELS: Final = 64
"""Width of a column that nothing was set for."""
TEXT_MAX: Final = 32_000
"""A cell of Excel holds 32,767 characters."""


@frozen
class SheetWriter:
    """A worksheet with its workbook and formats."""

    book: Book
    sheet: Any
    formats: Mapping[str, CellFormat]
    _pixels: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def name(self) -> str:
        """Name of the sheet."""
        return str(self.sheet.get_name())

    def columns(
        self, first: int, last: int, characters: float, style: CellFormat | None = None
    ) -> None:
        """Set the width of columns."""
        self.sheet.set_column(first, last, characters, style)
        pixels = round(characters * DIGIT_PIXELS) + 5  # As Excel counts in its usual font.
        self._pixels.update(dict.fromkeys(range(first, last + 1), pixels))

    @property
    def used_columns(self) -> int:
        """Number of columns up to the last one that has a cell."""
        return (self.sheet.dim_colmax or 0) + 1

    def pixels(self, column: int) -> int:
        """Return the width of a column."""
        return self._pixels.get(column, USUAL_PIXELS)

    def text(self, row: int, column: int, text: str, style: str = "") -> None:
        """Write a text as it is; one that no cell can hold is cut."""
        cut = text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]} …"
        self.sheet.write_string(row, column, cut, self.formats.get(style))

    def formula(
        self, row: int, column: int, formula: str, value: float | str, style: str = "number"
    ) -> None:
        """Write a formula over arrays, with the value that it has now."""
        self.sheet.write_array_formula(
            row, column, row, column, f"{{={formula}}}", self.formats[style], value
        )

    def labelled(self, row: int, label: str, text: str, last: int, room: int) -> None:
        """Write a label and what it stands for, folded if that is longer than `room` characters.

        Parameters
        ----------
        row : the row; the label stands in its first column.
        last : last column of the text.
        """
        label_room = self.pixels(0) // DIGIT_PIXELS
        is_long = len(text) > room or len(label) > label_room
        self.text(row, 0, label, "paragraph" if is_long else "")
        if is_long:
            self.wrapped(row, (1, last), text, "paragraph", room)
            lines = 1 + max(len(text) // room, len(label) // label_room)
            self.sheet.set_row(row, min(ROW_POINTS_MAX, LINE_POINTS * lines))
        else:
            self.text(row, 1, text)

    def wrapped(self, row: int, columns: tuple[int, int], text: str, style: str, room: int) -> None:
        """Write a text over several columns, with as many lines as it needs.

        Parameters
        ----------
        row, columns : the place: first and last column.
        style : a format that folds.
        room : characters of a line.
        """
        lines = sum(1 + len(part) // room for part in text.split("\n"))
        self.sheet.merge_range(
            row, columns[0], row, columns[1], text[:TEXT_MAX], self.formats[style]
        )
        self.sheet.set_row(row, min(ROW_POINTS_MAX, LINE_POINTS * max(1, lines)))


Triple = tuple[float, float | None, float | None]
"""Value, lower and upper end of its interval."""


@frozen
class Place:
    """Cells of a value and its interval, and the factor that turns them into those of a chart."""

    value: str
    low: str
    high: str
    scale: float = 1.0

    @classmethod
    def of_row(cls, sheet: str, row: int, column: int, scale: float = 1.0) -> Self:
        """Return the place of a value at a column, its interval to the right of it."""
        value, low, high = (cell(sheet, row, column + offset) for offset in range(3))
        return cls(value, low, high, scale)

    def term(self, reference: str) -> str:
        """Return one of the references as it enters a chart."""
        if self.scale == 1.0:
            return reference
        divisor = 1 / self.scale
        if abs(divisor - round(divisor)) < 1e-9 * divisor and divisor >= 1:
            return f"{reference}/{round(divisor)}"
        return f"{reference}*{self.scale!r}"


@dataclass(slots=True)
class Links:
    """Cells that hold the values of a chart, by the point's title and numbers, or by these alone.

    Two places with the same title and numbers cannot be told apart: then nothing is linked.
    """

    places: dict[tuple[str, Triple], Place | None] = field(
        default_factory=dict[tuple[str, Triple], Place | None]
    )

    def add(self, title: str, shown: Triple, place: Place) -> None:
        """Remember a place."""
        for key in dict.fromkeys(((title, shown), ("", shown))):
            self.places[key] = None if key in self.places else place

    def find(self, title: str, shown: Triple) -> Place | None:
        """Return the only place of a point, if there is one."""
        return self.places.get((title, shown)) or self.places.get(("", shown))


def cell(sheet: str, row: int, column: int) -> str:
    """Return an absolute reference, as in ``'Runs'!$C$4``."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    return f"'{sheet}'!{xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)}"


def log_mean(cells: str) -> str:
    """Return the formula of the mean of ln-values; empty cells do not count."""
    return f"AVERAGE(IF(ISNUMBER({cells}),LN({cells})))"


def log_half_width(cells: str, error: str) -> str:
    """Return the formula of half of Student's t interval of ln-values.

    Parameters
    ----------
    cells : range of values above zero, one per round.
    error : what the interval may miss, a number or a cell: 0.05 for 95 %.
    """
    spread = f"STDEV(IF(ISNUMBER({cells}),LN({cells})))"
    return f"TINV({error},COUNT({cells})-1)*{spread}/SQRT(COUNT({cells}))"


def write_table(
    out: SheetWriter, row: int, columns: Sequence[str], rows: Sequence[Sequence[Value]]
) -> int:
    """Write headers and rows; return the first free row."""
    write_headers(out, row, columns)
    shown = rows[: ROWS_MAX - row]
    for line, values in enumerate(shown, start=row + 1):
        for column, value in enumerate(values):
            write_value(out, line, column, value)
    return row + 1 + len(shown)


def write_headers(out: SheetWriter, row: int, columns: Sequence[str], first: int = 0) -> None:
    """Write a line of headers."""
    out.sheet.set_row(row, HEADER_HEIGHT)
    for column, header in enumerate(columns, start=first):
        out.text(row, column, header, "header")


def write_value(out: SheetWriter, row: int, column: int, value: Value) -> None:
    """Write a cell: numbers as numbers, nothing as an empty cell."""
    if isinstance(value, float):
        out.sheet.write_number(row, column, value, out.formats["number"])
    elif isinstance(value, int):
        out.sheet.write_number(row, column, value)
    elif value is not None:
        out.text(row, column, value)
