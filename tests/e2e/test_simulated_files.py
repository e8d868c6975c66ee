"""Commands on simulated file systems: what their users type first works, or says why not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import Run

_STACK = """\
name = "small"

[device]
like = "fixed-100us"
name = "small"
title = "A small device"
parameters = {{ capacity = 4194304, latency = {latency} }}

[files]
fs = "{fs}"
{more}
"""


def _stack(folder: Path, fs: str, more: str = "", latency: int = 100) -> str:
    (folder / "small.toml").write_text(_STACK.format(fs=fs, more=more, latency=latency))
    return f"sim:{folder / 'small.toml'}"


@pytest.mark.parametrize("fs", ["ext2", "ext3", "ext4", "xfs"])
@pytest.mark.parametrize("engine", ["psync", "mmap"])
def test_a_writing_job_runs_whether_or_not_files_can_be_allocated(
    iolab: Run, tmp_path: Path, fs: str, engine: str
) -> None:
    # fio asks for blocks in advance, and goes on where ext2 and ext3 have none to give.
    job = ("--name=w", "--rw=write", "--bs=64k", "--size=1m", f"--ioengine={engine}")
    done = iolab("fio", "--on", _stack(tmp_path, fs), "--out", tmp_path / "run", *job)
    assert done.returncode == 0, done.stderr
    assert "WRITE: bw=" in done.stdout, done.stdout


def test_write_back_of_a_range_is_begun(iolab: Run, tmp_path: Path) -> None:
    job = ("--name=w", "--rw=write", "--bs=4k", "--size=1m", "--sync_file_range=write:16")
    done = iolab("fio", "--on", _stack(tmp_path, "ext4"), "--out", tmp_path / "run", *job)
    assert done.returncode == 0, done.stderr


def test_a_device_slower_than_the_journals_clock_is_waited_for(iolab: Run, tmp_path: Path) -> None:
    job = ("--name=w", "--rw=write", "--bs=64k", "--size=4m", "--end_fsync=1")
    stack = _stack(tmp_path, "ext3", latency=6_000_000)
    done = iolab("fio", "--on", stack, "--out", tmp_path / "run", *job, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_the_stack_says_of_its_file_system_holds_for_a_study_that_names_it(
    iolab: Run, tmp_path: Path
) -> None:
    stack = _stack(tmp_path, "ext4", 'mount_options = ["nodelalloc"]')
    words = ("--test", "write", "--file-size", "1m", "--record-size", "64k", "--rounds", "1")
    values = set[str]()
    for name, more in (("own", ()), ("named", ("--fs", "ext4"))):
        on = ("--on", stack, "--buffered", "--out", tmp_path / name)
        done = iolab("compare", *on, *words, *more)
        assert done.returncode == 0, done.stderr
        values.add(iolab("export", tmp_path / name, "--csv").stdout)
    assert len(values) == 1


def test_equal_throughput_beside_another_latency_is_no_equal_decision(
    iolab: Run, tmp_path: Path
) -> None:
    words = ("--mount-options", "defaults", "--mount-options", "nodelalloc", "--test", "write")
    more = ("--fsync-every", "1", "--file-size", "8m", "--rounds", "3", "--buffered")
    run = tmp_path / "run"
    on = ("--on", "sim:sata7200-4tb", "--fs", "ext4")
    done = iolab("compare", *on, "--out", run, *words, *more)
    assert done.returncode == 0, done.stderr
    told = iolab("report", run, "--full").stdout
    assert "p99 latency" in told, told
    assert "Besides in iozone" not in told, "its workers wait for flushes"
    assert "the model decided the same" not in told, told


@pytest.mark.parametrize(
    ("more", "words", "told"),
    [
        ('memory = "80t"', (), "write a smaller `memory` in [files]"),
        ("", ("--memory-limit", "8m"), "memory limit 8m: is too small for a simulation"),
        ('mount_options = ["commit=5s"]', (), "must be a number from 0 to 3600"),
        ('mount_options = ["delalloc", "nodelalloc"]', (), "delalloc and nodelalloc at once"),
        ('mount_options = "noatime"', (), 'write a list, as in ["noatime"]'),
        ("", ("--knob", "vm.dirty_bytes=1"), "is less than two pages"),
    ],
)
def test_what_cannot_be_made_is_named_by_its_key(
    iolab: Run, tmp_path: Path, more: str, words: tuple[str, ...], told: str
) -> None:
    usual = ("--test", "write", "--file-size", "1m", "--rounds", "1", "--buffered")
    stack = _stack(tmp_path, "ext4", more)
    done = iolab("compare", "--on", stack, "--out", tmp_path / "run", *usual, *words)
    assert done.returncode == 1, done.stdout
    assert told in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_room_that_ext3_cannot_make_in_advance_is_refused_where_it_is_asked_for(
    iolab: Run, tmp_path: Path
) -> None:
    usual = ("--test", "write", "--file-size", "1m", "--rounds", "1", "--buffered", "--fs", "ext3")
    on = ("--on", _stack(tmp_path, "ext3"), "--out", tmp_path / "run")
    done = iolab("compare", *on, *usual, "--preallocate")
    assert done.returncode == 1, done.stdout
    assert "ext3, which cannot allocate without writing" in done.stderr, done.stderr


@pytest.mark.parametrize("fs", ["none", "ext2", "ext3", "ext4", "xfs", "ufs", "vxfs", "qfs", "zfs"])
def test_what_is_read_is_what_was_written_and_no_time_depends_on_looking(
    iolab: Run, tmp_path: Path, fs: str
) -> None:
    work = ("--test", "write,rewrite,read,random-read,random-write", "--file-size", "3m")
    more = ("--record-size", "4k,100k", "--workers", "2", "--rounds", "1")
    where = ("--direct",) if fs == "none" else ("--fs", fs, "--buffered", "--memory-limit", "16m")
    tables = list[list[str]]()
    for verify in ("none", "headers", "full"):
        out = tmp_path / verify
        on = ("--on", "sim:fixed-100us", "--verify", verify, "--out", out)
        done = iolab("compare", *on, *where, *work, *more)
        assert done.returncode == 0, done.stderr
        rows = [line.split(",") for line in iolab("export", out, "--csv").stdout.splitlines()]
        told = "what was read was checked against what was written: no difference"
        assert (told in " ".join(done.stdout.split())) == (verify != "none")
        # The order of trials is drawn anew.
        tables.append(sorted(",".join(row[4:]) for row in rows[1:]))
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]) > 20


@pytest.mark.parametrize("verify", ["crc32c", "pattern"])
def test_fio_verifies_simulated_files(iolab: Run, tmp_path: Path, verify: str) -> None:
    job = ("--name=w", "--rw=randwrite", "--bs=4k", "--size=1m", f"--verify={verify}")
    more = ("--verify_pattern=0x5a",) if verify == "pattern" else ()
    stack = _stack(tmp_path, "xfs")
    done = iolab("fio", "--on", stack, "--out", tmp_path / "run", *job, *more)
    assert done.returncode == 0, done.stderr
    assert "READ: bw=" in done.stdout, done.stdout


def test_iozone_verifies_simulated_files(iolab: Run, tmp_path: Path) -> None:
    line = ("-a", "-s", "1m", "-r", "16k", "-V", "7", "-w")
    done = iolab("iozone", "--on", _stack(tmp_path, "ext4"), "--out", tmp_path / "run", *line)
    assert done.returncode == 0, done.stderr


def test_data_for_which_there_is_no_memory_are_not_kept(iolab: Run, tmp_path: Path) -> None:
    line = ("--file-size", "3t", "--record-size", "1m", "--test", "write", "--verify", "full")
    on = ("--on", "sim:sata7200-4tb", "--direct", "--out", tmp_path / "run")
    done = iolab("compare", *on, *line)
    assert done.returncode == 1, done.stdout
    assert "keeps the data of all files in memory: 3t" in done.stderr
    assert not (tmp_path / "run").exists()


_ZEROING = """\
[[file_sets]]
name = "data"
files = 1
file_bytes = 1048576

