"""A result is told as what was done, whatever it is called. Issue 15, section Why.

Symptoms, seen on the command line: direct I/O of `iozone -I` and `bonnie++ -D -f` was told as
buffered; bonnie++ was stored as iozone; a stream of direct reads called ``fread`` was told as
buffered, one called ``write`` that only reads was measured by the promise for writing, one called
``mine`` got no bound; streams of 512 B and 1 MiB were stored and bounded as 512 B. Cause: names
decided, and a factor that was made up for single runs.
"""

import dataclasses
import io
import json
import re
import tomllib
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store

STREAMS = """
name = "named"
testbed = "sim:fixed-100us"
seed = 5
rounds = 2
specification = { read = "40GB/s", write = "1MB/s" }
[factors]
driver_queue_depth = ["1", "8"]
[settings]
direct = true
[[workloads]]
name = "streams"
kind = "mixed"
duration = "5ms"
[[workloads.streams]]
name = "fread"
direction = "read"
record_size = "512"
file_size = "64k"
[[workloads.streams]]
name = "write"
direction = "read"
record_size = "1m"
file_size = "2m"
[[workloads.streams]]
name = "mine"
direction = "write"
record_size = "4k"
file_size = "64k"
"""


@pytest.fixture
def iolab(monkeypatch, tmp_path):
    """Run one command in an empty directory; it must succeed."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        assert main(list(arguments), console=Console(out, err)) == 0, err.getvalue()
        return " ".join(out.getvalue().split())

    return run


def details(directory):
    """Stored details of the operations: kind, way to the data, size."""
    with Store.open_reader(Path(directory) / "study.db") as store:
        data = store.load_data()
    natures = {d["operation"]: dataclasses.astuple(d["nature"]) for d in data.phase_details}
    return data, natures


DIRECT = [
    (["iozone", "-I", "-i", "0", "-i", "1", "-s", "64k", "-r", "4k"], "write 36.9 MiB/s"),
    (["bonnie++", "-D", "-f", "-n", "0", "-s", "1", "-r", "0"], "put_block 73.7 MiB/s"),
]


def without_scope(text):
    """Text without what was not tested, which names the other way to open files."""
    return re.sub(r"Not tested(: [^.]*\.|</dt><dd>.*?</dd>)", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "first"), DIRECT, ids=["iozone", "bonnie++"])
def test_direct_io_of_a_command_line_is_told_as_direct(iolab, command, first):
    iolab(*command, "--on", "sim:fixed-100us", "--out", "o")
    out = iolab("report", "o")
    assert f"One configuration, nothing compared: direct: {first}" in out
    assert "buffered" not in without_scope(out)
    page = Path("o/report.html").read_text(encoding="utf-8")
    assert "buffered" not in without_scope(page).replace("--buffered", "")
    verdict = json.loads(Path("o/verdict.json").read_text(encoding="utf-8"))
    assert {row["is_direct"] for row in verdict["treatments"]} == {True}
    assert (verdict["study"]["factors"], verdict["compared_factor"]) == ({}, "")


def test_bonnie_is_stored_as_bonnie_with_the_command_that_repeats_it(iolab):
    iolab(*DIRECT[1][0], "--on", "sim:fixed-100us", "--out", "o")
    data, found = details("o")
    (workload,) = tomllib.loads(data.study.spec_toml)["workloads"]
    assert (workload["kind"], workload["dialect"]) == ("dialect", "bonnie++")
    assert workload["command"].startswith("-D -f -n 0 -s 1 -r 0")
    assert "iozone" not in data.study.spec_toml
    assert found == {
        "put_block": ("write", "direct", 8192),
        "rewrite": ("update", "direct", 8192),
        "get_block": ("read", "direct", 8192),
        "seeks": ("update", "direct", 8192),
    }
    iolab("report", "o")
    verdict = json.loads(Path("o/verdict.json").read_text(encoding="utf-8"))
    assert "bonnie++ tests put_block, rewrite, get_block, seeks" in verdict["methods"]


def test_names_of_streams_decide_nothing(iolab):
    Path("named.toml").write_text(STREAMS, encoding="utf-8")
    out = iolab("run", "named.toml", "--full", "--out", "o")
    _, found = details("o")
    assert found == {
        "streams/fread": ("read", "direct", 512),
        "streams/write": ("read", "direct", 1 << 20),
        "streams/mine": ("write", "direct", 4096),
        "streams/all": ("mixed", "direct", None),
    }
    verdict = json.loads(Path("o/verdict.json").read_text(encoding="utf-8"))
    assert {row["is_direct"] for row in verdict["treatments"]} == {True}
    assert "buffered" not in without_scope(out)
    promised = {
        bound["operation"]: bound["bytes_per_s"]
        for bound in verdict["upper_bounds"]
        if bound["name"] == "device specification"
    }
    assert promised == {"streams/fread": 40e9, "streams/write": 40e9, "streams/mine": 1e6}
    assert "streams/mine was 38.6 times as fast as the 0.954 MiB/s promised" in out
    assert "streams/write was" not in out


def test_an_engine_that_maps_or_streams_is_told_as_such(iolab):
    """Way of an engine unless it is asked otherwise, told as it was done."""
    Path("d").mkdir()
    common = ["--test", "write,read", "--record-size", "4k", "--file-size", "64k", "--rounds", "1"]
    for engine, access in (("mmap", "mapped"), ("stdio", "stdio"), ("psync", "plain")):
        words = ["compare", "--on", "dir:d", "--engine", engine, "--buffered", *common]
        assert "nothing compared: " in iolab(*words, "--out", engine)
        _, found = details(engine)
        assert found == {
            "write": ("write", access, 4096),
            "read": ("read", access, 4096),
        }


def test_files_that_are_made_and_removed_go_no_way_to_data(iolab):
    Path("d").mkdir()
    words = ["bonnie++", "-d", "d", "-u", "root", "-f", "-s", "1", "-n", "1", "-r", "0"]
    iolab(*words, "--out", "o")
    _, found = details("o")
    assert found["put_block"] == ("write", "plain", 8192)
    names = {name: about for name, about in found.items() if name[:4] in ("seq_", "ran_")}
    assert len(names) == 6
    assert set(names.values()) == {("name", None, None)}
    out = iolab("report", "o")
    assert "; seq_create" in out  # Neither buffered nor direct.


def test_a_file_that_is_filled_is_a_write(iolab):
    iolab("mkfile", "64k", "big", "--out", "o")
    _, found = details("o")
    assert found == {"mkfile": ("write", "plain", None)}  # The first write sets the length.
