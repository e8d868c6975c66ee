"""Paper of a sheet: how many pages it is wide, and which columns fit there in readable letters.

A sheet prints on one page side by side, or on two. A page ends between two columns. Columns that
do not fit are in the workbook alone, and the foot of each page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.xlsx_cells import SheetWriter

PAPER_A4: Final = 9
"""Excel's number for A4."""
MARGIN_INCHES: Final = 0.4
"""Left and right."""
PAGES_MAX: Final = 2
WIDER: Final = 1.04
"""LibreOffice prints columns wider than Excel: 1034 pixels of them did not fit into the 1045 of a
page. Chosen to be more than that.
"""
PAGE_PIXELS: Final = int((297 / 25.4 - 2 * MARGIN_INCHES) * 96 / WIDER)
"""Width of A4 across between its margins; a pixel of a sheet is 1/96 inch."""
FRAME_PIXELS: Final = 4
"""A chart that ends where its page ends has its frame on the next one, else."""
SCALE_LEAST: Final = 0.73
"""Text of 11 points, the usual one, prints at 8 points."""


def lay_on_paper(out: SheetWriter, columns: int, last_row: int | None, *, has_charts: bool) -> None:
    """Set paper, pages and the printed part of a sheet.

    Parameters
    ----------
    out : the sheet, with the widths of its columns.
    columns : so many from the left should be printed.
    last_row : the last printed row; None for all rows.
    has_charts : their text is of 8 points, so that they print in full size wherever that fits.
        They are no wider than `charts_room`, so that no page ends inside one.
    """
    out.sheet.set_landscape()
    out.sheet.set_paper(PAPER_A4)
    out.sheet.set_margins(left=MARGIN_INCHES, right=MARGIN_INCHES, top=0.35, bottom=0.35)
    widths = [out.pixels(column) for column in range(columns)]
    pages, fitting = pages_wide(widths, PAGE_PIXELS / SCALE_LEAST)
    if has_charts and pages_wide(widths, PAGE_PIXELS)[1] == columns:
        pages, fitting = pages_wide(widths, PAGE_PIXELS)
    out.sheet.fit_to_pages(pages, 0)
    if fitting < columns:
        left = columns - fitting
        more = "1 more column is" if left == 1 else f"{left} more columns are"
        out.sheet.set_footer(f"&L{more} in the workbook, not on paper")
    if fitting < columns or last_row is not None:
        last = out.sheet.dim_rowmax if last_row is None else last_row
        out.sheet.print_area(0, 0, max(0, last or 0), max(0, fitting - 1))


def charts_room(out: SheetWriter) -> tuple[int, int]:
    """Return the width of the columns of a first page, and how many these are.

    The widths are to be set before. A page that is printed smaller has these columns, too.

    Returns
    -------
    Pixels, columns.
    """
    used, columns = 0, 0
    while used + out.pixels(columns) <= PAGE_PIXELS:
        used, columns = used + out.pixels(columns), columns + 1
    return used - FRAME_PIXELS, columns


def pages_wide(widths: Sequence[int], room: float) -> tuple[int, int]:
    """Return how many pages columns take side by side, and how many of the columns fit there."""
    pages, used = 1, 0.0
    for index, width in enumerate(widths):
        if used and used + width > room:
            if pages == PAGES_MAX:
                return pages, index
            pages, used = pages + 1, 0.0
        used += width
    return pages, len(widths)
