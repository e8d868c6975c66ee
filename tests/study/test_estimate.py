"""Bytes that a trial is guessed to write: by the words of its streams, else by an assumed speed."""

from dataclasses import replace

import pytest

from iolab.study.estimate import ASSUMED_BYTES_PER_S, cost_of
from iolab.study.load import study_from_table
from iolab.study.model import MixedWorkload, Stream
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource
from iolab.study.treatment import Treatment

SECOND = 1_000_000_000
MIB = 1 << 20
WRITER = Stream("writer", 0.0, "uniform", 4096, 1, 1, MIB)
READER = replace(WRITER, name="reader", read_share=1.0)
TABLE = {
    "name": "s",
    "testbed": "loop:1g",
    "seed": 7,
    "factors": {"scheduler": ["none", "bfq"]},
    "workloads": [{"kind": "iozone", "tests": ["write"], "file_size": "64m"}],
}
FASTEST = 10 * ASSUMED_BYTES_PER_S


def cost(*streams, direct="true"):
    workload = MixedWorkload("mix", 10 * SECOND, streams)
    return cost_of(Treatment(workload, (), (("direct", direct),)))


def written(*streams, **more):
    """Without what is laid out before."""
    found = cost(*streams, **more)
    return found.written_bytes - found.file_bytes


def test_direct_small_records_take_time_each():
    def duration_s(**more):
        plan = make_plan(study_from_table(TABLE | {"settings": more}, FlagSource({})))
        return cost_of(plan.treatments[0]).duration_ns / SECOND

    assert duration_s(record_size="4k", direct=True) == pytest.approx(1 + 16384 * 1e-4, rel=1e-3)
    assert duration_s(record_size="4k", direct=True, depth=32) < 1.5
    assert duration_s(record_size="1m", direct=True) < 1.5
    assert duration_s(record_size="4k", direct=False) < 1.5


def test_who_writes_as_fast_as_it_can_is_guessed_and_the_guess_is_no_bound():
    assert written(WRITER) == FASTEST
    assert not cost(WRITER).is_bound
    assert (written(READER), cost(READER).is_bound) == (0, True)


def test_several_fast_writers_share_one_device():
    assert written(WRITER, replace(WRITER, name="b"), READER) == FASTEST
    early, late = replace(WRITER, ends_ns=2 * SECOND), replace(WRITER, begins_ns=9 * SECOND)
    assert written(early, late) == 3 * ASSUMED_BYTES_PER_S


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"ops": 4096}, 16 * MIB),
        ({"ops": 4096, "workers": 3}, 48 * MIB),
        ({"rate_ops_per_s": 100.0}, 1001 * 4096),
        ({"rate_ops_per_s": 100.0, "workers": 2, "ends_ns": SECOND}, 2 * 101 * 4096),
        ({"rate_ops_per_s": 100.0, "begins_ns": 9 * SECOND}, 101 * 4096),
        ({"think_ns": SECOND // 10}, 101 * 4096),
        ({"limits": (("max_write", 2 * MIB),)}, 22 * MIB),
        ({"limits": (("max_write_iops", 10),)}, 110 * 4096),
        ({"limits": (("max_write", 2 * MIB),), "ops": 10}, 10 * 4096),
    ],
)
def test_what_holds_a_stream_back_bounds_it(changes, most):
    stream = replace(WRITER, **changes)
    assert (written(stream), cost(stream).is_bound) == (most, True)
    assert written(stream, WRITER) == most + FASTEST, "beside one that nothing holds back"


def test_the_page_cache_escapes_the_limits_of_a_group():
    stream = replace(WRITER, limits=(("max_write", 2 * MIB),))
    assert (written(stream, direct="false"), cost(stream, direct="false").is_bound) == (
        FASTEST,
        False,
    )
    held = replace(WRITER, ops=10)
    assert (written(held, direct="false"), cost(held, direct="false").is_bound) == (40960, True)


def test_a_bound_beyond_the_assumed_speed_is_none():
    stream = replace(WRITER, rate_ops_per_s=1e6)
    assert (written(stream), cost(stream).is_bound) == (FASTEST, False)


def test_the_share_that_reads_does_not_write():
    half = replace(WRITER, read_share=0.5)
    assert written(half) == FASTEST // 2
    held = replace(half, ops=10_000)
    assert 5_000 * 4096 < written(held) < 5_300 * 4096, "who reads is drawn"
    assert written(replace(half, ops=1)) == 4096
