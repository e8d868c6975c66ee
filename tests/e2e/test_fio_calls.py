"""System calls that options of `iolab fio` make, beside those that fio 3.33 was seen to make.

Each expectation was read from strace(1) of fio 3.33 with the same options.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from iolab import _core
from iolab.testbed.command import find_agent

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

F_GET_RW_HINT: Final = 1024 + 11
"""Of linux/fcntl.h; Python has it from 3.14 on."""
CALLS: Final = "pwrite64,pread64,fallocate,ftruncate,sync_file_range,fsync,fdatasync"
CALL: Final = re.compile(r"^\d+ +(\w+)\((\d+)(?:, (.*))?\) += ")


def calls_of(folder: Path, words: str, *, calls: str = CALLS) -> list[str]:
    """Calls on the job's file `f`, in order, from its opening on: name and arguments."""
    plan = json.loads(_core.dialect_parse("fio", ["--name=a", "--filename=f", *words.split()]))
    workload = plan["rows"][0]["workload"] | {"is_calibrated": False}
    trial = {"trial": "t1", "directory": str(folder), "workload": workload}
    log = folder.parent / "strace.txt"
    trace = f"trace=openat,{calls}"
    command = ["strace", "-f", "-s", "0", "-e", trace, "-o", str(log), str(find_agent()), "measure"]
    done = subprocess.run(
        command, input=json.dumps(trial) + "\n", capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1])["result"]["status"] == "ok"
    found: list[str] = []
    descriptors: set[str] = set()
    for line in log.read_text().splitlines():
        opened = re.search(r"openat\((.*)\) = (\d+)", line)
        if opened and '"./f"' in opened[1]:
            descriptors.add(opened[2])
        elif opened:  # A number that was free again.
            descriptors.discard(opened[2])
        call = CALL.match(line)
        if call and call[2] in descriptors:
            found.append(f"{call[1]} {call[3] or ''}".replace('""..., ', "").strip())
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of the job."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("native", "fallocate 0, 0, 16384"),
        ("posix", "fallocate 0, 0, 16384"),
        ("keep", "fallocate FALLOC_FL_KEEP_SIZE, 0, 16384"),
        ("truncate", "ftruncate 16384"),
        ("none", None),
    ],
)
def test_room_is_made_as_fallocate_says(folder: Path, value: str, call: str | None) -> None:
    found = calls_of(folder, f"--rw=write --size=16k --fallocate={value}")
    made = [one for one in found if one.split()[0] in ("fallocate", "ftruncate")]
    assert made == [call] * (call is not None)
    assert (folder / "f").stat().st_size == 16384


@pytest.mark.parametrize(
    ("value", "calls"),
    [
        ("write:2", ["0, 8192, SYNC_FILE_RANGE_WRITE", "8192, 8192, SYNC_FILE_RANGE_WRITE"]),
        ("wait_before:3", ["0, 12288, SYNC_FILE_RANGE_WAIT_BEFORE"]),
        (
            "wait_before,write:4",
            ["0, 16384, SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE"],
        ),
        (
            "wait_before,write,wait_after:4",
            [
                "0, 16384, SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE"
                "|SYNC_FILE_RANGE_WAIT_AFTER"
            ],
        ),
    ],
)
def test_ranges_are_synced_by_the_parts_that_are_named(
    folder: Path, value: str, calls: list[str]
) -> None:
    found = calls_of(folder, f"--rw=write --size=20k --sync_file_range={value}")
    assert [one.split(maxsplit=1)[1] for one in found if one.startswith("sync_file_range")] == calls


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        ("falloc --rw=write", ["fallocate 0, 0, 4096", "fallocate 0, 4096, 4096"]),
        (
            "falloc --rw=read",
            [f"fallocate FALLOC_FL_KEEP_SIZE, {at}, 4096" for at in (0, 4096)],
        ),
        (
            "falloc --rw=trim",
            [f"fallocate FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, {at}, 4096" for at in (0, 4096)],
        ),
        ("ftruncate --rw=write", ["ftruncate 0", "ftruncate 4096"]),
        ("falloc --rw=write --loops=2 --end_fsync=1", None),
    ],
)
def test_engines_of_blocks_and_lengths_make_fios_calls(
    folder: Path, words: str, calls: list[str] | None
) -> None:
    found = calls_of(folder, f"--size=8k --fallocate=none --ioengine={words}")
    if calls is None:
        passed = ["fallocate 0, 0, 4096", "fallocate 0, 4096, 4096", "fsync"]
        assert found[-6:] == passed * 2
    else:
        assert found[-2:] == calls


