"""Places and lengths of fio's operations, as `write_iolog` of the real one recorded them.

Sequential orders are equal; of orders by chance their structure is: each block once per pass, runs
that follow on, as many operations. Of mixed jobs each direction is compared by itself, for which
operation reads and which writes is chance.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.e2e.test_fio import GOLDEN, fio

WORDS: Final = {"read": "rd", "write": "wr", "trim": "tr", "sync": "sy", "datasync": "da"}


class Op(NamedTuple):
    """An operation of a log."""

    kind: str
    file: str
    at: float
    length: float


def _rows() -> list[tuple[str, list[Op]]]:
    """Options of each row, and the operations of fio."""
    rows = []
    for line in (GOLDEN / "offset-sequences.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        options, told = line.split("=>")
        ops = []
        for word in told.split():
            name, _, range_ = word.partition(":")
            at, _, length = range_.partition("+")
            ops.append(Op(name[:2], name[2:], float(at), float(length)))
        rows.append((options.strip(), ops))
    return rows


def _logged(folder: Path) -> list[Op]:
    """The operations in our own log."""
    ops = []
    for path in sorted(folder.glob("log*")):
        for line in path.read_text().splitlines()[1:]:
            _, file, name, *numbers = line.split()
            if name in WORDS:
                at, length = (float(f"{int(number) / 1024:g}") for number in numbers)
                ops.append(Op(WORDS[name], file[3:], at, length))
    return ops


def _side(ops: list[Op], kind: str) -> list[Op]:
    return [op for op in ops if op.kind == kind]


def _is_in_order(ops: list[Op]) -> bool:
    """True if each begins where the one before ended, the first one at 0."""
    ends = [0.0, *(op.at + op.length for op in ops)]
    return all(op.at == end for op, end in zip(ops, ends, strict=False))


def _check_mixed(ours: list[Op], theirs: list[Op], options: str) -> None:
    sizes = {kind: _side(theirs, kind)[0].length for kind in ("rd", "wr")}
    for kind, size in sizes.items():
        assert _is_in_order(_side(ours, kind)), kind
        assert {op.length for op in _side(ours, kind)} == {size}
    moved = [sum(op.length for op in ops if op.kind in sizes) for ops in (ours, theirs)]
    assert abs(moved[0] - moved[1]) < max(sizes.values()), "as much in all"
    if "--fsync=2" in options:
        kinds = [op.kind for op in ours if op.kind != "rd"]
        assert "".join(kinds).startswith("wrwrsy")
        assert "wrwrwr" not in "".join(kinds)


def _check_random(ours: list[Op], theirs: list[Op], options: str) -> None:
    assert len(ours) == len(theirs)
    kinds = [op.kind for op in theirs]
    assert [op.kind for op in ours] == kinds
    if "--verify" in options:
        count = len(ours) // 2
        places = [op.at for op in ours]
        assert places[:count] == places[count:], "read in the order of the writes"
    if "randread:4" in options:
        step = 0 if "identical" in options else 4
        runs = [ours[first : first + 4] for first in range(0, len(ours), 4)]
        if step == 0:
            assert all(len({op.at for op in run}) == 1 for run in runs)
        else:
            follows = [b.at == a.at + step for a, b in pairwise(ours)]
            assert sum(follows) >= len(ours) // 2
    elif "norandommap" not in options and "--io_size" not in options:
        assert sorted(op.at for op in ours) == sorted(op.at for op in theirs), "each block once"


@pytest.mark.parametrize(("options", "theirs"), [pytest.param(*row, id=row[0]) for row in _rows()])
def test_operations_are_at_the_places_of_fio(
    tmp_path: Path, options: str, theirs: list[Op]
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    fio(folder, "--name=j", "--ioengine=null", "--write_iolog=log", *options.split())
    ours = _logged(folder)
    if "--rw=rw" in options:
        _check_mixed(ours, theirs, options)
    elif "rand" in options and "percentage_random=0" not in options:
        _check_random(ours, theirs, options)
    elif "bsrange" in options:
        assert _is_in_order(ours)
        assert sum(op.length for op in ours) == sum(op.length for op in theirs)
    elif "numjobs" in options:
        assert sorted(ours) == sorted(theirs), "fio has the clones one after the other"
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    ("more", "is_exact"),
    [
        (("--rw=randrw",), True),
        (("--rw=rw", "--rwmixread=70"), True),
        (("--rw=randrw", "--loops=3"), True),
        (("--rw=randrw", "--norandommap"), True),
        (("--rw=randwrite", "--nrfiles=4"), True),
        (("--rw=randwrite", "--bssplit=4k/50:8k/50"), True),
        (("--rw=randwrite", "--random_distribution=zipf:1.2"), True),
        (("--rw=randrw", "--nrfiles=4", "--bsrange=4k-16k"), False),
    ],
)
def test_what_a_job_wrote_is_read_back(
    tmp_path: Path, more: tuple[str, ...], is_exact: bool
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    words = ("--name=v", "--size=256k", "--bs=4k", "--verify=crc32c", "--output-format=json")
    for _ in range(2):  # The second run finds the files of the first.
        job = json.loads(fio(folder, *words, *more)[0])["jobs"][0]
        bare = json.loads(fio(folder, *words, *more, "--do_verify=0")[0])["jobs"][0]
        assert (job["error"], bare["error"]) == (0, 0)
        assert job["write"]["total_ios"] == bare["write"]["total_ios"] > 0
        again = job["read"]["total_ios"] - bare["read"]["total_ios"]
        assert again == (job["write"]["total_ios"] if is_exact else 64)


def test_a_flipped_byte_in_one_of_several_files_is_found_and_all_of_them_stay(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    words = ("--name=v", "--nrfiles=4", "--size=64k", "--verify=md5", "--output-format=json")
    fio(folder, *words, "--rw=write", "--do_verify=0")
    path = folder / "v.0.2"
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    out, err = fio(folder, *words, "--rw=read", code=5)
    assert json.loads(out)["jobs"][0]["error"] == 84
    assert "v.0.2" in err
    assert "byte 5000 is" in err
    assert sorted(file.name for file in folder.glob("v.*")) == [f"v.0.{k}" for k in range(4)]


@pytest.mark.parametrize("more", ["--bs=4k", "--bssplit=4k/50:8k/50"])
def test_what_was_in_a_file_before_is_no_fault_of_a_mixed_job(tmp_path: Path, more: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "f").write_bytes(random.Random(1).randbytes(256 << 10))
    words = ("--name=v", "--filename=f", "--rw=randrw", "--size=256k", "--verify=crc32c")
    out, _ = fio(folder, *words, more, "--overwrite=f", "--output-format=json")
    job = json.loads(out)["jobs"][0]
    assert job["error"] == 0
    assert job["read"]["total_ios"] >= 64