[[tenants]]
name = "one"

[tenants.program]
limit = { passes = 9 }

[[tenants.program.steps]]
id = "clear"
does = "zero"
file = { by = "next", set = "data" }
at = { pick = "uniform", unit = "4k" }
size = 4096
"""


@pytest.mark.parametrize("fs", ["ext2", "ext3", "ext4", "xfs", "ufs", "vxfs", "qfs", "zfs"])
def test_a_range_is_cleared_where_that_is_possible_and_refused_before_it_runs(
    iolab: Run, tmp_path: Path, fs: str
) -> None:
    (tmp_path / "zeroing.toml").write_text(_ZEROING)
    work = ("--workload", tmp_path / "zeroing.toml", "--rounds", "1", "--out", tmp_path / "run")
    done = iolab("compare", "--on", _stack(tmp_path, fs), *work)
    if fs in {"ext4", "xfs"}:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1, done.stdout
        assert "a range is cleared without writing on ext4 and xfs alone" in done.stderr
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("fs", ["ext2", "ext4", "xfs", "ufs", "zfs"])
def test_mapped_files_of_an_engine_are_mapped(iolab: Run, tmp_path: Path, fs: str) -> None:
    tables = list[list[str]]()
    for words in ((), ("-B",)):
        line = ("-s", "1m", "-r", "16k", "-i", "0", "-i", "1", *words)
        stack = _stack(tmp_path, fs)
        done = iolab("iozone", "--on", stack, "--out", tmp_path / f"run{len(tables)}", *line)
        assert done.returncode == 0, done.stderr
        rows = done.stdout.splitlines()
        tables.append([row for row in rows if row.split()[:2] == ["1024", "16"]])
    assert len(tables[0]) == 1
    assert tables[0] != tables[1], "faults are no system calls"


def test_engines_are_compared_in_simulation_where_their_files_differ(
    iolab: Run, tmp_path: Path
) -> None:
    line = ("--fs", "ext4", "--buffered", "--test", "write,random-read", "--file-size", "1m")
    on = ("compare", "--on", "sim:fixed-100us", *line, "--rounds", "1")
    done = iolab(*on, "--engine", "psync,mmap", "--out", tmp_path / "different")
    assert done.returncode == 0, done.stderr
    done = iolab(*on, "--engine", "psync,io_uring", "--out", tmp_path / "alike")
    assert done.returncode == 1
    assert "psync and io_uring cannot be compared" in done.stderr
    done = iolab("compare", "--on", "sim:fixed-100us", "--engine", "mmap", "--test", "read")
    assert done.returncode == 1
    assert "without a file system" in done.stderr


_CUT_WHILE_MAPPED = """\
[[file_sets]]
name = "d"
files = 1
file_size = "160k"

