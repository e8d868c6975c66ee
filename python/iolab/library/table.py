"""A table of results: named columns, rows, and a pandas frame where pandas is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from iolab.errors import IolabError
from iolab.frozen import frozen

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingImports]

Cell: TypeAlias = str | int | float | bool | None
"""One value; None where a row has none."""
Row: TypeAlias = tuple[Cell, ...]


@frozen
class ResultTable:
    """Rows with named columns.

    Parameters
    ----------
    columns : names, without repetition; those of quantities end with their unit.
    rows : one value per column each.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def to_frame(self) -> pandas.DataFrame:  # pyright: ignore[reportUnknownParameterType]
        """The same as a frame; a missing value is NaN in a column of numbers.

        Raises
        ------
        IolabError : pandas is not installed.
        """
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise IolabError(
                "to_frame() needs pandas, which is not installed",
                "run `pip install 'iolab[notebook]'`, or use columns and to_rows()",
            ) from None
        return pandas.DataFrame.from_records(list(self.rows), columns=list(self.columns))


def table_of(columns: Sequence[str], rows: Sequence[dict[str, Cell]]) -> ResultTable:
    """ResultTable of rows that name their values; what a row does not name is None."""
    return ResultTable(
        tuple(columns), tuple(tuple(row.get(name) for name in columns) for row in rows)
    )
