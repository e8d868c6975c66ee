"""The fast encoder writes what `json.dumps` writes: digests of stored rows depend on it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.json_text import compact_encoder

CELLS = st.none() | st.integers() | st.floats() | st.text() | st.booleans()


@given(st.lists(st.lists(CELLS) | st.tuples(CELLS, CELLS)))
def test_it_writes_what_json_writes(rows):
    assert compact_encoder()(rows) == json.dumps(rows, separators=(",", ":"))


def test_without_the_compiled_encoder_it_is_the_plain_one(monkeypatch):
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    assert compact_encoder()([1, "a", None, 0.5]) == '[1,"a",null,0.5]'


def test_what_json_cannot_write_is_refused():
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        compact_encoder()([b"x"])