[[tenants]]
name = "w"

[tenants.program]
limit = { ops = 300 }

[[tenants.program.steps]]
does = "write"
path = "mapped"
file = { by = "existing", set = "d" }
at = { pick = "uniform", unit = "4k" }
size = "8k"

[[tenants.program.steps]]
does = "truncate"
file = { by = "existing", set = "d" }
size = "80k"
"""
_READERS_OF_A_SPARSE_FILE = """\
verify = "full"

[[file_sets]]
name = "d"
files = 1
file_size = "1m"
fill = "sparse"

[[tenants]]
name = "writer"
program.limit = { ops = 100 }
[[tenants.program.steps]]
does = "write"
path = "direct"
file = { by = "existing", set = "d" }
at = { pick = "uniform", unit = "8k" }
size = "8k"

[[tenants]]
name = "readers"
workers = 4
program.limit = { ops = 50 }
[[tenants.program.steps]]
does = "read"
path = "direct"
file = { by = "existing", set = "d" }
at = { pick = "uniform", unit = "256k" }
size = "256k"
"""


@pytest.mark.parametrize("fs", ["ext3", "ext4", "xfs", "ufs"])
def test_a_store_behind_the_end_of_a_mapped_file_fails_as_in_the_kernel(
    iolab: Run, tmp_path: Path, fs: str
) -> None:
    (tmp_path / "cut.toml").write_text(_CUT_WHILE_MAPPED)
    small = ("--mkfs-options", "-b 1024") if fs.startswith("ext") else ()
    work = ("--workload", tmp_path / "cut.toml", "--rounds", "1", "--out", tmp_path / "run")
    done = iolab("compare", "--on", "sim:fixed-100us", "--fs", fs, *small, *work)
    assert done.returncode == 1, done.stdout
    assert "Input/output error" in done.stderr
    assert "a mapped file was cut" in done.stderr


@pytest.mark.parametrize("fs", ["ext2", "ext4", "xfs", "ufs", "zfs"])
def test_a_read_that_races_the_first_write_may_find_nothing(
    iolab: Run, tmp_path: Path, fs: str
) -> None:
    (tmp_path / "sparse.toml").write_text(_READERS_OF_A_SPARSE_FILE)
    work = ("--workload", tmp_path / "sparse.toml", "--rounds", "1", "--out", tmp_path / "run")
    done = iolab("compare", "--on", "sim:fixed-100us", "--fs", fs, *work)
    assert done.returncode == 0, done.stderr


def test_the_rest_of_a_list_is_told_by_its_own_word(iolab: Run, tmp_path: Path) -> None:
    work = ("--test", "write,read", "--file-size", "8m", "--record-size", "4k", "--buffered")
    on = ("--on", "sim:sata-2009", "--fs", "ext2,ext3,ufs,vxfs,qfs,zfs", "--rounds", "3")
    done = iolab("compare", *on, *work, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    told = " ".join(iolab("report", tmp_path / "run", "--full").stdout.split())
    # The three largest differences have both signs, the other two levels are worse.
    assert "qfs is 2.0 times as fast" in told, told
    assert "2 more worse." in told, told


def test_what_nobody_read_was_not_checked(iolab: Run, tmp_path: Path) -> None:
    work = ("--test", "write", "--file-size", "1m", "--verify", "full", "--rounds", "1")
    done = iolab("compare", "--on", "sim:fixed-100us", *work, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "nothing was read, and so nothing was checked against what was written" in told, told


def test_what_could_not_have_shown_is_not_called_equal(iolab: Run, tmp_path: Path) -> None:
    words = ("--mount-options", "data=writeback", "--mount-options", "data=ordered")
    work = ("--fs", "ext3", "--test", "write,read", "--file-size", "8m", "--record-size", "4k")
    on = ("--on", "sim:sata-2009", *work, *words, "--buffered", "--rounds", "3")
    done = iolab("compare", *on, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    told = " ".join(iolab("report", tmp_path / "run", "--full").stdout.split())
    assert "withheld: the page cache was the limit" in told, told
    assert "iozone, buffered I/O, memory: all levels are equally good" not in told, told


def _rates(out: str) -> list[float]:
    """IOPS of the reads and writes that fio's output tells."""
    return [
        float(number) * {"k": 1e3, "": 1.0}[unit]
        for number, unit in re.findall(r"IOPS=([\d.]+)(k?)", out)
    ]