@pytest.mark.parametrize("many", ["", " --rw=write:0"])
def test_what_was_written_is_flushed_in_each_pass(folder: Path, many: str) -> None:
    found = calls_of(folder, "--size=8k --rw=write --fsync_on_close=1 --loops=2" + many)
    of = [one.split()[0] for one in found if one.split()[0] in ("pwrite64", "fsync")]
    assert of[of.index("pwrite64") :] == ["pwrite64", "pwrite64", "fsync"] * 2


def test_ranges_of_several_sizes_are_synced_too(folder: Path) -> None:
    words = "--rw=write --size=64k --bssplit=4k/50:8k/50 --sync_file_range=write:4"
    synced = [one for one in calls_of(folder, words) if one.startswith("sync_file_range")]
    assert len(synced) >= 2
    assert set(synced) == {"sync_file_range 0, 65536, SYNC_FILE_RANGE_WRITE"}


@pytest.mark.parametrize(
    ("words", "drops"),
    [
        ("--rw=read", 0),
        ("--rw=read --loops=3", 2),
        ("--rw=randread --loops=3", 2),
        ("--rw=read --io_size=192k", 2),
        ("--rw=randread --norandommap --loops=3", 0),
        ("--rw=read --ioengine=libaio --iodepth=4 --loops=3", 2),
        ("--rw=read --ioengine=io_uring --iodepth=4 --loops=3", 2),
        ("--rw=write --loops=3", 3),
        ("--rw=write", 1),
        ("--rw=randwrite --overwrite=1", 1),
        ("--rw=write --invalidate=0 --loops=3", 0),
        ("--rw=randread --bsrange=4k-8k --loops=3", 2),
        ("--rw=read --bssplit=4k/50:8k/50 --loops=3", 2),
        ("--rw=randread --random_distribution=zipf:1.2 --loops=3", 0),
    ],
)
def test_the_cache_is_dropped_between_passes(folder: Path, words: str, drops: int) -> None:
    """Before the first pass of what reads it is the front end that drops them."""
    found = calls_of(folder, f"--size=64k {words}", calls="fadvise64")
    assert [one.split(", ")[-1] for one in found].count("POSIX_FADV_DONTNEED") == drops


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--rw=randread", ["POSIX_FADV_RANDOM"]),
        ("--rw=read", ["POSIX_FADV_SEQUENTIAL"]),
        ("--rw=read --bsrange=4k-8k", ["POSIX_FADV_SEQUENTIAL"]),
        ("--rw=read --fadvise_hint=0", []),
    ],
)
def test_the_kernel_is_told_of_the_order(folder: Path, words: str, advice: list[str]) -> None:
    found = calls_of(folder, f"--size=64k {words}", calls="fadvise64")
    told = [one.split(", ")[-1] for one in found if "DONTNEED" not in one]
    assert told == advice


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("--rw=write --write_hint=short", 2),
        ("--rw=randwrite --direct=1 --write_hint=extreme", 5),
        ("--rw=write --bsrange=4k-8k --write_hint=none", 1),
        ("--rw=write", None),
        ("--rw=read --write_hint=long", None),
    ],
)
def test_the_kernel_is_told_how_long_data_will_live(
    folder: Path, words: str, number: int | None
) -> None:
    calls_of(folder, f"--size=64k {words}", calls="fcntl")
    log = (folder.parent / "strace.txt").read_text()
    # A strace that does not know the call prints its number.
    assert len(re.findall(r"fcntl\(\d+, (?:F_SET_RW_HINT|0x40c)\b", log)) == (number is not None)
    if number is not None:
        with (folder / "f").open("rb") as file:  # Its inode is in memory still.
            told = fcntl.fcntl(file, F_GET_RW_HINT, bytes(8))
        assert int.from_bytes(told, sys.byteorder) == number


