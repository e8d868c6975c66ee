"""Numbers as they were published: rows of the tables in the folder of the same name.

The page beside the tables explains columns and units.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Final

from iolab.frozen import frozen

MEAN: Final = "mean"
"""Name of the run whose value is the mean that a document printed."""


@frozen
class Place:
    """Place of a number: its table, and the cells of its row."""

    table: str
    option: str
    operation: str
    record_size_bytes: int | None = None
    run: str = "1"


@frozen
class Published:
    """A published number; None where the text of the document has lost it."""

    value: float | None
    unit: str
    notes: str


def published(place: Place) -> Published:
    """The number at a place.

    Raises
    ------
    KeyError : the table has no such row.
    """
    return _table(place.table)[place]


@cache
def _table(name: str) -> dict[Place, Published]:
    text = (files("iolab.reproduced") / "published" / f"{name}.csv").read_text(encoding="utf-8")
    found = dict[Place, Published]()
    for row in csv.DictReader(text.splitlines()):
        size, value = row["record_size_bytes"], row["value"]
        place = Place(
            *(name, row["option"], row["operation"], int(size) if size else None, row["run"])
        )
        found[place] = Published(float(value) if value else None, row["unit"], row["notes"])
    return found