def test_buffered_libaio_has_one_transfer_under_way(iolab: Run, tmp_path: Path) -> None:
    """The kernel waits in io_submit(2); 32 were under way, and "depth 32 is 8 times as fast"."""
    stack = _stack(tmp_path, "ext4")
    words = ("--name=a", "--rw=randread", "--bs=4k", "--size=4m", "--ioengine=libaio")
    shallow, deep, direct = (
        _rates(iolab("fio", "--on", stack, *words, *more).stdout)[0]
        for more in (("--iodepth=1",), ("--iodepth=32",), ("--iodepth=32", "--direct=1"))
    )
    assert deep == shallow
    assert direct > 4 * shallow


def test_a_reader_finds_what_a_writer_of_the_same_file_has_not_made(
    iolab: Run, tmp_path: Path
) -> None:
    """Fio lays files out for every job before any begins; the reader met the end of the file."""
    job = tmp_path / "z.fio"
    head = "[global]\nfilename=db\nsize=1m\nfallocate=none\nbs=4k\n"
    job.write_text(f"{head}[writer]\nrw=randwrite\n[reader]\nrw=randread\n", encoding="utf-8")
    done = iolab("fio", "--on", _stack(tmp_path, "ext4"), job)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("err= 0") == 2
    assert done.stdout.count("io=1024KiB") == 2


def test_verified_files_are_opened_again_and_their_pages_written(
    iolab: Run, tmp_path: Path
) -> None:
    """The reads began in memory that no device had seen: a device that fails was not noticed."""
    words = ("--name=a", "--rw=write", "--bs=4k", "--size=4m", "--verify=crc32c")
    faults = '[[faults]]\nof = "write"\nerror = "EIO"\nafter_ops = 0\ntimes = 1\n'
    for more, code in (("", 0), (faults, 1)):
        stack = _stack(tmp_path, "xfs", more)
        done = iolab("fio", "--on", stack, *words)
        assert done.returncode == code, done.stderr


@pytest.mark.parametrize("fs", ["ext3", "ext4"])
def test_barriers_are_named_as_in_an_fstab(iolab: Run, tmp_path: Path, fs: str) -> None:
    def rate(option: str) -> float:
        stack = _stack(tmp_path, fs, f'mount_options = ["{option}"]\n')
        words = ("--name=a", "--rw=write", "--bs=4k", "--size=256k", "--fsync=1")
        done = iolab("fio", "--on", stack, *words)
        assert done.returncode == 0, done.stderr
        return _rates(done.stdout)[0]

    assert rate("barrier=0") == rate("nobarrier")
    assert rate("barrier=1") == rate("barrier")


