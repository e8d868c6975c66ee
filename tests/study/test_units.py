"""Sizes, durations, shares: what is accepted, and that writing is the inverse of reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4k", 4096), ("4K", 4096), ("4KiB", 4096), ("64 MB", 64 << 20), ("1g", 1 << 30), (512, 512)],
)
def test_sizes_are_binary(text, expected):
    assert units.parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "k", "4x", "-4k", "0", 0, "4.5k", True, "99999999999t"])
def test_nonsense_is_no_size(text):
    with pytest.raises(ValueError, match="size"):
        units.parse_bytes(text)


@given(st.integers(min_value=1, max_value=1 << 62))
def test_sizes_round_trip(value):
    assert units.parse_bytes(units.format_bytes(value)) == value


@given(st.integers(min_value=1, max_value=10**16))
def test_durations_round_trip(value):
    assert units.parse_duration_ns(units.format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("1h30m", 5400), ("2.5s", 2.5), (4, 4), ("500ms", 0.5)]
)
def test_durations(text, seconds):
    assert units.parse_duration_ns(text) == seconds * 1e9


def test_how_often_is_a_plain_number():
    values = (0, 1e-9, 0.0012, 0.11, 3.0, 7.56, 9.99, 57.1, 571.0, 6.9e5)
    assert [units.format_times(value) for value in values] == [
        "0", "less than 0.001", "0.0012", "0.11", "3", "7.6", "10", "57", "570", "690 000",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "m", "30", "-3s", "3 weeks", 0, "0s", False])
def test_nonsense_is_no_duration(text):
    with pytest.raises(ValueError, match="duration"):
        units.parse_duration_ns(text)


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("5 %", 0.05), (0.1, 0.1), ("0.1", 0.1)])
def test_shares(text, share):
    assert units.parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0%", "100%", "5", "-1%", "x%", "nan", True])
def test_nonsense_is_no_share(text):
    with pytest.raises(ValueError, match=r"share|between"):
        units.parse_share(text)
