"""Rows of block traces out of records: none where the trace is not whole, or not one of ours."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from iolab.store.traced import traced_of

AMOUNTS = [{"count": 3, "bytes": 12288}, {"count": 2, "bytes": 8192}, {"count": 1, "bytes": 0}]
STAGE = {"count": 5, "sum_ns": 500, "mean_ns": 100.0, "p99_ns": 200}
DEVICE = {
    "counts": {"completed_of": AMOUNTS, "queued": AMOUNTS, "flushes": 1},
    "issue_seeks": {"count": 4, "sequential_share": 0.5},
    "in_flight": {"mean": 1.5, "max": 2, "busy_share": 0.25},
}
RECORD = {
    "trace": {"file": "traces/t.iotrace", "sha256": "0", "lost": {}, "problem": None},
    "phases": [
        {
            "name": "write",
            "started_ns": 10,
            "elapsed_ns": 90,
            "tenants": [{"workers": [{"bytes": 4096}]}],
            "trace": {"stages": {"Q2C": STAGE}, "devices": [DEVICE, DEVICE]},
        }
    ],
}


def rows(*path: Any, value: Any = None) -> list[Any]:
    """Rows of the record, with one value changed."""
    record: Any = copy.deepcopy(RECORD)
    place = record
    for step in path[:-1]:
        place = place[step]
    if path:
        place[path[-1]] = value
    return list(traced_of("t1", record))


def test_amounts_are_sums_over_the_devices() -> None:
    (row,) = rows()
    assert (row.read_bytes, row.write_bytes, row.requests, row.transfers) == (24576, 16384, 12, 10)
    assert (row.bios, row.flushes, row.sequential_share) == (12, 2, 0.5)
    assert (row.in_flight_mean, row.in_flight_max, row.busy_share) == (3.0, 2, 0.25)
    assert (row.span_ns, row.bytes_asked, row.operation) == ((10, 100), 4096, "write")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trace",), None),
        (("trace", "lost"), {"0": 7}),
        (("trace", "problem"), "the disk is full"),
        (("phases", 0, "trace"), None),
        (("phases", 0, "trace", "devices"), []),
    ],
)
def test_a_trace_that_is_not_whole_has_no_row(path: Any, value: Any) -> None:
    assert rows(*path, value=value) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trace",), "yes"),
        (("phases", 0, "trace", "devices"), 5),
        (("phases", 0, "trace", "devices", 0, "counts"), {}),
        (("phases", 0, "trace", "devices", 0, "counts", "flushes"), "many"),
        (("phases", 0, "trace", "devices", 0, "counts", "flushes"), -1),
        (("phases", 0, "trace", "devices", 0, "in_flight", "mean"), float("nan")),
        (("phases", 0, "trace", "stages"), []),
        (("phases", 0, "trace", "stages", "Q2C"), {"count": 10**400, "sum_ns": 1, "p99_ns": 1}),
        (("phases", 0, "started_ns"), None),
    ],
)
def test_a_summary_that_is_none_of_ours_has_no_row(path: Any, value: Any) -> None:
    assert rows(*path, value=value) == []
