"""Operations of workloads are known by their properties, whoever describes them."""

import json

import pytest

from iolab import _core
from iolab.study.load import parse_study
from iolab.study.names import TESTS
from iolab.study.operations import Operation, operations_of, operations_of_description
from iolab.study.treatment import treatments_of

EVERY = ", ".join(f'"{test.name}"' for test in TESTS)
STUDY = """
testbed = "dir:/x"
[factors]
direct = [true, false]
[settings]
engine = "psync"
[[workloads]]
kind = "iozone"
tests = [{tests}]
record_size = "4k"
file_size = "1m"
workers = 2
"""


def treatments(text):
    return treatments_of(parse_study(text))


@pytest.mark.parametrize("direct", [True, False])
def test_what_the_front_end_says_of_tests_is_what_the_builder_makes_of_them(direct):
    """Two ways to the same facts: the table of names, and the description that is performed."""
    level = str(direct).lower()
    (found,) = [t for t in treatments(STUDY.format(tests=EVERY)) if t.effective["direct"] == level]
    request = {
        "tests": [test.name for test in TESTS],
        "file_bytes": 1 << 20,
        "io_size_bytes": 4096,
        "workers": 2,
        "engine": "psync",
        "access": "direct" if direct else "plain",
        "seed": 1,
    }
    text = _core.iozone_workload(json.dumps(request))
    described = {one.id: one for one in operations_of_description(text)}
    for one in operations_of(found.workload, found.effective):
        if one.kind == "mixed":
            parts = [described[f"{one.id}/{part}"] for part in ("readers", "writers")]
            assert [part.kind for part in parts] == ["read", "write"]
            assert {part.access for part in parts} == {one.access}
            continue
        other = described[one.id]
        assert (one.kind, one.reads, one.writes) == (other.kind, other.reads, other.writes)
        assert (one.access, one.io_size_bytes) == (other.access, other.io_size_bytes), one.id


def test_streams_are_what_they_say_not_what_they_are_called():
    text = """
testbed = "dir:/x"
[settings]
engine = "mmap"
direct = false
[[workloads]]
kind = "mixed"
duration = "1s"
[[workloads.streams]]
name = "write"
direction = "read"
record_size = "8k"
file_size = "1m"
[[workloads.streams]]
name = "read"
direction = "30%"
record_size = "4k"
file_size = "1m"
"""
    (found,) = treatments(text)
    assert operations_of(found.workload, found.effective) == (
        Operation("write", "read", True, False, 8192, "mapped"),
        Operation("read", "mixed", True, True, 4096, "mapped"),
    )
    # Without levels nobody knows how the bytes go.
    assert {one.access for one in operations_of(found.workload)} == {None}


def test_what_another_program_calls_a_test_is_not_one_of_iozones():
    text = json.dumps(
        json.loads(_core.dialect_parse("bonnie++", ["-d", "/x", "-s", "1", "-r", "0"]))["rows"][0][
            "workload"
        ]
    )
    found = {one.id: one.kind for one in operations_of_description(text)}
    assert found["rewrite"] == "update"
    assert found["seeks"] == "update"
    assert found["seq_create"] == "name"
