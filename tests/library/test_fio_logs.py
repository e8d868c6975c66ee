"""Logs of fio's form, made of the engine's logs of single operations and windows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from iolab.library.dialect import fio_logs
from iolab.library.dialect.plan import DialectPlan

MS: Final = 1_000_000
START: Final = 5_000 * MS
OP: Final = struct.Struct("<QQQII")
WINDOW: Final = struct.Struct("<QQQQII")


def log(kind: str, **more: Any) -> dict[str, Any]:
    """A log of one clone, as the plan has it."""
    source = {"phase": 0, "tenant": 0, "worker": 0, "file": "p.0"}
    plain = {
        "kind": kind,
        "clones": [[source]],
        "engine_window_ns": 0,
        "window_ns": 0,
        "is_maximum": False,
        "has_offsets": False,
        "is_unix_time": False,
        "ramp_ns": 0,
        "priority": 0,
        "coarseness": 0,
        "block_bytes": 4096,
        "targets": [],
    }
    return plain | more


def written(tmp_path: Path, wanted: dict[str, Any], entries: bytes, elapsed_ms: int) -> list[str]:
    """Lines of the file."""
    folder = tmp_path / "operations"
    folder.mkdir(exist_ok=True)
    (folder / "p.0").write_bytes(entries)
    path = tmp_path / "x.log"
    values: Any = {
        "show": {"logs": [wanted | {"file": str(path)}]},
        "common": {"overwrite": []},
    }
    lowered: Any = None  # Logs take nothing from the rows.
    plan = DialectPlan("fio", "", values, lowered)
    worker = {"started_ns": START, "elapsed_ns": elapsed_ms * MS}
    record: Any = {"phases": [{"started_ns": START, "tenants": [{"workers": [worker]}]}]}
    assert fio_logs.check_logs(plan) == [path]
    fio_logs.write_logs(plan, record, folder)
    return path.read_text().splitlines()


def ops(*rows: Sequence[int]) -> bytes:
    """Entries of single operations: offset, end in ms, latency in ns, bytes, direction."""
    return b"".join(OP.pack(at, START + ms * MS, ns, size, way) for at, ms, ns, size, way in rows)


def windows(*rows: Sequence[int]) -> bytes:
    """Entries of windows: end in ms, sum and longest in ns, bytes, operations, direction."""
    return b"".join(WINDOW.pack(START + row[0] * MS, *row[1:]) for row in rows)


def test_every_transfer_has_a_line_as_in_fio(tmp_path: Path) -> None:
    entries = ops((8192, 3, 2000, 4096, 1), (0, 4, 500, 8192, 0), (512, 9, 10, 512, 2))
    lines = written(tmp_path, log("latency", has_offsets=True, priority=1), entries, 10)
    assert lines == ["3, 2000, 1, 4096, 8192, 1", "4, 500, 0, 8192, 0, 1", "9, 10, 2, 512, 512, 1"]
    # fio 3.33: 4096 bytes in 11216 ns are 365192 kB/s.
    assert written(tmp_path, log("bandwidth"), ops((0, 0, 11216, 4096, 0)), 1) == [
        "0, 365192, 0, 4096, 0"
    ]
    assert written(tmp_path, log("iops"), ops((0, 0, 11216, 4096, 0)), 1) == ["0, 1, 0, 4096, 0"]
    assert written(tmp_path, log("submission"), entries, 10) == []


def test_windows_have_means_and_rates(tmp_path: Path) -> None:
    window = {"engine_window_ns": 500 * MS, "window_ns": 500 * MS}
    entries = windows((500, 3000, 2500, 409_600, 2, 0), (1000, 80, 50, 4096, 2, 1))
    assert written(tmp_path, log("latency", **window), entries, 1000) == [
        "500, 1500, 0, 0, 0",
        "1000, 40, 1, 0, 0",
    ]
    largest = log("latency", is_maximum=True, **window)
    assert written(tmp_path, largest, entries, 1000)[0] == "500, 2500, 0, 0, 0"
    assert written(tmp_path, log("bandwidth", **window), entries, 1000) == [
        "500, 800, 0, 0, 0",
        "1000, 8, 1, 0, 0",
    ]
    assert written(tmp_path, log("iops", **window), entries, 1000)[0] == "500, 4, 0, 0, 0"


def test_the_last_window_counts_as_long_as_the_worker_worked(tmp_path: Path) -> None:
    window = {"engine_window_ns": 1000 * MS, "window_ns": 1000 * MS}
    of = log("iops", **window)
    first = (1000, 1, 1, 1, 100, 0)
    # The engine tells the end of the last op; the worker went on until 1800 ms.
    assert written(tmp_path, of, windows(first, (1790, 1, 1, 1, 80, 0)), 1800) == [
        "1000, 100, 0, 0, 0",
        "1800, 100, 0, 0, 0",
    ]
    # Of less than half a window a rate says nothing, but latencies are told.
    short = windows(first, (1100, 7, 7, 1, 1, 0))
    assert len(written(tmp_path, of, short, 1100)) == 1
    assert written(tmp_path, log("latency", **window), short, 1100)[1] == "1100, 7, 0, 0, 0"


def test_warming_up_is_left_out(tmp_path: Path) -> None:
    window = {"engine_window_ns": 500 * MS, "window_ns": 500 * MS, "ramp_ns": 500 * MS}
    entries = windows((500, 3, 3, 1, 1, 0), (1000, 5, 5, 1, 1, 0))
    assert written(tmp_path, log("latency", **window), entries, 1000) == ["500, 5, 0, 0, 0"]


def test_histograms_are_counts_of_fios_buckets(tmp_path: Path) -> None:
    # 127 ns is exact, 128 and 129 share a bucket, 22055 ns is in 448 + 44: 2^14 + 22.. * 2^8.
    entries = ops(*((0, 1, ns, 4096, 0) for ns in (127, 128, 129, 22055)), (0, 9, 1, 4096, 1))
    wanted = log("histogram", window_ns=8 * MS)
    first, second = written(tmp_path, wanted, entries, 10)
    head, counts = first.split(", ")[:3], [int(field) for field in first.split(", ")[3:]]
    assert head == ["8", "0", "4096"]
    assert len(counts) == 1856
    assert {index: count for index, count in enumerate(counts) if count} == {
        127: 1,
        128: 2,
        (14 - 6 + 1) * 64 + (22055 >> 8) % 64: 1,
    }
    assert second.startswith("16, 1, 4096, 0, 1, 0")
    coarse = written(tmp_path, wanted | {"coarseness": 6}, entries, 10)[0].split(", ")
    assert len(coarse) == 3 + 1856 // 64


def test_single_transfers_are_summed_up_where_a_histogram_needs_them(tmp_path: Path) -> None:
    entries = ops((0, 1, 10, 1024, 0), (0, 2, 30, 1024, 0), (0, 12, 9, 1024, 1))
    wanted = log("latency", window_ns=10 * MS)
    assert written(tmp_path, wanted, entries, 20) == ["10, 20, 0, 0, 0", "12, 9, 1, 0, 0"]


def test_submission_and_completion_are_told_apart_where_the_engine_does(tmp_path: Path) -> None:
    """Submission was always empty, and the completion the whole latency."""
    apart = struct.Struct("<QQQIIQ")
    rows = ((0, 1, 1000, 4096, 0, 300), (4096, 2, 3000, 4096, 0, 500))
    single = b"".join(apart.pack(at, START + ms * MS, *rest) for at, ms, *rest in rows)

    def values(kind: str, entries: bytes, **more: Any) -> list[int]:
        wanted = log(kind, **more)
        wanted["clones"][0][0]["has_submissions"] = True
        lines = written(tmp_path, wanted, entries, 100)
        return [int(line.split(", ")[1]) for line in lines]

    assert values("submission", single) == [300, 500]
    assert values("completion", single) == [700, 2500]
    assert values("latency", single) == [1000, 3000]
    assert values("completion", single, window_ns=10 * MS) == [1600]
    window = struct.Struct("<QQQQIIQQQ")
    one = window.pack(START + 50 * MS, 4000, 3000, 8192, 2, 0, 800, 500, 2500)
    width = {"window_ns": 50 * MS, "engine_window_ns": 50 * MS}
    assert values("submission", one, **width) == [400]
    assert values("completion", one, **width) == [1600]
    largest = width | {"is_maximum": True}
    assert values("submission", one, **largest) == [500]
    assert values("completion", one, **largest) == [2500]
    assert values("latency", one, **largest) == [3000]
