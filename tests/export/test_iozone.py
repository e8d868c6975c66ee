"""IOzone command lines: the options of lines that the real program was run with, and the notes."""

import getopt
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.export.iozone import iozone_lines, iozone_script
from iolab.study.workloads import IOZONE_TESTS

GOLDEN = Path(__file__).parent.parent / "golden" / "iozone" / "command-lines.txt"
REAL = dict(
    line.split(": ", 1)
    for line in GOLDEN.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
# IOzone's own getopt string, of the options that the golden lines have; `-+x` has an argument.
OPTIONS = "i:r:s:f:t:j:b:IowTBGRCceEa+:"
REPORTING = {"-R", "-C", "-b", "-E"}
"""Options that change what is printed, not what is done."""


def parsed(line):
    """Options of a command line as a set; test files by their number, sizes in KiB."""
    program, *words = shlex.split(line)
    assert program == "iozone"
    if "-F" in words:
        place = words.index("-F")
        count = int(words[words.index("-t") + 1])
        files = words[place + 1 : place + 1 + count]
        assert len(set(files)) == count
        del words[place : place + 1 + count]
    options, rest = getopt.getopt(words, OPTIONS)
    assert rest == []
    found = set()
    for option, value in options:
        if option in ("-s", "-r"):
            value = in_kib(value)
        if option != "-f" and option not in REPORTING:
            found.add((option, value))
    return found


def in_kib(text):
    units = {"k": 1, "m": 1024, "g": 1024 * 1024}
    return int(text[:-1]) * units[text[-1].lower()]


def commands(item):
    return [line for line in iozone_lines(item) if not line.startswith("#")]


def command_of(exported, tests, **settings):
    items = exported({"tests": tests}, settings=settings)
    (line,) = commands(items[0])
    return line


BOTH = ["write", "rewrite"]
READS = ["read", "reread"]
RANDOM = ["random-read", "random-write"]


@pytest.mark.parametrize(
    ("golden", "without", "tests", "settings"),
    [
        ("odsync", {"-I"}, BOTH, {"record_size": "64k", "durability": "dsync"}),
        (
            "flags_c_e_o",
            {"-I"},
            BOTH + READS + RANDOM,
            {"record_size": "16k", "durability": "sync", "fsync": "timed"},
        ),
        ("t2_threads", {"-I"}, ["write", "read"], {"record_size": "16k", "workers": 2}),
        (
            "t2_ce",
            {"-I", "-T"},
            ["write", "read"],
            {"record_size": "16k", "workers": 2, "fsync": "timed"},
        ),
        ("excel_direct_t1", set(), BOTH + READS + RANDOM, {"record_size": "8k", "file_size": "8m"}),
    ],
)
def test_lines_are_those_the_real_program_understood(exported, golden, without, tests, settings):
    """Same options and values; `without` are ours that the golden line lacks on purpose."""
    ours = parsed(command_of(exported, tests, **{"file_size": "256k"} | settings))
    ours = {(option, value) for option, value in ours if option not in without}
    # Closing is timed in some golden lines, fwrite and "one child" are tests of their own.
    left_out = {("-c", ""), ("-i", "6"), ("-t", "1")}
    assert ours == parsed(REAL[golden]) - left_out


def test_a_stride_has_its_option(exported):
    items = exported(
        {"tests": [*BOTH, "stride-read"], "stride": 5},
        settings={"record_size": "16k", "file_size": "256k", "direct": "false", "cache": "as_is"},
    )
    (line,) = commands(items[0])
    assert parsed(line) == parsed(REAL["stride_j"])


def test_retests_that_nobody_wants_are_left_out(exported):
    line = command_of(
        exported,
        ["write", "read", *RANDOM, "backward-read", "record-rewrite", "stride-read"],
        file_size="256k",
        record_size="16k",
        direct="false",
        cache="as_is",
    )
    real = parsed(REAL["noretest"])
    assert real <= parsed(line)
    assert {option for option, _ in parsed(line) - real} == {"-i", "-j"}


def test_a_cold_cache_splits_a_treatment_into_commands_that_keep_the_file(exported):
    items = exported(
        {"tests": ["write", "rewrite", *READS]},
        settings={"direct": "false", "record_size": "16k", "file_size": "64k"},
    )
    lines = iozone_lines(items[0])
    first, second, third = commands(items[0])
    real_first, real_second = REAL["reuse_w"].split("; ")
    assert parsed(first) == parsed(real_first)
    assert parsed(second) == parsed(real_second) | {("-+", "n")}
    assert parsed(third) == parsed(second) - {("-w", "")}
    drop = "# $ sync; echo 3 > /proc/sys/vm/drop_caches"
    assert lines.count(drop) == 2
    assert lines.index(first) < lines.index(drop) < lines.index(second)
    names = {re.search(r"-f (\S+)", line)[1] for line in (first, second, third)}
    assert names == {"iozone.0"}


def test_a_warm_cache_is_read_before(exported):
    items = exported({"tests": ["read"]}, settings={"direct": "false", "cache": "warm"})
    lines = iozone_lines(items[0])
    assert "# $ cat iozone.0 > /dev/null" in lines
    write, read = commands(items[0])
    assert ("-i", "0") in parsed(write)
    assert ("-w", "") in parsed(write)
    assert {value for option, value in parsed(read) if option == "-i"} == {"1"}


def test_what_comes_along_unasked_is_said(exported):
    items = exported({"tests": ["random-read"]})
    text = "\n".join(iozone_lines(items[0]))
    assert "no equivalent: laying the file out, untimed: here test 0 of IOzone does." in text
    assert "IOzone also runs random-write." in text


def test_several_workers_have_a_file_each(exported):
    line = command_of(exported, ["write", "read"], workers=3, workers_as="processes")
    assert line.endswith("-t 3 -F iozone.0 iozone.1 iozone.2")
    assert "-T" not in line.split()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "io_uring"}, "engine io_uring"),
        ({"engine": "io_uring", "depth": 8}, "engine io_uring"),
        ({"record_size": "512"}, "sizes that are no multiple of 1 KiB"),
        ({"record_size": "32m", "file_size": "64m"}, "records above 16 MiB"),
    ],
)
def test_what_iozone_cannot_do_is_said_and_not_written(exported, settings, message):
    items = exported(settings=settings)
    assert commands(items[0]) == []
    assert f"no equivalent: {message}" in iozone_lines(items[0])[-1]


