"""The parts of XlsxWriter that the workbook uses, as interfaces: that package has no types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

Options: TypeAlias = Mapping[str, object]
"""Options of a chart, an axis or a format, as XlsxWriter documents them."""


class CellFormat(Protocol):
    """A format of cells; made by a book, handed back to its sheets."""


class NativeChart(Protocol):
    """A chart before it is inserted."""

    def add_series(self, options: Options, /) -> None:
        """Add a series of points."""
        ...

    def set_x_axis(self, options: Options, /) -> None:
        """Describe the axis across."""
        ...

    def set_y_axis(self, options: Options, /) -> None:
        """Describe the axis upwards."""
        ...

    def set_title(self, options: Options, /) -> None:
        """Give it a title."""
        ...

    def set_legend(self, options: Options, /) -> None:
        """Place the legend, or leave it out."""
        ...

    def set_size(self, options: Options, /) -> None:
        """Choose width and height, in pixels."""
        ...

    def show_blanks_as(self, option: str, /) -> None:
        """Choose how missing points are drawn."""
        ...


class Book(Protocol):
    """A workbook."""

    def add_format(self, properties: Options, /) -> CellFormat:
        """Make a format of cells."""
        ...

    def add_chart(self, options: Options, /) -> NativeChart:
        """Make a chart."""
        ...
