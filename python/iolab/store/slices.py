"""Slices out of the records of a study whose levels alternated in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Final, cast

from iolab.store.cells import are_whole, understood, unpack_record
from iolab.store.rows import SlicesRow

if TYPE_CHECKING:
    from iolab.protocol import Record

COLUMNS: Final = ("begin_ns", "length_ns", "ops", "bytes", "longest_ns")
"""Columns that are kept of every slice."""


def read_slices(connection: sqlite3.Connection) -> list[SlicesRow]:
    """Slices of all finished trials, in the order of their records."""
    rows = connection.execute(
        "SELECT record_id, trial_id, record_zlib FROM record WHERE status = 'ok' ORDER BY record_id"
    )
    found = list[SlicesRow]()
    for record_id, trial_id, packed in rows:
        record = unpack_record(packed, record_id)
        with understood(record_id):
            found += _slices(trial_id, record)
    return found


def _slices(trial_id: str, record: Record) -> Iterator[SlicesRow]:
    session = record.get("session")
    if session is None:
        return
    for phase in record.get("phases") or []:
        tenants = phase.get("tenants") or []
        for tenant in tenants:
            slices = tenant.get("slices")
            if slices:
                _check(slices)
                name = str(phase["name"])
                yield SlicesRow(
                    trial_id,
                    name if len(tenants) == 1 else f"{name}/{tenant['name']}",
                    session=int(session["number"]),
                    slice_ns=int(session["slice_ns"]),
                    chosen_by=str(session["chosen_by"]),
                    washout_ns=int(session["washout_ns"]),
                    switch_cost_ns=int(session["switch_cost_ns"]),
                    begin_ns=tuple(slices["begin_ns"]),
                    length_ns=tuple(slices["length_ns"]),
                    ops=tuple(slices["ops"]),
                    bytes=tuple(slices["bytes"]),
                    longest_ns=tuple(slices["longest_ns"]),
                    place=tuple(slices.get("place") or ()),
                    places=int(session.get("places", 1)),
                    images=int(session.get("images", 0)),
                )


def _check(slices: Mapping[str, object]) -> None:
    """Refuse columns that are no lists of whole numbers, as many in each.

    Raises
    ------
    ValueError : they are none.
    """
    columns = [slices[name] for name in COLUMNS]
    columns += [slices["place"]] if slices.get("place") else []
    if not all(map(are_whole, columns)) or len({len(cast("Sized", c)) for c in columns}) > 1:
        raise ValueError("columns of slices that are no whole numbers, or not as many")
