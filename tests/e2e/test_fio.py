"""`iolab fio` as it is typed: the recorded job files, and what fio itself told of each.

Equal are all counts, groups, errors and options, and every key of the JSON; shares of a random mix
are within three standard deviations. What is not done is listed with its reason, and counted.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from iolab.study import dialects

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "fio"
DONE: Final = tuple(sorted(path.stem for path in GOLDEN.glob("g*.fio")))
NOT_MEASURED: Final = (
    "jobname",
    "groupid",
    "error",
    "job options",
    "latency_depth",
    "latency_target",
    "latency_percentile",
    "latency_window",
)
OURS: Final = {"response_ns"}
"""Keys that fio has not."""
Json = Mapping[str, Any]


def fio(folder: Path, *words: str | Path, code: int = 0) -> tuple[str, str]:
    """Standard output and error of a command line typed in `folder`."""
    stored = folder.parent / f"{folder.name}-stored-{len(list(folder.parent.iterdir()))}"
    command = [sys.executable, "-m", "iolab", "--out", stored, "fio", *words]
    environment = os.environ | {"XDG_STATE_HOME": str(folder.parent / "state")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of the user's."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def run_golden(folder: Path, name: str) -> Json:
    """The JSON of a recorded job file."""
    (folder / f"{name}.fio").write_text((GOLDEN / f"{name}.fio").read_text())
    if name == "g05-iouring":
        fio(folder, "--name=prep", "--rw=write", "--bs=64k", "--size=4m", "--filename=t04.dat")
    if name == "g17-iolog-replay":
        (folder / "g17.iolog").write_text((GOLDEN / "g17.iolog").read_text())
    out, _ = fio(folder, "--output-format=json+", f"{name}.fio")
    return json.loads(out)


def keys(value: Any) -> Any:
    """All keys of a document, without those whose names are measured values."""
    if isinstance(value, Mapping):
        return {
            key: None if key in ("bins", "percentile") else keys(inner)
            for key, inner in value.items()
            if key not in OURS
        }
    return None


def schema_of(value: Any, name: str = "") -> dict[str, Any]:
    """JSON schema of what fio printed: keys that must be there, and the type of each value."""
    if isinstance(value, Mapping):
        parts = {key: schema_of(inner, key) for key, inner in value.items()}
        if name in ("bins", "percentile"):  # Names of members are measured values.
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        return {"type": "object", "properties": parts, "required": sorted(parts)}
    if isinstance(value, list):
        return {"type": "array"} | ({"items": schema_of(value[0])} if value else {})
    if isinstance(value, str):
        return {"type": "string"}
    return {"type": "integer" if isinstance(value, int) else "number"}


def test_every_recorded_file_is_known() -> None:
    assert len(DONE) == 22


@pytest.mark.parametrize("name", DONE)
def test_a_job_file_does_what_fio_did(folder: Path, name: str) -> None:
    recorded = json.loads((GOLDEN / f"{name}.json").read_text())
    measured = run_golden(folder, name)
    assert measured.get("global options") == recorded.get("global options")
    # Of a replay fio tells nothing about disks; here they are told.
    extra = ["disk_util"] if name == "g17-iolog-replay" else []
    assert list(measured) == [*recorded, *extra]
    assert len(measured["jobs"]) == len(recorded["jobs"])
    for ours, theirs in zip(measured["jobs"], recorded["jobs"], strict=True):
        compare(ours, theirs)


def compare(ours: Json, theirs: Json) -> None:
    """One job: keys, types, what is not measured, and counts."""
    jsonschema.validate(ours, schema_of(theirs))
    assert list(ours) == list(theirs)
    for key in NOT_MEASURED:
        assert ours.get(key) == theirs.get(key), key
    total = [0, 0]
    counts = list[tuple[int, int]]()
    for name in ("read", "write", "trim", "mixed"):
        if name not in theirs:
            continue
        assert keys(ours[name]) == keys(theirs[name]), name
        pair = (ours[name]["total_ios"], theirs[name]["total_ios"])
        if name != "mixed":
            total = [total[0] + pair[0], total[1] + pair[1]]
            counts.append(pair)
        else:
            assert pair[0] == pair[1]
    options = theirs.get("job options", {})
    if "bssplit" in options:
        # fio 3.33 draws sizes, directions and zipf's places from numbers that depend on each other:
        # of its 992 transfers 83 % read, where 50 % are asked for.
        moved = sum(ours[name]["io_bytes"] for name in ("read", "write"))
        wanted = sum(theirs[name]["io_bytes"] for name in ("read", "write"))
        assert abs(moved - wanted) <= 65536, (moved, wanted)
        return
    if "-" in options.get("filesize", ""):
        # Sizes are drawn: each file of 8k to 64k is written once.
        assert 4 * 2 <= total[0] <= 4 * 16
        return
    if "latency_target" in options:
        # As many as one window of 200 ms has: what is counted is the last one alone.
        assert 190 <= ours["read"]["runtime"] <= 400, ours["read"]["runtime"]
        return
    # What ends by time: a busy machine sleeps longer than it was asked to.
    slack = 0.3 * total[1] if "thinktime" in options else 0.0
    slack = max(slack, 0.05 * total[1] if {"rate", "rate_iops"} & set(options) else 0.0)
    assert abs(total[0] - total[1]) <= slack, total
    for mine, wanted in counts:
        share = wanted / max(1, total[1])
        deviation = (total[1] * share * (1 - share)) ** 0.5
        assert abs(mine - wanted) <= 4 * deviation + slack, counts
    # fio 3.33 counts fdatasync among short reads.
    if "fdatasync" not in theirs.get("job options", {}) and "sync" in theirs:
        flushes = theirs["sync"]["total_ios"]
        if "fsync" in options and min(wanted for _, wanted in counts[:2]) > 0:
            # They follow the writes, of which chance makes another number.
            flushes = ours["write"]["total_ios"] // int(options["fsync"])
        assert ours["sync"]["total_ios"] == flushes


def test_what_is_not_done_is_refused_in_one_line_that_names_it(folder: Path) -> None:
    (folder / "job.fio").write_text("[a]\nsize=1m\nzonemode=zbd\n")
    _, err = fio(folder, "job.fio", code=1)
    assert "zonemode" in err.splitlines()[0], err
    assert "job.fio:" in err.splitlines()[0]
    assert [path.name for path in folder.iterdir()] == ["job.fio"], "nothing was touched"


def test_a_steady_rate_ends_a_job_and_one_that_is_not_lets_it_run(folder: Path) -> None:
    rate = ("--name=a", "--ioengine=null", "--size=1g", "--time_based", "--rate_iops=500")
    words = (*rate, "--runtime=9", "--ss=iops:30%", "--ss_dur=2", "--ss_ramp=1")
    out, _ = fio(folder, *words, "--output-format=json,normal")
    begin = out.index("{")
    document, length = json.JSONDecoder().raw_decode(out[begin:])
    end = begin + length
    job = document["jobs"][0]
    steady = job["steadystate"]
    assert (steady["ss"], steady["duration"], steady["attained"]) == ("iops:30.000000%", 2, 1)
    assert 3000 <= job["read"]["runtime"] <= 6000
    assert sum(steady["data"]["iops"]) / 2 == pytest.approx(500, rel=0.2)
    assert steady["data"]["bw"][0] == 4096 * steady["data"]["iops"][0]
    assert "  steadystate  : attained=yes, bw=" in out[end:]
    out, _ = fio(folder, *rate, "--runtime=2", "--ss=iops:30%", "--ss_dur=5",
                 "--output-format=json")  # fmt: skip
    job = json.loads(out)["jobs"][0]
    assert (job["error"], job["steadystate"]["attained"]) == (0, 0)
    assert len(job["steadystate"]["data"]["iops"]) == 5


def test_a_latency_above_the_longest_ends_a_job_with_the_error_of_fio(folder: Path) -> None:
    words = ("--name=a", "--size=64k", "--max_latency=1us", "--output-format=json")
    out, err = fio(folder, *words, code=1)
    assert json.loads(out)["jobs"][0]["error"] == 110
    assert "at most 1000 were allowed" in err


def test_several_files_are_those_of_fio_in_size_and_order(folder: Path) -> None:
    words = ("--name=m", "--rw=write", "--nrfiles=3", "--size=64k", "--numjobs=2", "--fsync=4")
    out, _ = fio(folder, *words, "--group_reporting", "--output-format=json")
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    names = {f"m.{clone}.{file}" for clone in range(2) for file in range(3)}
    assert set(sizes) == names
    # 64k over 3 files with 4k transfers: 5 in each; a flush after every 4, not after the last.
    job = json.loads(out)["jobs"][0]
    assert (job["write"]["total_ios"], job["sync"]["total_ios"]) == (30, 6)
    for name in names:
        content = (folder / name).read_bytes()
        assert all(any(content[at : at + 4096]) for at in range(0, 5 * 4096, 4096)), name


def test_files_of_others_are_safe_from_programs(folder: Path) -> None:
    for name in ("x.0.0", "x.0.1"):
        (folder / name).write_text("x" * 65536)
    many = ("--name=x", "--nrfiles=2", "--filesize=64k")
    for words in (
        (*many, "--rw=randwrite", "--bssplit=4k/50:8k/50"),
        (*many, "--rw=read", "--filesize=128k"),
        (*many, "--ioengine=filedelete"),
        (*many, "--ioengine=filecreate"),
    ):
        _, err = fio(folder, *words, code=2)
        assert "--overwrite" in err, words
    fio(folder, *many, "--rw=randread", "--bssplit=4k/50:8k/50", "--output-format=terse")
    fio(folder, *many, "--ioengine=filestat", "--output-format=terse")
    for name in ("x.0.0", "x.0.1"):
        assert (folder / name).read_text() == "x" * 65536
    # What has the name of a set of files is not one.
    (folder / "files0").mkdir()
    (folder / "files0" / "kept").write_text("kept")
    fio(folder, "--name=y", "--rw=write", "--nrfiles=2", "--size=64k", "--unlink=1")
    assert (folder / "files0" / "kept").read_text() == "kept"
    assert not list(folder.glob("y.*"))


def test_files_stay_are_known_again_and_those_of_others_are_not_touched(folder: Path) -> None:
    words = ("--name=w", "--rw=write", "--size=64k", "--numjobs=2")
    fio(folder, *words)
    assert {p.name: p.stat().st_size for p in folder.iterdir()} == {
        "w.0.0": 65536,
        "w.1.0": 65536,
    }
    fio(folder, *words)
    foreign = folder / "notes"
    foreign.write_text("x" * 65536)
    told = foreign.stat().st_mtime_ns
    _, err = fio(folder, "--name=r", "--filename=notes", "--output-format=terse")
    assert "only read" in err
    _, err = fio(folder, "--name=w", "--rw=write", "--size=64k", "--filename=notes", code=2)
    assert "--overwrite" in err
    _, err = fio(folder, "--name=r", "--filename=notes", "--size=1m", code=2)
    assert foreign.stat().st_mtime_ns == told
    assert foreign.read_text() == "x" * 65536
    fio(folder, "--overwrite", "notes", "--name=w", "--rw=write", "--size=64k", "--filename=notes")
    assert foreign.read_bytes() != b"x" * 65536


def test_output_goes_to_a_file_and_never_over_anothers(folder: Path) -> None:
    words = ("--name=n", "--ioengine=null", "--size=1m", "--output-format=json,terse")
    out, _ = fio(folder, *words, "--output=result")
    assert not out
    text = (folder / "result").read_text()
    terse, line_end, document = text.partition("\n")
    assert json.loads(document)["jobs"][0]["read"]["total_ios"] == 256
    assert terse.startswith("3;iolab-")
    assert (len(terse.split(";")), line_end) == (121, "\n")
    (folder / "mine").write_text("mine")
    fio(folder, *words, "--output=mine", code=2)
    assert (folder / "mine").read_text() == "mine"


def test_the_normal_output_has_fios_lines(folder: Path) -> None:
    out, err = fio(folder, "--name=r", "--rw=randread", "--size=1m", "--iodepth=4", "--bs=4k")
    lines = out.splitlines()
    assert lines[0] == (
        "r: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=psync, iodepth=4"
    )
    assert lines[2] == "Starting 1 process"
    assert lines[4].startswith("r: (groupid=0, jobs=1): err= 0: pid=")
    assert lines[5].startswith("  read: IOPS=")
    assert "     issued rwts: total=256,0,0,0 short=0,0,0,0 dropped=0,0,0,0" in lines
    assert "Run status group 0 (all jobs):" in lines
    assert "whatever iodepth says" in err


def test_showcmd_parse_only_and_help_print_and_do_nothing(folder: Path) -> None:
    (folder / "a.fio").write_text("[global]\nbs=8k\n[j]\nsize=1m\nrw=write\n")
    out, _ = fio(folder, "--showcmd", "a.fio")
    assert out == "fio --bs=8k --name=j --size=1m --rw=write \n" or out.rstrip() == (
        "fio --bs=8k --name=j --size=1m --rw=write"
    )
    assert fio(folder, "--parse-only", "a.fio")[0].strip() == ""
    assert "iodepth" in fio(folder, "--cmdhelp=all")[0]
    assert {p.name for p in folder.iterdir()} == {"a.fio"}


def test_a_region_is_where_its_offset_says(folder: Path) -> None:
    words = ("--rw=write", "--size=8k", "--offset=8k", "--offset_increment=16k", "--fallocate=none")
    fio(folder, "--name=w", *words, "--numjobs=2", "--filename=f", "--group_reporting")
    content = (folder / "f").read_bytes()
    assert len(content) == 32 << 10
    filled = [any(content[at : at + 4096]) for at in range(0, len(content), 4096)]
    assert filled == [False, False, True, True, False, False, True, True]


def test_logs_have_fios_names_columns_and_windows(folder: Path) -> None:
    run_golden(folder, "g15-logs")
    averaged = ("bw", "clat", "iops", "lat", "slat")
    single = ("clat", "lat", "slat")
    names = {f"g15_{name}.1.log" for name in averaged} | {f"g15e_{name}.2.log" for name in single}
    assert {path.name for path in folder.glob("*.log")} == names
    rows = {
        name: [[int(field) for field in line.split(", ")] for line in lines]
        for name, lines in ((name, (folder / name).read_text().splitlines()) for name in names)
    }
    # Half a second each, reads and writes; 200 per second of 4 KiB are 800 KiB/s in each.
    assert [row[0] for row in rows["g15_bw.1.log"] if row[2] == 0][:3] == [500, 1000, 1500]
    assert all(row[3:] == [0, 0] for name in averaged for row in rows[f"g15_{name}.1.log"])
    both = [sum(row[1] for row in rows["g15_iops.1.log"] if row[0] == ms) for ms in (500, 1000)]
    assert all(abs(sum_of - 400) <= 40 for sum_of in both), both  # A busy machine is late.
    assert rows["g15_slat.1.log"] == []
    # Every transfer of 64 KiB by 4 KiB, with its place.
    assert [row[2:] for row in rows["g15e_clat.2.log"]] == [
        [1, 4096, at * 4096, 0] for at in range(16)
    ]


def test_a_log_of_the_users_own_is_not_replaced(folder: Path) -> None:
    words = ("--name=a", "--ioengine=null", "--size=8k", "--write_lat_log", "x")
    (folder / "x_lat.1.log").write_text("mine")
    _, told = fio(folder, *words, code=2)
    assert "x_lat.1.log" in told
    assert (folder / "x_lat.1.log").read_text() == "mine"
    assert not (folder / "x_clat.1.log").exists()
    fio(folder, "--overwrite", "x_lat.1.log", *words)
    assert len((folder / "x_lat.1.log").read_text().splitlines()) == 2
    # Now it is iolab's, and replaced like any result.
    fio(folder, *words)


def test_trims_make_holes_and_patterns_are_written(folder: Path) -> None:
    fio(folder, "--name=w", "--rw=write", "--size=64k", "--filename=f", "--buffer_pattern=0xdead")
    assert (folder / "f").read_bytes() == b"\xde\xad" * 32768
    out, _ = fio(
        folder, "--output-format=json", "--name=t", "--rw=trim", "--filename=f",
        "--offset=16k", "--size=32k", "--write_iolog=t.log",
    )  # fmt: skip
    trims = json.loads(out)["jobs"][0]["trim"]
    assert (trims["total_ios"], trims["io_bytes"]) == (8, 32768)
    bytes_now = (folder / "f").read_bytes()
    assert bytes_now == b"\xde\xad" * 8192 + bytes(32768) + b"\xde\xad" * 8192
    lines = (folder / "t.log").read_text().splitlines()
    assert lines[0] == "fio version 3 iolog"
    assert [line.split()[1:] for line in lines[3:5]] == [
        ["f", "trim", "16384", "4096"],
        ["f", "trim", "20480", "4096"],
    ]


@pytest.mark.parametrize("sizes", ["", "--bsrange=4k-12k", "--bssplit=4k/50:8k/50", "--nrfiles=2"])
@pytest.mark.parametrize("direction", ["write", "randwrite", "read", "randread"])
def test_data_compress_and_repeat_as_asked_for(folder: Path, sizes: str, direction: str) -> None:
    """Files that are read are laid out so, too: a file system that compresses would tell."""
    job = ["--name=a", f"--rw={direction}", "--size=4m", *sizes.split()]
    fio(folder, *job, "--buffer_compress_percentage=75")
    made = b"".join(path.read_bytes() for path in sorted(folder.glob("a.*")))
    # Random places of several sizes leave a few holes.
    assert len(made) > 3 << 20
    share = len(zlib.compress(made, 1)) / len(made)
    assert 0.15 <= share <= 0.29
    zeros = made.count(b"\0") / len(made)
    assert 0.74 <= zeros <= 0.88
    for path in folder.glob("a.*"):
        path.unlink()
    fio(folder, *job, "--dedupe_percentage=50")
    made = b"".join(path.read_bytes() for path in sorted(folder.glob("a.*")))
    pages = [made[at : at + 4096] for at in range(0, len(made), 4096)]
    assert 0.4 <= len(set(pages)) / len(pages) <= 0.52


def test_each_job_writes_data_of_its_own(folder: Path) -> None:
    fio(
        folder, "--size=64k", "--name=z", "--rw=write", "--zero_buffers", "--name=p",
        "--rw=read", "--buffer_pattern=0xdead", "--name=r", "--rw=write", "--nrfiles=2",
    )  # fmt: skip
    assert (folder / "z.0.0").read_bytes() == bytes(65536)
    assert (folder / "p.0.0").read_bytes() == b"\xde\xad" * 32768
    for number in range(2):
        made = (folder / f"r.0.{number}").read_bytes()
        assert len({made[at : at + 4096] for at in range(0, len(made), 4096)}) == 8


def test_a_log_of_actions_is_done_again(folder: Path) -> None:
    fio(folder, "--name=w", "--rw=write", "--size=32k", "--filename=f", "--fsync=3",
        "--write_iolog=w.log")  # fmt: skip
    (folder / "f").unlink()
    out, _ = fio(folder, "--output-format=json", "--name=r", "--read_iolog=w.log")
    job = json.loads(out)["jobs"][0]
    assert (job["write"]["total_ios"], job["write"]["io_bytes"]) == (8, 32768)
    assert job["sync"]["total_ios"] == 2
    assert (folder / "f").stat().st_size == 32768


SEQUENCES: Final = (
    (
        "--filename=A:B --rw=write --size=16k --fsync_on_close=1 --io_size=24k",
        "A 0 4096/B 0 4096/A 4096 4096/B 4096 4096/A sync/A 0 4096/B sync/B 0 4096/A sync/B sync",
    ),
    ("--filename=A --rw=write --size=8k --end_fsync=1", "A 0 4096/A 4096 4096/A sync"),
    (
        "--filename=A --rw=write --size=8k --loops=2 --fsync_on_close=1",
        "A 0 4096/A 4096 4096/A sync/A 0 4096/A 4096 4096/A sync",
    ),
    (
        "--filename=A --rw=write --size=12k --sync_file_range=write:2",
        "A 0 4096/A 4096 4096/A sync/A 8192 4096",
    ),
    ("--filename=A:B --rw=write --size=16k --file_service_type=sequential",
     "A 0 4096/A 4096 4096/B 0 4096/B 4096 4096"),
    ("--filename=A --rw=write:2k --size=14k", "A 0 4096/A 6144 4096"),
)  # fmt: skip
"""Options, and the order of what fio 3.33 does with them."""


@pytest.mark.parametrize("engine", ["psync", "null"])
@pytest.mark.parametrize(("words", "expected"), SEQUENCES)
def test_a_log_of_actions_is_fios(folder: Path, engine: str, words: str, expected: str) -> None:
    fio(folder, "--name=w", f"--ioengine={engine}", "--write_iolog=w.log", *words.split())
    lines = [line.split()[1:] for line in (folder / "w.log").read_text().splitlines()[1:]]
    done = [line for line in lines if line[1] in ("write", "sync")]
    told = [
        f"{name} sync" if what == "sync" else f"{name} {at} {size}" for name, what, at, size in done
    ]
    assert "/".join(told) == expected
    names = sorted({name for name, *_ in lines})
    for word in ("add", "open", "close"):
        assert sorted(line[0] for line in lines if line[1] == word) == names
    if engine == "null":
        return
    out, _ = fio(folder, "--output-format=json", "--name=r", "--read_iolog=w.log")
    job = json.loads(out)["jobs"][0]
    writes = sum(line[1] == "write" for line in done)
    assert job["write"]["total_ios"] == writes
    assert job["sync"]["total_ios"] == len(done) - writes


def test_a_log_of_clones_has_all_of_them_in_the_order_of_time(folder: Path) -> None:
    words = "--name=w --rw=write --size=64k --nrfiles=2 --numjobs=3 --write_iolog=w.log"
    fio(folder, *words.split())
    lines = (folder / "w.log").read_text().splitlines()
    assert lines.count("fio version 3 iolog") == 1
    found = [line.split() for line in lines[1:]]
    times = [int(line[0]) for line in found]
    assert times == sorted(times)
    for name in (f"w.{clone}.{file}" for clone in range(3) for file in range(2)):
        places = [int(line[3]) for line in found if line[1:3] == [name, "write"]]
        assert places == list(range(0, 32768, 4096))
    out, _ = fio(folder, "--output-format=json", "--name=r", "--read_iolog=w.log")
    assert json.loads(out)["jobs"][0]["write"]["total_ios"] == 48


@pytest.mark.parametrize(
    "more",
    [
        "--rw=write",
        "--rw=write --end_fsync=1",
        # No file is closed while transfers on it are under way.
        "--rw=randwrite --end_fsync=1 --ioengine=libaio --iodepth=8 --direct=1",
        "--rw=randwrite --ioengine=io_uring --iodepth=8",
    ],
)
def test_files_are_made_anew_for_each_loop(folder: Path, more: str) -> None:
    words = f"--name=w {more} --size=64k --nrfiles=2 --loops=3 --unlink_each_loop=1"
    out, _ = fio(folder, *words.split(), "--output-format=json")
    assert json.loads(out)["jobs"][0]["write"]["total_ios"] == 48
    # fio 3.33 leaves the files of the last loop.
    assert [(folder / name).stat().st_size for name in ("w.0.0", "w.0.1")] == [32768] * 2
    fio(folder, *words.split(), "--unlink=1")
    assert not list(folder.glob("w.*"))


def test_clones_share_a_file_with_transfers_of_several_sizes(folder: Path) -> None:
    words = "--name=a --filename=f --size=1m --bssplit=4k/60:16k/40 --numjobs=2 --group_reporting"
    out, _ = fio(folder, *words.split(), "--rw=randread", "--output-format=json")
    [job] = json.loads(out)["jobs"]
    assert job["read"]["io_bytes"] == 2 << 20


def test_several_formats_stand_in_the_order_of_fio(folder: Path) -> None:
    words = ("--name=a", "--size=64k", "--rw=write", "--output-format=normal,json,terse")
    out, _ = fio(folder, *words)
    places = [out.index(text) for text in ("a: (g=0)", "3;iolab", "{", "a: (groupid=0")]
    assert places == sorted(places)
    assert [out.count(text) for text in ("a: (g=0)", "3;iolab", "fio version")] == [1, 1, 1]


def test_shares_of_the_processor_and_switches_are_those_of_each_job(folder: Path) -> None:
    words = "--time_based --runtime=1 --size=1m --name=idle --thinktime=100000 --name=busy "
    words += "--ioengine=null --name=short --ioengine=null --time_based=0 --size=4k "
    words += "--name=awake --time_based=1 --thinktime=500 --ioengine=psync"
    out, _ = fio(folder, *words.split(), "--output-format=json")
    idle, busy, short, awake = json.loads(out)["jobs"]
    assert all(one["usr_cpu"] + one["sys_cpu"] <= 100.001 for one in (idle, busy, short, awake))
    assert idle["usr_cpu"] + idle["sys_cpu"] < 10 < busy["usr_cpu"] + busy["sys_cpu"]
    # Each pause is a switch; who shares a processor with others is also stopped by them.
    assert idle["ctx"] >= 9
    assert awake["ctx"] > idle["ctx"] + 200


DEVICE: Final = "--on sim:nvme-pc601-256 --direct=1 --size=64m --time_based --runtime=1"


def simulated(folder: Path, words: str) -> dict[str, Any]:
    """The one job of `words` on a simulated device."""
    out, _ = fio(folder, "--name=a", *DEVICE.split(), *words.split(), "--output-format=json")
    [job] = json.loads(out)["jobs"]
    assert isinstance(job, dict)
    return job


MANY: Final = ("--nrfiles=4", "--bssplit=4k/50:4k/50", "--random_distribution=zipf:0.2")
"""Jobs that no stream on one file is, with the transfers of one."""


@pytest.mark.parametrize("many", MANY)
def test_a_job_of_any_kind_has_its_depth_in_simulation(folder: Path, many: str) -> None:
    """Before, libaio beside several files or sizes had one transfer under way in simulation."""
    words = "--rw=randread --ioengine=libaio --iodepth=16"
    one = simulated(folder, words)["read"]["iops"]
    assert simulated(folder, f"{words} {many}")["read"]["iops"] == pytest.approx(one, rel=0.1)
    drained = simulated(folder, f"{words} {many} --iodepth_low=2")["read"]["iops"]
    assert drained < 0.9 * one


@pytest.mark.parametrize("many", ["", *MANY])
def test_the_depth_that_keeps_a_latency_is_found(folder: Path, many: str) -> None:
    words = "--rw=randread --ioengine=libaio --iodepth=64 --latency_target=200 "
    words += f"--latency_window=50ms --latency_percentile=99 {many}"
    job = simulated(folder, words)
    assert 2 <= job["latency_depth"] < 64
    # What came before the depth was found is not told.
    assert job["read"]["runtime"] <= 101
    assert job["read"]["bw_bytes"] == pytest.approx(4096 * job["read"]["iops"], rel=0.01)


@pytest.mark.parametrize("many", ["", "--nrfiles=4"])
def test_reads_and_writes_have_rates_of_their_own(folder: Path, many: str) -> None:
    """As with fio 3.33, whose counts differ by two."""
    both = simulated(folder, f"--rw=randrw --rate_iops=100,300 {many}")
    assert both["read"]["total_ios"] == pytest.approx(100, abs=5)
    assert both["write"]["total_ios"] == pytest.approx(300, abs=5)
    # Flushes are no transfers.
    flushed = simulated(folder, f"--rw=randrw --rate_iops=100,300 --fsync=1 {many}")
    assert flushed["read"]["total_ios"] == pytest.approx(100, abs=5)
    one = simulated(folder, f"--rw=randrw --rate=,1m {many}")
    assert one["write"]["total_ios"] == pytest.approx(256, abs=2)
    assert one["read"]["total_ios"] > 4000


def test_pauses_of_several_files_are_those_of_one(folder: Path) -> None:
    pauses = "--rw=randwrite --thinktime=20ms --thinktime_blocks=5"
    for more in ("", "--thinktime_spin=10ms", "--rate_iops=1000", "--thinktime_iotime=1s"):
        one, many = (
            simulated(folder, f"{pauses} {more} {files}")["write"]["total_ios"]
            for files in ("", "--nrfiles=4")
        )
        assert many == pytest.approx(one, abs=5)
        assert many == pytest.approx(245, abs=8)


@pytest.mark.parametrize("many", ["", "--nrfiles=4"])
def test_pauses_begin_when_all_that_is_under_way_has_ended(folder: Path, many: str) -> None:
    """Before, transfers under way beside each other ended a pause.

    fio 3.33 moves 190 and 755 of them in a second on a fast disk, and 160 without pauses is 26000.
    """
    words = f"--rw=randread --ioengine=libaio --iodepth=4 {many}"
    free = simulated(folder, words)["read"]["total_ios"]
    one = simulated(folder, f"{words} --thinktime=5ms")["read"]["total_ios"]
    assert 170 <= one <= 200
    four = simulated(folder, f"{words} --thinktime=5ms --thinktime_blocks=4")["read"]["total_ios"]
    assert 600 <= four <= 1000
    timed = simulated(folder, f"{words} --thinktime=100ms --thinktime_iotime=50ms")
    assert timed["read"]["total_ios"] < 0.5 * free
    parts = simulated(folder, f"{words} --thinktime=500ms --thinktime_blocks=2000")
    assert parts["read"]["total_ios"] < 0.3 * free


def test_a_recorded_stream_pauses_and_keeps_its_depth(folder: Path) -> None:
    """Before, `thinktime` and `iodepth_low` had no effect on a replay."""
    fio(folder, "--name=w", "--rw=randread", "--size=1m", "--direct=1", "--write_iolog=log")
    words = f"{DEVICE} --rw=randread --read_iolog=log --replay_no_stall=1 --name=a"
    words = words.replace("--time_based --runtime=1 ", "")
    took = {}
    think = "--thinktime=5ms"
    for more in ("", f"{think} --thinktime_blocks=16", f"{think} --thinktime_spin=2ms"):
        out, _ = fio(folder, *words.split(), *more.split(), "--output-format=json")
        [job] = json.loads(out)["jobs"]
        assert job["read"]["total_ios"] == 256
        took[more] = job["read"]["runtime"]
    free, often, spun = took.values()
    assert often - free == pytest.approx(75, abs=10)
    assert spun - free == pytest.approx(1275, abs=30)


def test_rates_of_transfers_of_several_sizes_count_the_smallest(folder: Path) -> None:
    """As with fio 3.33, which moves 81 of them in a second."""
    job = simulated(folder, "--rw=randread --rate_iops=200 --bsrange=4k-16k")
    assert 70 <= job["read"]["total_ios"] <= 95
    assert job["read"]["io_bytes"] == pytest.approx(200 * 4096, rel=0.05)


def test_number_ios_begins_again_until_the_time_is_over(folder: Path) -> None:
    words = "--rw=randread --rate_iops=300 --number_ios=150"
    assert simulated(folder, words)["read"]["total_ios"] == 300


def test_a_mixed_job_flushes_behind_each_read_until_the_next_write(folder: Path) -> None:
    """As fio 3.33 does, which flushes 120 times here."""
    for more in ("", "--nrfiles=2"):
        words = f"--name=a --rw=randrw --size=4m --fsync=8 {more} --output-format=json"
        out, _ = fio(folder, *words.split())
        assert 85 < json.loads(out)["jobs"][0]["sync"]["total_ios"] < 180


def test_who_is_slow_by_its_rate_stays_until_its_time_is_over(folder: Path) -> None:
    """Before, it ended as soon as its next transfer was due behind that."""
    for more in ("--rate=1", "--thinktime=9s", "--thinktime=9s --thinktime_spin=9s"):
        for files in ("", "--nrfiles=2"):
            words = f"--name=a --rw=randwrite --size=8m --time_based --runtime=1 {more} {files}"
            began = time.monotonic()
            out, _ = fio(folder, *words.split(), "--output-format=json")
            took = time.monotonic() - began
            [job] = json.loads(out)["jobs"]
            assert job["write"]["total_ios"] == 1
            assert 1000 <= job["job_runtime"] < 1500
            assert 1.0 < took < 8.0


def test_a_job_that_fails_does_not_end_those_behind_a_stonewall(folder: Path) -> None:
    text = "[global]\nsize=1m\ndirect=1\n[bad]\nrw=read:8\n[good]\nstonewall\nrw=randread\n"
    (folder / "job.fio").write_text(text)
    loop = [("--on", "loop:64m")] if os.geteuid() == 0 else []
    for where in ((), ("--on", "sim:nvme-pc601-256"), *loop):
        out, _ = fio(folder, *where, "job.fio", "--output-format=json", code=1)
        bad, good = json.loads(out)["jobs"]
        assert (bad["error"], good["error"], good["read"]["total_ios"]) == (22, 0, 256)
    (folder / "job.fio").write_text(f"[global]\nexitall_on_error=1\nexit_what=all\n{text}")
    out, _ = fio(folder, "job.fio", "--output-format=json", code=1)
    assert json.loads(out)["jobs"][1]["read"]["total_ios"] == 0


def test_submission_times_are_told_beside_a_job_with_ramp_time(folder: Path) -> None:
    words = "--direct=1 --ioengine=libaio --iodepth=4 --size=16m --time_based --rw=randread "
    words += "--runtime=1 --name=b --name=c --ramp_time=300ms --output-format=json"
    out, _ = fio(folder, *words.split())
    for job in json.loads(out)["jobs"]:
        assert job["read"]["slat_ns"]["mean"] > 0


def test_a_job_that_ends_in_its_ramp_time_is_told(folder: Path) -> None:
    words = "--name=a --rw=read --size=1m --ramp_time=1 --output-format=json"
    out, _ = fio(folder, *words.split())
    assert json.loads(out)["jobs"][0]["read"]["total_ios"] == 256


def test_regions_that_begin_at_shares_are_rounded_up_to_whole_transfers(folder: Path) -> None:
    fio(folder, "--name=l", "--filename=f", "--rw=write", "--bs=64k", "--size=8m")
    words = "--name=a --filename=f --rw=read --bs=64k --numjobs=3 --offset_increment=33% "
    words += "--size=20% --direct=1 --write_iolog=x"
    fio(folder, *words.split())
    fio(folder, *words.split(), "--group_reporting", "--write_iolog=y")
    for name in ("x", "y"):
        lines = [line.split() for line in (folder / name).read_text().splitlines()]
        places = sorted(int(line[3]) for line in lines if line[2:3] == ["read"])
        begins = [at for at in places if at - 65536 not in places]
        assert (begins, places[-1]) == ([0, 2818048, 5570560], 7143424)


def test_files_of_a_verified_job_are_of_whole_transfers(folder: Path) -> None:
    words = "--name=a --rw=randwrite --nrfiles=3 --size=4m --verify=md5 --output-format=json"
    out, _ = fio(folder, *words.split())
    job = json.loads(out)["jobs"][0]
    assert (job["write"]["total_ios"], job["read"]["total_ios"]) == (1023, 1023)


def test_a_file_of_iolab_stays_its_own_when_it_is_named(folder: Path) -> None:
    words = ("--name=a", "--rw=write", "--size=64k")
    for named in ((), ("--overwrite", "a.0.0"), ()):
        fio(folder, *words, *named)


def test_readonly_makes_no_file(folder: Path) -> None:
    _, told = fio(folder, "--name=a", "--rw=read", "--size=64k", "--readonly", code=1)
    assert "a.0.0 would be written before it is read" in told
    assert not list(folder.glob("a.*"))


def test_each_job_is_warm_after_its_own_ramp_time(folder: Path) -> None:
    words = "--rw=randread --rate_iops=1000 --name=a --ramp_time=1 --name=b --name=c "
    words += "--startdelay=1 --ramp_time=1"
    out, _ = fio(folder, *DEVICE.split(), *words.split(), "--output-format=json")
    jobs = json.loads(out)["jobs"]
    assert [job["read"]["runtime"] for job in jobs] == pytest.approx([1000] * 3, abs=1)
    counts = [job["read"]["total_ios"] for job in jobs]
    assert counts == pytest.approx([1000] * 3, abs=2)


def test_a_job_of_a_study_makes_its_file_whatever_lies_where_it_was_typed(folder: Path) -> None:
    """Before, a file of that name in the working directory was expected on the testbed."""
    job = "--name=a --size=64k --rw=randread --direct=1"
    fio(folder, *job.split())
    study = ("--on", "sim:nvme-pc601-256", "--rounds", "2", "--scheduler", "none,mq-deadline")

    def compare(workload: str) -> subprocess.CompletedProcess[str]:
        words = (sys.executable, "-m", "iolab", "compare", "--workload", workload, *study)
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)

    done = compare(f"fio {job}")
    assert done.returncode == 0, done.stderr
    (folder / "job.fio").write_text("[a]\nsize=64k\n")
    for words in ("--on loop:64m --name=a --size=64k", "--on loop:64m job.fio"):
        done = compare(f"fio {words}")
        assert done.returncode != 0
        assert "the study says where" in done.stderr


def test_a_file_too_short_to_be_read_says_so(folder: Path) -> None:
    (folder / "mine").write_text("mine\n")
    _, told = fio(folder, "--name=a", "--filename=mine", "--rw=read", "--size=4m", code=2)
    assert "mine has 5 B, less than the job works on" in told
    assert (folder / "mine").read_text() == "mine\n"


@pytest.mark.parametrize("words", ["--filename=/dev/none-of-iolab", "--directory=/dev"])
def test_a_device_that_is_not_there_does_not_become_a_file(folder: Path, words: str) -> None:
    before = sorted(path.name for path in Path("/dev").iterdir())
    _, told = fio(folder, "--name=a", "--rw=write", "--size=4k", words, code=1)
    assert "there is no device /dev/" in told
    _, told = fio(folder, "--name=a", "--size=4k", "--rw=write", "--output=/dev/none", code=2)
    assert "/dev holds devices" in told
    assert sorted(path.name for path in Path("/dev").iterdir()) == before


def test_a_file_stays_iolabs_through_a_kill_and_says_when_it_was_changed(folder: Path) -> None:
    job = ("--name=a", "--filename=f", "--rw=randwrite", "--size=64k")
    fio(folder, *job)
    command = [sys.executable, "-m", "iolab", "--out", folder.parent / "killed", "fio", *job]
    running = [*command, "--time_based", "--runtime=60", "--status-interval=100ms"]
    environment = os.environ | {"XDG_STATE_HOME": str(folder.parent / "state")}
    with subprocess.Popen(
        [str(word) for word in running],
        cwd=folder,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        while b"err= 0" not in process.stdout.readline():  # It is under way.
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
    fio(folder, *job)
    with (folder / "f").open("ab") as file:
        file.write(b"mine")
    assert "was changed since iolab made it" in fio(folder, *job, code=2)[1]


def test_files_of_the_jobs_that_unlink_them_go_and_others_stay(folder: Path) -> None:
    words = "--size=64k --rw=write --name=a --unlink=1 --name=b --name=c --nrfiles=2 --unlink=1"
    fio(folder, *words.split())
    assert {path.name for path in folder.iterdir()} == {"b.0.0"}
    fio(folder, *words.split(), "--name=d", "--filename=a.0.0", "--stonewall", "--rw=read")
    assert {path.name for path in folder.iterdir()} == {"a.0.0", "b.0.0"}
    (folder / "a.0.0").unlink()
    verified = "--size=64k --rw=write --name=a --unlink=1 --verify=md5 --name=b"
    fio(folder, *verified.split())
    assert {path.name for path in folder.iterdir()} == {"b.0.0"}


@pytest.mark.parametrize("on", ["", "sim"])
def test_data_of_jobs_of_several_engines_are_verified_in_later_groups(
    folder: Path, on: str
) -> None:
    (folder / "stack.toml").write_text(
        'name = "s"\ndevice.profile = "nvme-pc601-256"\n[files]\nfs = "ext4"\n'
    )
    where = ("--on", "sim:stack.toml") if on else ()
    words = "--size=256k --rw=randwrite --verify=md5 --name=first --filename=f --name=maps "
    words += "--stonewall --filename=f --ioengine=mmap --name=waits --ioengine=libaio --iodepth=4"
    out, _ = fio(folder, *where, *words.split(), "--output-format=json")
    jobs = {one["jobname"]: one for one in json.loads(out)["jobs"]}
    assert [one["error"] for one in jobs.values()] == [0, 0, 0]
    assert [one["read"]["total_ios"] for one in jobs.values()] == [64, 64, 64]


def test_a_rate_in_bytes_is_kept_by_transfers_of_several_sizes(folder: Path) -> None:
    words = ("--name=a", "--ioengine=null", "--size=1g", "--bsrange=4k-128k", "--rate=8m")
    out, _ = fio(folder, *words, "--time_based", "--runtime=2", "--output-format=json")
    read = json.loads(out)["jobs"][0]["read"]
    # At most the last transfer is more.
    assert 15 << 20 < read["io_bytes"] <= (16 << 20) + (128 << 10)
    assert (16 << 20) / (128 << 10) < read["total_ios"] < (16 << 20) / (32 << 10)


@pytest.mark.parametrize("on", ["", "sim"])
def test_jobs_of_several_engines_run_at_once(folder: Path, on: str) -> None:
    (folder / "stack.toml").write_text(
        'name = "s"\ndevice.profile = "nvme-pc601-256"\n[files]\nfs = "ext4"\n'
    )
    where = ("--on", "sim:stack.toml") if on else ()
    verify = "verify=md5\n" if on else ""
    job = f"[global]\nsize=256k\n[sync]\nrw=randwrite\n{verify}[ring]\nioengine=io_uring\n"
    job += "iodepth=8\ndirect=1\nrw=randread\n[map]\nioengine=mmap\nrw=randrw\n[cpu]\n"
    job += "ioengine=cpuio\ncpuload=50\nruntime=1\n"
    job += "" if on else "[null]\nioengine=null\nrw=write\n"
    (folder / "job.fio").write_text(job)
    out, _ = fio(folder, *where, "--output-format=json", "job.fio")
    jobs = json.loads(out)["jobs"]
    moved = {one["jobname"]: (one["read"]["total_ios"], one["write"]["total_ios"]) for one in jobs}
    reread = 64 if on else 0
    assert (moved["sync"], moved["ring"], moved["cpu"]) == ((reread, 64), (64, 0), (0, 0))
    assert sum(moved["map"]) == 64
    assert on or moved["null"] == (0, 64)
    levels = {one["jobname"]: one["iodepth_level"] for one in jobs}
    assert (levels["ring"]["8"], levels["map"]["1"]) == (100, 100)
    if on:
        words = (*where, "--name=n", "--size=4k", "--ioengine=null")
        assert "nothing is transferred by it" in fio(folder, *words, code=1)[1]


def test_blocks_are_allocated_and_freed_by_an_engine_of_their_own(folder: Path) -> None:
    words = "--name=w --filename=f --size=1m --ioengine=falloc --fallocate=none"
    out, _ = fio(folder, *words.split(), "--rw=write", "--loops=2", "--output-format=json")
    write = json.loads(out)["jobs"][0]["write"]
    assert (write["total_ios"], write["io_bytes"]) == (512, 2 << 20)
    assert write["clat_ns"]["N"] == 512
    assert (folder / "f").stat().st_blocks * 512 >= 1 << 20
    out, _ = fio(folder, *words.split(), "--rw=trim", "--output-format=json")
    assert json.loads(out)["jobs"][0]["trim"]["total_ios"] == 256
    assert ((folder / "f").stat().st_size, (folder / "f").stat().st_blocks) == (1 << 20, 0)
    # Also what is called a read changes the file.
    (folder / "mine").write_text("mine")
    again = words.replace("=f ", "=mine ").split()
    fio(folder, *again, "--rw=read", code=2)
    assert (folder / "mine").read_text() == "mine"


def test_overwrite_of_an_unmodified_command_line_is_fios(folder: Path) -> None:
    words = ("--name=w", "--rw=write", "--size=64k", "--overwrite=1", "--filename=f")
    fio(folder, *words)
    fio(folder, "--name=w", "--overwrite", "--rw=write", "--size=64k", "--filename=f")
    (folder / "mine").write_text("x" * 65536)
    mine = (*words[:-1], "--filename=mine")
    fio(folder, *mine, code=2)
    assert (folder / "mine").read_text() == "x" * 65536
    fio(folder, *mine, "--iolab-overwrite=mine")
    assert (folder / "mine").read_bytes() != b"x" * 65536


def test_a_switch_of_fio_is_stored_and_a_file_that_was_allowed_is_not() -> None:
    row = dialects.find_dialect("fio")
    words = ["--overwrite=1", "--overwrite", "--a", "--overwrite", "f", "--iolab-overwrite", "1"]
    assert dialects.of_one_run(row, words) == ["--overwrite=1", "--overwrite", "--a"]
    assert dialects.of_one_run(dialects.find_dialect("iozone"), ["--overwrite", "1"]) == []


VERIFIED: Final = ("--name=v", "--filename=f", "--rw=randwrite", "--size=64k", "--verify=crc32c")


@pytest.mark.parametrize(
    ("kind", "at"), [("flipped", 20_000), ("zeros", 16_384), ("misplaced", 8192)]
)
def test_a_fault_planted_between_two_runs_is_found(folder: Path, kind: str, at: int) -> None:
    fio(folder, *VERIFIED, "--do_verify=0")
    out, _ = fio(folder, *VERIFIED, "--verify_only", "--output-format=json")
    job = json.loads(out)["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"], job["error"]) == (16, 0, 0)
    content = bytearray((folder / "f").read_bytes())
    if kind == "flipped":
        content[at] ^= 1
    elif kind == "zeros":
        content[at : at + 4096] = bytes(4096)
    else:
        content[at : at + 4096] = content[:4096]
    (folder / "f").write_bytes(content)
    words = (*VERIFIED, "--verify_only", "--continue_on_error=verify", "--output-format=json")
    out, err = fio(folder, *words, code=5)
    job = json.loads(out)["jobs"][0]
    assert (job["error"], job["total_err"], job["first_error"]) == (84, 1, 84)
    assert job["read"]["total_ios"] == 15, "it went on"
    assert kind in err
    assert (folder / "f").read_bytes() == content, "nothing was written"


def test_what_another_seed_wrote_is_stale_and_a_missing_file_is_an_error(folder: Path) -> None:
    fio(folder, *VERIFIED, "--do_verify=0", "--randseed=3")
    _, err = fio(folder, *VERIFIED, "--verify_only", code=5)
    assert "with another seed" in err
    _, err = fio(folder, "--name=v", "--filename=g", "--size=64k", "--verify=md5", code=1)
    assert "write it first" in err
    assert not (folder / "g").exists()


def test_a_pattern_is_written_and_compared(folder: Path) -> None:
    words = ("--name=p", "--filename=f", "--size=64k", "--verify=pattern")
    pattern = "--verify_pattern=0xdead"
    out, _ = fio(folder, *words, pattern, "--rw=write", "--output-format=json")
    assert json.loads(out)["jobs"][0]["read"]["total_ios"] == 16
    assert (folder / "f").read_bytes() == b"\xde\xad" * 32768
    fio(folder, *words, pattern, "--rw=read")
    _, err = fio(folder, *words, "--verify_pattern=0xdeae", "--rw=read", code=5)
    assert "not 0xae of the pattern" in err


def planted(folder: Path, *places: int) -> tuple[bytes, bytes]:
    """Content of the file of a job that was written, before and after bytes of it were flipped."""
    fio(folder, *VERIFIED, "--do_verify=0")
    before = (folder / "f").read_bytes()
    after = bytearray(before)
    for place in places:
        after[place] ^= 1
    (folder / "f").write_bytes(after)
    return before, bytes(after)


def test_the_first_wrong_block_ends_a_job_that_would_go_on(folder: Path) -> None:
    """As in fio 3.33: `continue_on_error=verify` reads on, unless `verify_fatal` is set."""
    planted(folder, 20_000, 40_000)
    words = (*VERIFIED, "--rw=read", "--continue_on_error=verify", "--output-format=json")
    told = [
        json.loads(fio(folder, *words, *more, code=5)[0])["jobs"][0]
        for more in ((), ("--verify_fatal=1",))
    ]
    counts = [(job["read"]["total_ios"], job["total_err"], job["error"]) for job in told]
    assert counts == [(14, 2, 84), (4, 1, 84)]


def test_an_interval_is_the_block_that_is_wrong(folder: Path) -> None:
    words = (*VERIFIED, "--bs=16k")
    for interval, message in (("512", "512 bytes at offset 19968"), ("16k", "16384 bytes at")):
        fio(folder, *words, "--do_verify=0", f"--verify_interval={interval}")
        content = bytearray((folder / "f").read_bytes())
        content[20_000] ^= 1
        (folder / "f").write_bytes(content)
        _, err = fio(folder, *words, "--rw=read", f"--verify_interval={interval}", code=5)
        assert f"block of {message}" in err
        assert "byte 20000 is" in err
        (folder / "f").unlink()


def test_a_header_is_where_verify_offset_says(folder: Path) -> None:
    words = (*VERIFIED, "--verify_offset=1000")
    fio(folder, *words)
    content = bytearray((folder / "f").read_bytes())
    assert content[1000:1008] == content[5096:5104] == b"iolabVB1"
    content[1020] ^= 1
    (folder / "f").write_bytes(content)
    _, err = fio(folder, *words, "--rw=read", code=5)
    assert "byte 1020 is" in err
    _, err = fio(folder, *VERIFIED, "--verify_offset=4090", code=1)
    assert "write 48 to 4048" in err


def test_wrong_blocks_are_saved_beside_the_job_and_nobody_elses_file_is_touched(
    folder: Path,
) -> None:
    before, after = planted(folder, 20_000)
    words = (*VERIFIED, "--rw=read", "--verify_dump=1")
    _, err = fio(folder, *words, code=5)
    assert "received data dumped as f.16384.received" in err
    received, expected = folder / "f.16384.received", folder / "f.16384.expected"
    assert received.read_bytes() == after[16_384:20_480]
    assert expected.read_bytes() == before[16_384:20_480]
    received.unlink()
    expected.write_text("mine")
    _, err = fio(folder, *words, code=5)
    assert "expected data not dumped: f.16384.expected exists" in err
    assert expected.read_text() == "mine"
    assert received.read_bytes() == after[16_384:20_480]
    (folder / "f").write_bytes(after[:16_384] + bytes(4096) + after[20_480:])
    fio(folder, *words, code=5)
    assert (folder / "f.16384.hdr_fail").read_bytes() == bytes(4096)
    fio(folder, *VERIFIED, "--rw=read", code=5)
    assert len(list(folder.iterdir())) == 4, "without the option nothing is saved"


@pytest.mark.parametrize(
    ("more", "order"),
    [
        (("--verify_backlog=3",), "WWWRRR" * 5 + "WR"),
        (("--verify_backlog=4", "--verify_backlog_batch=2"), "WW" + "WWRR" * 7 + "RR"),
        (("--verify_backlog=100",), "W" * 16 + "R" * 16),
        (("--verify_backlog=3", "--do_verify=0"), "W" * 16),
    ],
)
def test_a_backlog_is_read_in_the_order_of_fio(
    folder: Path, more: tuple[str, ...], order: str
) -> None:
    out, _ = fio(folder, *VERIFIED, *more, "--write_lat_log=a", "--output-format=json")
    lines = (folder / "a_lat.1.log").read_text().splitlines()
    assert "".join("RW"[int(line.split(", ")[2])] for line in lines) == order
    job = json.loads(out)["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"]) == (order.count("R"), 16)


def test_no_more_writes_wait_for_their_reads_than_the_backlog(folder: Path) -> None:
    """Several are in flight here, and end in any order."""
    words = ("--verify_backlog=4", "--ioengine=libaio", "--iodepth=4", "--direct=1")
    fio(folder, *VERIFIED, *words, "--write_lat_log=a")
    lines = (folder / "a_lat.1.log").read_text().splitlines()
    ahead, most = 0, 0
    for line in lines:
        ahead += 1 if line.split(", ")[2] == "1" else -1
        most = max(most, ahead)
        assert ahead >= 0, "nothing is read before it was written"
    assert (ahead, len(lines)) == (0, 32)
    assert most <= 4


def test_a_byte_that_changes_before_a_backlog_is_read_is_found(folder: Path) -> None:
    """The byte is flipped while the job writes, so that no other run has to find it."""

    def flip() -> None:
        path = folder / "f"
        for _ in range(1000):
            if path.exists() and path.read_bytes()[:8] == b"iolabVB1":
                with path.open("r+b") as file:
                    file.seek(3000)
                    byte = file.read(1)[0]
                    file.seek(3000)
                    file.write(bytes([byte ^ 1]))
                return
            time.sleep(0.01)

    thread = threading.Thread(target=flip)
    thread.start()
    words = ("--rw=write", "--rate_iops=10", "--verify_backlog=10", "--output-format=json")
    out, err = fio(folder, *VERIFIED, *words, code=5)
    thread.join()
    assert "byte 3000 is" in err
    job = json.loads(out)["jobs"][0]
    assert (job["error"], job["write"]["total_ios"]) == (84, 10)


def test_no_more_is_verified_than_the_saved_state_says(folder: Path) -> None:
    words = (*VERIFIED, "--numjobs=2", "--offset_increment=64k", "--randrepeat=0")
    fio(folder, *words, "--number_ios=5", "--do_verify=0", "--verify_state_save=1")
    states = [folder / f"local-v-{index}-verify.state" for index in (0, 1)]
    assert [json.loads(state.read_text())["writes"] for state in states] == [5, 5]
    reading = (*words, "--rw=randread", "--output-format=json")
    _, err = fio(folder, *reading, code=5)
    assert "with another seed" in err or "zeros" in err, "without it all of the file is expected"
    out, _ = fio(folder, *reading, "--verify_state_load=1", "--group_reporting")
    (job,) = json.loads(out)["jobs"]
    assert (job["read"]["total_ios"], job["error"]) == (10, 0)
    states[1].unlink()
    _, err = fio(folder, *reading, "--verify_state_load=1", code=1)
    assert "local-v-1-verify.state cannot be read" in err


INTERRUPTED: Final = """
[global]
rw=read
size=1m
[slow]
time_based
runtime=60
rate_iops=200
[later]
stonewall
"""
EXIT_OF_FIO: Final = 128


def interrupt(folder: Path, *words: str, presses: int = 1) -> tuple[int, str, str]:
    """Exit code and output of the job file above, after SIGINT in the middle of its first job."""
    (folder / "job.fio").write_text(INTERRUPTED)
    environment = os.environ | {"XDG_STATE_HOME": str(folder.parent / "state")}
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "iolab",
            "--out",
            folder.parent / "stored",
            "fio",
            *words,
            "job.fio",
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    laid_out = folder / "slow.0.0"
    deadline = time.monotonic() + 60
    while not (laid_out.exists() and laid_out.stat().st_size == 1 << 20):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(3)
    for _ in range(presses):
        running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    return running.returncode, out, err


def test_an_interrupted_job_prints_partial_results_and_ends_with_the_code_of_fio(
    folder: Path,
) -> None:
    code, out, err = interrupt(folder, "--output-format=json")
    assert code == EXIT_OF_FIO, err
    slow, later = json.loads(out)["jobs"]
    assert 0 < slow["read"]["total_ios"] < 60 * 200
    assert slow["error"] == 0
    assert slow["job_runtime"] < 60_000
    assert later["read"]["total_ios"] == 0
    assert "stopped on request" in err
    assert "Traceback" not in err
    assert not list((folder.parent / "state").rglob("*.journal")), "everything was put back"


def test_an_interrupted_job_writes_its_output_file_in_the_format_that_was_asked_for(
    folder: Path,
) -> None:
    code, out, _ = interrupt(folder, "--output-format=terse", "--output=result")
    assert (code, out) == (EXIT_OF_FIO, "")
    first, second = (folder / "result").read_text().splitlines()
    assert first.split(";")[2] == "slow"
    assert int(first.split(";")[5]) > 0
    assert second.split(";")[2] == "later"


def test_a_second_interrupt_ends_at_once_with_the_code_of_fio(folder: Path) -> None:
    code, out, err = interrupt(folder, "--output-format=json", presses=2)
    assert code == EXIT_OF_FIO
    assert "Traceback" not in err
    assert out == "" or json.loads(out)["jobs"]


def test_commands_of_a_job_run_only_when_they_are_allowed(folder: Path) -> None:
    words = ("--name=a", "--size=64k", "--exec_prerun=id -u; pwd", "--exec_postrun=touch after")
    _, err = fio(folder, *words, code=1)
    assert "exec_prerun" in err
    assert "--allow-exec" in err
    assert not list(folder.iterdir())
    out, err = fio(folder, "--allow-exec", "--output-format=json", *words)
    assert json.loads(out)["jobs"][0]["read"]["total_ios"] == 16
    assert (folder / "a.prerun.txt").read_text() == f"{os.geteuid()}\n{folder}\n"
    assert (folder / "after").exists()
    assert (folder / "a.postrun.txt").read_text() == ""
    assert "a.prerun.txt" in err


def test_output_of_a_command_never_replaces_a_file_of_the_user(folder: Path) -> None:
    (folder / "a.prerun.txt").write_text("mine")
    words = ("--allow-exec", "--name=a", "--size=64k", "--exec_prerun=touch ran")
    _, err = fio(folder, *words, code=2)
    assert "a.prerun.txt" in err
    assert not (folder / "ran").exists()
    assert (folder / "a.prerun.txt").read_text() == "mine"


def test_submission_is_told_apart_and_posixaio_splice_and_cpuio_work(folder: Path) -> None:
    base = ("--size=256k", "--bs=4k", "--output-format=json")
    for engine, words in {
        "posixaio": ("--rw=randwrite", "--iodepth=4", "--end_fsync=1"),
        "libaio": ("--rw=randread", "--iodepth=4", "--direct=1", "--iodepth_low=2"),
        "splice": ("--rw=randread", "--bs=128k"),
    }.items():
        out, _ = fio(folder, f"--name={engine}", f"--ioengine={engine}", *base, *words)
        job = json.loads(out)["jobs"][0]
        side = job["read"] if job["read"]["total_ios"] else job["write"]
        assert side["total_ios"] == (2 if engine == "splice" else 64)
        times = [side[f"{name}_ns"] for name in ("slat", "clat", "lat")]
        if engine == "splice":
            assert times[0]["N"] == 0
            assert times[1]["mean"] == times[2]["mean"]
            continue
        assert [time["N"] for time in times] == [64] * 3
        assert times[0]["mean"] > 0
        assert times[0]["mean"] + times[1]["mean"] == pytest.approx(times[2]["mean"], rel=1e-6)
    words = ("--name=burn", "--ioengine=cpuio", "--cpuload=40", "--runtime=600ms", "--stats=0")
    out, _ = fio(folder, *words, "--name=io", *base, "--rw=read", "--ioengine=psync", "--stats=1")
    assert [job["jobname"] for job in json.loads(out)["jobs"]] == ["io"]


def test_a_rate_that_is_too_low_fails_and_files_are_only_made_or_appended_to(folder: Path) -> None:
    slow = ("--name=slow", "--size=4m", "--thinktime=50ms", "--rate_min=1m", "--rate_cycle=200")
    out, _ = fio(folder, *slow, "--time_based", "--runtime=4", "--output-format=json", code=1)
    assert json.loads(out)["jobs"][0]["error"] == 5
    out, _ = fio(folder, "--name=made", "--size=1m", "--create_only=1", "--output-format=json")
    assert json.loads(out)["jobs"][0]["read"]["total_ios"] == 0
    assert (folder / "made.0.0").stat().st_size == 1 << 20
    more = ("--name=made", "--rw=write", "--size=64k", "--file_append=1", "--output-format=json")
    out, _ = fio(folder, *more)
    assert json.loads(out)["jobs"][0]["write"]["total_ios"] == 16
    assert (folder / "made.0.0").stat().st_size == (1 << 20) + (64 << 10)


def test_a_delay_holds_back_a_job_that_nothing_else_hinders(folder: Path) -> None:
    """Before, one transfer under way without a rate began at once."""
    for direction in ("read", "write"):
        began = time.monotonic()
        fio(folder, f"--name={direction}", f"--rw={direction}", "--size=64k", "--startdelay=1")
        assert time.monotonic() - began > 1


def test_a_least_rate_is_asked_of_the_directions_that_a_job_has(folder: Path) -> None:
    words = ("--size=1m", "--time_based", "--runtime=3", "--rate_min=1m", "--output-format=json")
    for direction in ("read", "write"):
        out, _ = fio(folder, f"--name={direction}", f"--rw={direction}", *words)
        assert json.loads(out)["jobs"][0]["error"] == 0


def test_transfers_of_two_sizes_are_whole(folder: Path) -> None:
    words = ("--name=m", "--rw=randrw", "--bs=4k,64k", "--size=4m", "--output-format=json")
    out, told = fio(folder, *words)
    job = json.loads(out)["jobs"][0]
    assert job["read"]["io_bytes"] == job["read"]["total_ios"] * 4096
    assert job["write"]["io_bytes"] == job["write"]["total_ios"] * 65536
    assert "places that are drawn evenly" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rw=write", "--output={folder}/f"), "one of the files that are worked on"),
        (("--rw=write", "--output=../{folder.name}/f"), "one of the files that are worked on"),
        (("--rw=write", "--write_iolog={folder}/f"), "one of the files that are worked on"),
        (
            ("--rw=write", "--write_bw_log=x", "--output={folder}/x_bw.1.log"),
            "two results or logs are to be written into",
        ),
    ],
)
def test_nothing_is_written_over_the_jobs_files(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    fio(folder, "--name=a", "--filename=f", "--rw=write", "--size=64k")
    before = (folder / "f").read_bytes()
    typed = [word.format(folder=folder) for word in words]
    _, told = fio(folder, "--name=a", "--filename=f", "--size=64k", *typed, code=1)
    assert message in told
    assert (folder / "f").read_bytes() == before


def test_jobs_of_several_sizes_and_files_follow_the_rules_too(folder: Path) -> None:
    words = ("--bssplit=4k/50:8k/50", "--output-format=json")
    slow = ("--name=slow", "--size=4m", "--thinktime=50ms", "--rate_min=1m", "--rate_cycle=200")
    out, _ = fio(folder, *slow, "--time_based", "--runtime=4", *words, code=1)
    assert json.loads(out)["jobs"][0]["error"] == 5
    out, _ = fio(folder, "--name=late", "--size=64k", "--max_latency=1", *words, code=1)
    assert json.loads(out)["jobs"][0]["error"] == 110
    out, _ = fio(
        folder, "--name=s", "--size=1m", "--rate_iops=500", "--ss=iops:30%", "--ss_dur=2",
        "--time_based", "--runtime=8", "--rw=randread", "--random_distribution=zipf:1.1:0.5",
        "--output-format=json",
    )  # fmt: skip
    job = json.loads(out)["jobs"][0]
    assert job["steadystate"]["attained"] == 1
    assert job["read"]["runtime"] < 6000
    out, _ = fio(
        folder, "--name=made", "--filesize=64k", "--nrfiles=3", "--create_only=1", *words[1:]
    )
    assert json.loads(out)["jobs"][0]["read"]["total_ios"] == 0
    assert [(folder / f"made.0.{n}").stat().st_size for n in range(3)] == [65536] * 3
    out, _ = fio(folder, "--name=made", "--filesize=64k", "--nrfiles=3", "--startdelay=1", *words)
    assert json.loads(out)["jobs"][0]["read"]["io_bytes"] == 3 << 16


def test_what_was_written_until_the_time_was_over_is_verified(folder: Path) -> None:
    words = ("--name=v", "--rw=randwrite", "--size=1m", "--verify=crc32c", "--output-format=json")
    out, _ = fio(folder, *words, "--time_based", "--runtime=500ms")
    job = json.loads(out)["jobs"][0]
    assert job["error"] == 0
    assert job["read"]["total_ios"] == 256


@pytest.mark.needs_root
@pytest.mark.needs_loop
def test_a_scheduler_is_set_for_the_jobs_and_put_back(folder: Path) -> None:
    words = ("--name=a", "--rw=randread", "--size=4m", "--direct=1", "--ioscheduler=none")
    out, err = fio(folder, "--on", "loop:64m", "--output-format=json", *words)
    assert json.loads(out)["jobs"][0]["job options"]["ioscheduler"] == "none", err
    _, err = fio(folder, "--on", "loop:64m", *words[:-1], "--ioscheduler=noop-deadline", code=1)
    assert "noop-deadline" in err


def documents(text: str) -> list[Json]:
    """JSON documents that follow each other."""
    found, at, decoder = list[Json](), 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, text.index("{", at))
        found.append(document)
    return found


@pytest.mark.parametrize("workers", ["", "--thread", "--numjobs=2", "--nrfiles=2"])
def test_results_come_while_jobs_run_and_grow_until_the_last(folder: Path, workers: str) -> None:
    job = ("--name=a", "--rw=randread", "--size=4m", "--rate_iops=200", "--time_based")
    words = ("--status-interval=500ms", "--runtime=2", *([workers] if workers else []))
    out, err = fio(folder, *job, *words, "--group_reporting", "--output-format=json")
    told = documents(out)
    assert 3 <= len(told) <= 5, err
    sides = [one["jobs"][0]["read"] for one in told]
    ios = [side["total_ios"] for side in sides]
    assert ios == sorted(set(ios)), "each has more than the one before it"
    clones = 2 if workers == "--numjobs=2" else 1
    assert ios[0] == pytest.approx(100 * clones, rel=0.5)
    assert ios[-1] == pytest.approx(400 * clones, rel=0.1)
    for side in sides:
        assert side["clat_ns"]["N"] == side["total_ios"]
        assert side["io_bytes"] == side["total_ios"] * 4096
        assert side["clat_ns"]["percentile"]["50.000000"] > 0
        assert side["iops"] == pytest.approx(200 * clones, rel=0.5)
    assert all(keys(one) == keys(told[0]) for one in told)


def test_results_of_jobs_that_have_ended_stay_in_those_of_the_next(folder: Path) -> None:
    job = ("--name=first", "--size=64k", "--rw=read", "--name=second", "--stonewall")
    words = ("--size=1m", "--rate_iops=100", "--time_based", "--runtime=1", "--rw=write")
    fio(folder, *job, *words, "--status-interval=400ms", "--output=out", "--output-format=json")
    told = documents((folder / "out").read_text())
    assert len(told) >= 2
    for one in told:
        first, second = one["jobs"]
        assert first["read"]["total_ios"] == 16
        assert second["write"]["total_ios"] > 0


def test_a_line_of_progress_is_on_standard_error_and_never_in_the_results(folder: Path) -> None:
    job = ("--name=a", "--rw=randread", "--size=4m", "--rate_iops=200", "--time_based")
    words = (*job, "--runtime=3", "--output-format=json")
    out, err = fio(folder, "--eta=always", *words)
    assert len(documents(out)) == 1
    lines = [line for line in err.splitlines() if line.startswith("Jobs: ")]
    assert 2 <= len(lines) <= 4, err
    assert all(line.startswith("Jobs: 1 (f=1): [r(1)][") for line in lines)
    assert all("IOPS][eta 00m:0" in line for line in lines)
    for quiet in ("--eta=never", "--eta=auto"):
        assert "Jobs: " not in fio(folder, quiet, *job, "--runtime=1")[1]


def test_intervals_that_are_none_are_refused_where_they_stand(folder: Path) -> None:
    for word in ("--status-interval=0", "--status-interval=soon", "--eta-newline=50ms"):
        _, err = fio(folder, word, "--name=a", "--size=64k", code=1)
        assert word.partition("=")[0] in err
        assert "500ms" in err


def test_logs_of_submission_have_its_times_where_the_engine_has_them(folder: Path) -> None:
    words = ("--name=a", "--rw=randread", "--size=256k", "--direct=1", "--iodepth=4")
    fio(folder, *words, "--ioengine=libaio", "--write_lat_log=a", "--output-format=json")
    kinds = ("slat", "clat", "lat")
    logs = {kind: (folder / f"a_{kind}.1.log").read_text().splitlines() for kind in kinds}
    values = {kind: [int(line.split(", ")[1]) for line in logs[kind]] for kind in kinds}
    assert len(values["slat"]) == 64
    assert all(value > 0 for value in values["slat"])
    sums = [slat + clat for slat, clat in zip(values["slat"], values["clat"], strict=True)]
    assert sums == values["lat"]


def test_a_job_of_many_files_runs_again_in_place(folder: Path) -> None:
    """More than 512 were refused, and of more than a thousand iolab forgot that it had made them.

    The soft limit of open files is that of a shell: the agent raises it.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limit[1]))
    try:
        for _ in range(2):
            out, _ = fio(folder, "--name=a", "--rw=write", "--bs=4k", "--nrfiles=1200", "--size=5m")
            assert "err= 0" in out
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert len(list(folder.glob("a.0.*"))) == 1200
