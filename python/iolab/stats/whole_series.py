"""Series over the whole time of their stream: silence after the last operation is silence, too.

A stored series ends with the slice of the last operation. A stream that was still at work then, and
completed nothing until its time was over, has stalled to the end; what it did is filled up with
empty slices as far as its workers lasted. One that had done all its operations ended there.
"""

from __future__ import annotations

from iolab.frozen import replace
from iolab.store.cells import SLICES_MAX
from iolab.store.rows import SeriesRow, StudyData


def whole_series(data: StudyData) -> list[SeriesRow]:
    """Return all stored series, filled up; several tables and charts start from them."""
    known = data.derived.get("whole_series")
    if known is None:
        known = data.derived["whole_series"] = _whole(data)
    return known


def _whole(data: StudyData) -> list[SeriesRow]:
    lasted = {
        (detail["trial_id"], detail["operation"]): max(
            (int(worker.get("elapsed_ns") or 0) for worker in detail.get("workers") or []),
            default=0,
        )
        for detail in data.phase_details
    }
    return [_filled(row, lasted.get((row.trial_id, row.operation), 0)) for row in data.series]


def _filled(row: SeriesRow, lasted_ns: int) -> SeriesRow:
    if row.interval_ns <= 0 or not row.ops:
        return row
    # The last slice of a series is cut off by its end: one more than the whole ones.
    missing = lasted_ns // row.interval_ns + 1 - len(row.ops)
    # More slices than any series has are no silence, but a time that does not fit them.
    if missing <= 1 or missing + len(row.ops) > SLICES_MAX:
        return row
    silence = (0,) * missing
    return replace(
        row,
        ops=(*row.ops, *silence),
        bytes=(*row.bytes, *silence),
        latency_ns_max=(*row.latency_ns_max, *silence),
    )