def test_a_mix_of_streams_has_no_command(exported):
    stream = {
        "name": "a",
        "direction": "read",
        "pattern": "uniform",
        "record_size": "4k",
        "file_size": "1m",
    }
    items = exported(workloads=[{"kind": "mixed", "duration": "1s", "streams": [stream]}])
    assert commands(items[0]) == []
    assert "a mix of streams" in iozone_lines(items[0])[-1]


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"engine": "psync"}, "engine psync"),
        ({"fsync": "none"}, "no fsync at all"),
        ({"durability": "sync", "workers": 2}, "with -t IOzone's reads have it too"),
        ({}, "incompressible data"),
        ({"memory_limit": "64m"}, "memory_limit; run IOzone in a control group"),
    ],
)
def test_differences_are_said(exported, settings, note):
    items = exported(settings=settings)
    (line,) = [line for line in iozone_lines(items[0]) if note in line]
    assert line.startswith("# no equivalent: ")


def test_engine_sync_is_iozones_own(exported):
    items = exported(settings={"engine": "sync"})
    assert not any("engine" in line for line in iozone_lines(items[0]) if "equivalent" in line)


def test_mmap_has_its_option(exported):
    (item, *_) = exported()
    mapped = replace(item, workload={**item.workload, "engine": "mmap"})
    (line,) = commands(mapped)
    assert ("-B", "") in parsed(line) & parsed(REAL["mmap_B_G"])


def test_tests_of_other_calls_have_their_numbers(exported):
    tests = ["write", "fwrite", "fread", "pwrite", "pread", "pwritev"]
    items = exported({"tests": tests}, settings={"direct": "false", "cache": "as_is"})
    (line,) = commands(items[0])
    assert {value for option, value in parsed(line) if option == "-i"} == {"0", "6", "7", "9", "10"}
    assert "-E" in line.split()
    text = "\n".join(iozone_lines(items[0]))
    assert "no equivalent: pwritev: few builds of IOzone have these tests." in text


def test_a_test_that_makes_its_file_needs_no_layout(exported):
    items = exported({"tests": ["pwrite", "pread"]}, settings={"engine": "sync"})
    (line,) = commands(items[0])
    assert {value for option, value in parsed(line) if option == "-i"} == {"9", "10"}
    assert not any("laying the file out" in line for line in iozone_lines(items[0]))


def test_the_mix_is_test_eight_of_throughput_mode(exported):
    items = exported({"tests": ["write", "mix"]}, settings={"workers": 3})
    (line,) = commands(items[0])
    assert {("-i", "0"), ("-i", "8"), ("-t", "3")} <= parsed(line)
    assert line.endswith("-F iozone.0 iozone.1 iozone.2")


@pytest.mark.parametrize(
    ("lock", "option"),
    [("whole_file", "-W"), ("record", "-+l")],
)
def test_locks_have_options(exported, with_fields, lock, option):
    (line,) = commands(with_fields(exported()[0], lock=lock))
    assert option in line.split()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fsync_every": 3}, "a flush after every 3 writes"),
        ({"preallocate": "true"}, "blocks allocated before the file is written"),
    ],
)
def test_other_calls_have_no_command(exported, settings, message):
    items = exported(settings=settings)
    assert commands(items[0]) == []
    assert f"no equivalent: {message}." in iozone_lines(items[0])[-1]


def test_no_text_of_a_study_can_become_a_command(exported):
    (item, *_) = exported()
    evil = replace(item, name="x\nreboot", environment=("a\nreboot",))
    script = iozone_script([evil], "s\nreboot")
    assert [line for line in script.splitlines() if line and not line.startswith("#")] == commands(
        item
    )


def test_a_script_is_as_agreed(exported, golden):
    items = exported(
        {"tests": [test for test in IOZONE_TESTS if test != "mix"]}, settings={"direct": "false"}
    )
    golden("export/iozone.sh", iozone_script(items, "s"))
