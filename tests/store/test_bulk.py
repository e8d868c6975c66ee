"""Cells read together are those read one by one; what is unusual is left to the careful reader."""

from __future__ import annotations

import json
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.store.bulk import lists, whole_numbers
from iolab.store.cells import CellError, read_json


def _text(values: object) -> str:
    return json.dumps(values, separators=(",", ":"))


@given(st.lists(st.lists(st.integers(0, 10**18 - 1), max_size=9), max_size=9))
def test_whole_numbers_come_back(rows: list[list[int]]) -> None:
    assert whole_numbers([_text(row) for row in rows]) == [array("q", row) for row in rows]


@pytest.mark.parametrize(
    "text",
    [
        "[-1]",
        "[1.5]",
        "[1e3]",
        "[true]",
        '["1"]',
        "[[1]]",
        "[1,]",
        "[,1]",
        "[1,,2]",
        "[1],[2]",
        "[1",
        "1",
        "",
        "[1, 2]",
        "[١]",
        str([10**18]),
        str([10**30]),
    ],
)
def test_anything_else_is_left_to_the_careful_reader(text: str) -> None:
    assert whole_numbers(["[1]", text, "[2,3]"]) is None


@given(st.lists(st.text('[]1,{}"a: -', max_size=8), max_size=4))
def test_what_is_accepted_is_what_the_careful_reader_accepts(texts: list[str]) -> None:
    found = lists(texts, "workers_json")
    try:
        expected = [read_json(text, "phase", 1, "workers_json") for text in texts]
    except CellError:
        return  # Refused one by one, with the row; reading together may not notice.
    assert found is None or found == expected


def test_workers_have_the_promised_shape() -> None:
    good = _text([{"worker": 0, "ops": 3}])
    assert lists([good, "[]"], "workers_json") == [[{"worker": 0, "ops": 3}], []]
    for bad in ('[{"worker":"0"}]', "[1]", "{}", "[", "[],[]"):
        assert lists([good, bad], "workers_json") is None