def test_slices_of_a_job_that_flushes_count_its_transfers(iolab: Run, tmp_path: Path) -> None:
    """Each fsync counted as an I/O: "IOPS=28" stood above "avg=56.56"."""
    words = ("--name=a", "--rw=randwrite", "--bs=4k", "--size=2m", "--fsync=1")
    out = iolab("fio", "--on", _stack(tmp_path, "ext4", latency=5000), *words).stdout
    found = re.search(r"iops +:.* avg=([\d.]+)", out)
    assert found is not None
    assert float(found[1]) == pytest.approx(_rates(out)[0], rel=0.1)


def test_a_cold_read_has_seen_nothing_before(iolab: Run, tmp_path: Path) -> None:
    """IOzone reads record 0 first, with one worker alone: two "were 1/21 as fast"."""
    words = ("--buffered", "--fs", "ext4", "--cache", "cold", "--test", "read", "--rounds", "3")
    size = ("--record-size", "1m", "--file-size", "1m", "--workers", "1,2", "--out", tmp_path / "o")
    done = iolab("compare", "--on", "sim:fixed-100us", *words, *size)
    assert done.returncode == 0, done.stderr
    verdict = json.loads((tmp_path / "o/verdict.json").read_text(encoding="utf-8"))
    assert verdict["pooled"][0]["effect"]["ratio"] > 0.5


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--engine", "mmap,sync", "--direct"), "engine mmap always goes through the page cache"),
        (
            ("--flush", "fsync,msync", "--fsync-every", "4", "--buffered"),
            "msync flushes a mapped file, and engine psync maps none",
        ),
    ],
)
def test_engines_without_mappings_or_past_the_cache_are_refused(
    iolab: Run, tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    asked = ("--test", "write", "--file-size", "1m", "--out", tmp_path / "o")
    done = iolab("compare", "--on", _stack(tmp_path, "ext4"), *words, *asked)
    assert done.returncode == 1
    assert part in " ".join(done.stderr.split())
    assert not (tmp_path / "o").exists()


def test_threads_of_the_simulated_kernel_have_names(iolab: Run, tmp_path: Path) -> None:
    words = ("--name=a", "--rw=write", "--bs=4k", "--size=64k", "--fsync=1", "--trace")
    done = iolab("fio", "--on", _stack(tmp_path, "ext4"), *words, "--out", tmp_path / "o")
    assert done.returncode == 0, done.stderr
    (trace,) = (tmp_path / "o/traces").iterdir()
    told = iolab("trace", "summary", trace).stdout
    assert "process    simulated fs-0 (" in told
    assert "process    simulated 1 (1)" in told


def test_data_that_an_injected_failure_lost_are_no_fault_of_the_simulator(
    iolab: Run, tmp_path: Path
) -> None:
    faults = '[[faults]]\nof = "write"\nerror = "EIO"\nafter_ops = 6\ntimes = 1\n'
    job = tmp_path / "once.fio"
    job.write_text(
        "[global]\nfilename=f\nbs=64k\nsize=4m\nverify=crc32c\n"
        "[a]\nrw=write\nfsync=16\ncontinue_on_error=write\ndo_verify=0\n"
        "[b]\nstonewall\nrw=write\nverify_only\n",
        encoding="utf-8",
    )
    told = ""
    for fs in ("ext2", "ufs"):
        stack = _stack(tmp_path, fs, 'memory = "16m"\n' + faults)
        told += iolab("fio", "--on", stack, job).stderr
    assert "report this" not in told
    assert "[[faults]] of the stack file have lost them" in told


def test_levels_that_promise_less_are_said_to(iolab: Run, tmp_path: Path) -> None:
    """sync_file_range was "242 times as fast" and "the best", and not one word of its promise."""
    line = ("--test", "write", "--file-size", "1m", "--fsync-every", "4", "--buffered")
    on = ("compare", "--on", "sim:fixed-100us", *line, "--rounds", "3")
    flushes = ("--fs", "ext4", "--flush", "fsync,sync_file_range")
    done = iolab(*on, *flushes, "--out", tmp_path / "flushes")
    assert "sync_file_range(2) flushes neither" in " ".join(done.stdout.split()), done.stdout
    done = iolab(*on, "--fs", "ext4,ufs", "--out", tmp_path / "systems")
    assert "ufs leaves flushed data in" in " ".join(done.stdout.split()), done.stdout
    assert "Trade-off" not in done.stdout
