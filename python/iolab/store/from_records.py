"""Rows that only whole records give: latency distributions, and measures of block traces.

Of large studies only the first rounds are read, since opening a record costs about a millisecond.
"""

from __future__ import annotations

import sqlite3
from dataclasses import field
from typing import Final

from iolab.frozen import frozen
from iolab.store.cells import understood, unpack_record
from iolab.store.curves import curves_of
from iolab.store.rows import CurveRow, TracedPhase
from iolab.store.traced import traced_of

RECORDS_MAX: Final = 1000


@frozen
class FromRecords:
    """Rows out of opened records."""

    curves: list[CurveRow] = field(default_factory=list[CurveRow])
    traced: list[TracedPhase] = field(default_factory=list[TracedPhase])


def read_records(connection: sqlite3.Connection) -> FromRecords:
    """Open the finished trials of as many first rounds as `RECORDS_MAX` allows."""
    counts = connection.execute(
        "SELECT round, count(*) FROM record JOIN trial USING (trial_id) WHERE status = 'ok' "
        "GROUP BY round ORDER BY round"
    ).fetchall()
    last, seen = 0, 0
    for round_number, count in counts:
        seen += count
        if seen > RECORDS_MAX and last:
            break
        last = round_number
    rows = connection.execute(
        "SELECT record_id, trial_id, record_zlib FROM record JOIN trial USING (trial_id) "
        "WHERE status = 'ok' AND round <= ? ORDER BY record_id LIMIT ?",
        (last, RECORDS_MAX),
    )
    found = FromRecords()
    for record_id, trial_id, packed in rows:
        record = unpack_record(packed, record_id)
        with understood(record_id):
            found.curves.extend(curves_of(trial_id, record))
            found.traced.extend(traced_of(trial_id, record))
    return found
