"""Values that SQLite does not look into: packed records and JSON columns, damaged or hostile."""

import json
import resource
import zlib

import pytest

from iolab.errors import StoreError
from iolab.store import cells
from iolab.store.cells import CellError, pack_record, read_json, unpack_record


def bomb(n_bytes):
    """Zeros, packed without ever being in memory at once."""
    packer = zlib.compressobj(9)
    chunk = bytes(1 << 20)
    return b"".join(packer.compress(chunk) for _ in range(n_bytes >> 20)) + packer.flush()


def test_what_was_packed_comes_back():
    record = {"knobs": {"scheduler": "none"}, "phases": [], "text": "é"}
    assert unpack_record(pack_record(json.dumps(record), "t0001"), 1) == record


def test_a_bomb_is_named_and_never_unpacked():
    packed = bomb(1 << 30)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = "table record, row 7, column record_zlib would unpack to more than 16 MiB"
    with pytest.raises(CellError, match=message):
        unpack_record(packed, 7)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 300 << 10


def test_a_record_at_the_limit_is_read_and_one_beyond_is_not_written(monkeypatch):
    text = '{"a": "b"}'
    monkeypatch.setattr(cells, "RECORD_BYTES_MAX", len(text))
    assert unpack_record(pack_record(text, "t0001"), 1) == {"a": "b"}
    with pytest.raises(StoreError, match=r"the record of t0001 has 11 bytes, more than a study"):
        pack_record(text + " ", "t0001")
    with pytest.raises(CellError, match="would unpack to more"):
        unpack_record(zlib.compress(text.encode() + b" "), 1)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"", "cut off"),
        (b"garbage", "cannot be unpacked"),
        (zlib.compress(b'{"a": 1}')[:-3], "cut off"),
        (zlib.compress(b"{"), "no JSON"),
        (zlib.compress(b"[" * 100_000), "no JSON"),
        (zlib.compress(b"\xff"), "no JSON"),
        (zlib.compress(b"[]"), "not the record of a trial"),
        (zlib.compress(b'{"knobs": [1]}'), "not the record of a trial"),
        (zlib.compress(b'{"phases": [1]}'), "not the record of a trial"),
        (zlib.compress(b'{"phases": [{"marks": [{}]}]}'), "not the record of a trial"),
        ("text", "no packed record"),
        (None, "no packed record"),
    ],
)
def test_a_damaged_record_is_named(packed, message):
    with pytest.raises(CellError, match=rf"table record, row 3, column record_zlib .*{message}"):
        unpack_record(packed, 3)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("workers_json", "[{"),
        ("workers_json", '[{"ops": "many"}]'),
        ("caveats_json", '[{"code": "x"}]'),
        ("caveats_json", '[{"code": "x", "message": "y", "other": "z"}]'),
        ("factors_json", '{"scheduler": "none"}'),
        ("factors_json", '{"scheduler": []}'),
        ("levels_json", '{"scheduler": 1}'),
        ("levels_json", '{"scheduler": "\\ud800"}'),
        ("workloads_json", "{}"),
        ("ops_json", "[1.5]"),
        ("ops_json", "[1" + "0" * 400 + "]"),
        ("bytes_json", "[null]"),
        ("testbed_json", "[]"),
        ("settings_json", None),
        ("latency_ns_max_json", b"[]"),
    ],
)
def test_a_damaged_json_column_is_named(column, text):
    with pytest.raises(CellError, match=f"table phase, row 3 read, column {column} is n"):
        read_json(text, "phase", "3 read", column)