@pytest.mark.parametrize(
    ("words", "locks"),
    [
        ("--rw=write --lockfile=exclusive", ["F_WRLCK", "F_UNLCK"] * 4),
        ("--rw=read --lockfile=exclusive", ["F_WRLCK", "F_UNLCK"] * 4),
        ("--rw=read --lockfile=readwrite", ["F_RDLCK", "F_UNLCK"] * 4),
    ],
)
def test_the_whole_file_is_locked_around_each_transfer(
    folder: Path, words: str, locks: list[str]
) -> None:
    found = calls_of(folder, f"--size=16k {words}", calls="fcntl")
    found = [one for one in found if "F_OFD_SETLK" in one]
    assert all("l_start=0, l_len=0" in one for one in found)
    # The last one is that of the close.
    assert re.findall(r"l_type=(\w+)", " ".join(found)) == [*locks, "F_UNLCK"]


def test_each_of_several_files_is_locked_around_its_transfers(folder: Path) -> None:
    """Before, `lockfile` was refused beside several files."""
    words = "--size=32k --filesize=16k --filename=g --bs=4k --lockfile=exclusive --rw=read"
    found = calls_of(folder, words, calls="fcntl")
    locks = re.findall(r"F_OFD_SETLK.*?l_type=(\w+)", "\n".join(found))
    # The last one is that of the close.
    assert locks == [*["F_WRLCK", "F_UNLCK"] * 4, "F_UNLCK"]


def test_workers_have_their_nice_value(folder: Path) -> None:
    calls_of(folder, "--rw=write --size=16k --nice=7", calls="setpriority")
    log = (folder.parent / "strace.txt").read_text()
    assert len(re.findall(r"setpriority\(PRIO_PROCESS, 0, 7\) += 0", log)) == 1


def test_a_file_that_is_mapped_is_laid_out_and_leaves_the_cache_before(folder: Path) -> None:
    calls = "fadvise64,mmap,pwrite64,fsync"
    found = calls_of(folder, "--rw=randwrite --size=16k --ioengine=mmap", calls=calls)
    log = (folder.parent / "strace.txt").read_text()
    assert (folder / "f").stat().st_blocks * 512 >= 16384, "no fault makes a block"
    drop = log.index("POSIX_FADV_DONTNEED")
    mapped = re.search(r"mmap\(NULL, 16384, PROT_\S+, MAP_SHARED", log)
    assert mapped is not None, found
    assert drop < mapped.start()


@pytest.mark.parametrize("workers", ["", "--thread"])
def test_jobs_of_several_engines_at_once_make_the_calls_of_each(folder: Path, workers: str) -> None:
    words = (
        f"--size=64k --rw=read --ioengine=pvsync {workers} --name=b --filename=g --size=64k "
        f"--rw=write --ioengine=libaio --direct=1 --iodepth=4 {workers} --name=c --filename=h "
        f"--size=64k --rw=read --ioengine=mmap {workers} --name=n --size=64k --ioengine=null "
        f"{workers}"
    )
    calls_of(folder, words, calls="preadv,io_submit,pread64,mmap,pwrite64")
    log = (folder.parent / "strace.txt").read_text()
    done = re.findall(r"(preadv|io_submit)(?:\(| resumed).*\) += (\d+)", log)
    assert sum(call == "preadv" and count == "4096" for call, count in done) == 16
    # One more call before the time begins.
    assert sum(int(count) for call, count in done if call == "io_submit") in (16, 17)
    assert re.search(r"mmap\(NULL, 65536, PROT_READ, MAP_\w+, \d", log)
    assert {path.name for path in folder.iterdir()} == {"f", "g", "h"}
