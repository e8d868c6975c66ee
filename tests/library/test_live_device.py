"""Devices watched second by second: the last minute, its lines and its picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from iolab.library.live_device import (
    MINUTE,
    LastMinute,
    blocks_of,
    line_of,
    range_text,
    troubles,
)

if TYPE_CHECKING:
    from iolab.protocol import LiveSecond

RANGES = 26


def latency(count: int = 0, place: int = 0, ns: int = 0):
    ranges = [0] * RANGES
    ranges[place] = count
    return {"count": count, "p50_ns": ns, "p99_ns": ns, "max_ns": ns, "ranges": ranges}


def second(number: int, **changed: object) -> LiveSecond:
    """A second with a thousand reads of 4 KiB, 100 us each."""
    told = {
        "number": number,
        "interval_ns": 10**9,
        "reads": {"count": 1000, "bytes": 4096000},
        "writes": {"count": 0, "bytes": 0},
        "discards": {"count": 0, "bytes": 0},
        "flushes": 0,
        "errors": 0,
        "device": latency(1000, 7, 100_000),
        "whole": latency(1000, 8, 150_000),
        "in_device": {"mean": 0.1, "max": 2},
        "in_queue": {"mean": 0.15, "max": 3},
        "processes": [{"pid": 7, "name": "dd", "read_bytes": 4096000, "write_bytes": 0}],
        "other_bytes": 0,
        "events": 3000,
        "lost": 0,
        "forgotten": 0,
    }
    return {**told, **changed}  # type: ignore[typeddict-item]


def minute_of(*seconds: LiveSecond) -> LastMinute:
    minute = LastMinute()
    for one in seconds:
        minute.add(one)
    return minute


def test_memory_is_a_minute_and_losses_are_kept_for_ever():
    minute = minute_of(*(second(number, lost=2) for number in range(1, 201)))
    assert len(minute.seconds) == MINUTE
    assert minute.lost == 400
    assert minute.elapsed_ns == 200 * 10**9
    (process,) = minute.processes()
    assert process.read_bytes == MINUTE * 4096000


def test_a_line_has_rates_latency_depth_and_the_first_process():
    line = line_of(second(3), "device")
    assert line.startswith("    3 s  read 1000/s 3.91 MiB/s  write 0/s 0 B/s  D2C p50 100 µs")
    assert "depth 0.10" in line
    assert line.endswith("dd (7) 3.91 MiB")
    assert len(line) < 160


def test_a_shorter_interval_is_counted_by_the_second():
    assert "read 2000/s" in line_of(second(1, interval_ns=5 * 10**8), "whole")


def test_losses_and_failures_are_told_in_the_line():
    line = line_of(second(1, lost=5, errors=1, forgotten=2), "device")
    assert "1 error of the device  5 events lost: rates are too low" in line
    assert troubles(second(1)) == []


def test_a_device_without_requests_is_shown_by_whole_times():
    assert minute_of(second(1, device=latency())).stage() == "whole"
    assert minute_of(second(1)).stage() == "device"


def test_the_heat_has_the_ranges_that_were_met():
    minute = minute_of(second(1), second(2, device=latency(3, 10, 10**6)))
    shown, columns = minute.heat("device")
    assert (shown.start, shown.stop) == (7, 11)
    assert columns == [[1000, 0, 0, 0], [0, 0, 0, 3]]
    assert [range_text(place) for place in (0, 1, 8)] == ["0", "1.00 µs", "128 µs"]


def test_signs_follow_the_logarithm_and_none_is_none():
    assert blocks_of([0, 1, 10, 1000], 1000, " .:#") == " .:#"
    assert blocks_of([0, 0], 0, " #") == "  "


def test_a_name_is_no_command_to_the_terminal():
    bad = [{"pid": 9, "name": "a\x1b[2J", "read_bytes": 1, "write_bytes": 0}]
    assert "\x1b" not in line_of(second(1, processes=bad), "device")


@pytest.mark.parametrize("width", [80, 200])
def test_the_view_fits_its_terminal(width):
    console = pytest.importorskip("rich.console", reason="the view needs rich")
    from iolab.cli.live_view import drawn

    out = io.StringIO()
    shown = console.Console(file=out, width=width, force_terminal=True, color_system=None)
    bad = [{"pid": 9, "name": "[bold]x\x1b[2J", "read_bytes": 1, "write_bytes": 0}]
    minute = minute_of(*(second(number) for number in range(1, 70)), second(70, processes=bad))
    shown.print(drawn(("loop3",), minute, width))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "[bold]x" in text
    assert "\x1b" not in text
    assert "D2C of the last minute" in text
    assert "64.0 µs" in text
    shown.print(drawn(("loop3",), LastMinute(), width))
    assert "The first second is not over yet." in out.getvalue()
