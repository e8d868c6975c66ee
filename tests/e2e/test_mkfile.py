"""`iolab mkfile` as it is typed: what it makes, prints and stores; errors; a disk that is full."""

import io
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from iolab import _core
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store
from iolab.testbed.command import find_agent


def mkfile(tmp_path, *arguments):
    out, err = io.StringIO(), io.StringIO()
    words = ["--out", tmp_path / f"stored-{len(list(tmp_path.iterdir()))}", "mkfile", *arguments]
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_files_are_full_of_zeros_and_stay(tmp_path, place):
    code, out, err = mkfile(tmp_path, "-v", "100k", place / "a", place / "b")
    assert (code, out) == (0, "a 102400 bytes\nb 102400 bytes\n"), err
    for name in "ab":
        path = place / name
        assert path.read_bytes() == bytes(102400)
        assert path.stat().st_blocks * 512 >= 102400
        assert path.stat().st_mode & 0o777 == 0o600
    assert (place / "a").stat().st_mode & 0o1000 or os.geteuid()
    with Store.open_reader(tmp_path / "stored-1" / "study.db") as store:
        data = store.load_data()
    assert {m.operation for m in data.measurements} == {"mkfile"}
    assert {m.workload for m in data.measurements} == {"a", "b"}


def test_sparse_odd_and_empty_files(tmp_path, place):
    assert mkfile(tmp_path, "-n", "64m", place / "sparse")[0] == 0
    found = (place / "sparse").stat()
    assert (found.st_size, found.st_blocks * 512 <= 65536) == (64 << 20, True)
    assert mkfile(tmp_path, "5001", place / "odd")[0] == 0
    assert (place / "odd").read_bytes() == bytes(5001)
    assert mkfile(tmp_path, "0", place / "empty")[0] == 0
    assert (place / "empty").stat().st_size == 0
    assert mkfile(tmp_path, "--random", "--sync", "64k", place / "full")[0] == 0
    content = (place / "full").read_bytes()
    assert len({content[at : at + 4096] for at in range(0, len(content), 4096)}) == 16
    assert len(zlib.compress(content)) > 65536
    # As there, what had the name is replaced.
    assert mkfile(tmp_path, "3b", place / "full")[0] == 0
    assert (place / "full").read_bytes() == bytes(1536)


def test_repeated_on_another_place_with_intervals(tmp_path, place):
    code, _, err = mkfile(tmp_path, "--on", f"dir:{place}", "--repeat", "3", "1m", "file")
    assert code == 0, err
    assert list(place.iterdir()) == [], "a testbed is left as it was"
    [stored] = tmp_path.glob("stored-*")
    with Store.open_reader(stored / "study.db") as store:
        assert {m.round for m in store.load_data().measurements} == {1, 2, 3}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["64x", "a"], 1, "unknown size 64x"),
        (["64m"], 1, "a size and at least one file are needed"),
        (["-x", "1k", "a"], 1, "there is no option -x"),
        (["1m", "none/a"], 1, "none cannot be used"),
        (["1m", "link"], 2, "is a symbolic link"),
        (["1m", "folder"], 2, "is a directory"),
        (["1m", "x" * 256], 1, "File name too long"),
        (["999999g", "a"], 2, "would use more than 80 %"),
    ],
)
def test_wrong_command_lines_make_nothing(tmp_path, place, monkeypatch, words, code, message):
    monkeypatch.chdir(place)
    (place / "target").write_text("mine")
    (place / "link").symlink_to("target")
    (place / "folder").mkdir()
    got, out, err = mkfile(tmp_path, *words)
    assert (got, out) == (code, ""), err
    assert message in err
    assert {path.name for path in place.iterdir()} == {"target", "link", "folder"}
    assert (place / "target").read_text() == "mine"


def test_a_simulated_disk_is_written(tmp_path):
    code, out, err = mkfile(tmp_path, "-v", "--on", "sim:sata7200-4tb", "1m", "a")
    assert (code, out) == (0, "a 1048576 bytes\n"), err


@pytest.mark.needs_loop
def test_a_file_that_fails_is_told_and_the_next_is_made(tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    options = "size=64m,nr_inodes=3"  # its root and two files
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", mount], check=True)
    try:
        (mount / "old").write_text("before")
        (mount / "filler").touch()
        allowed = ["--overwrite", mount / "old"]
        code, out, err = mkfile(tmp_path, *allowed, "-v", "3k", mount / "new", mount / "old")
        assert (code, out) == (1, "new 3072 bytes\nold 3072 bytes\n"), err
        assert "new: No space left on device" in err
        assert (mount / "old").read_bytes() == bytes(3072)
        assert not (mount / "new").exists()
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.needs_loop
def test_a_disk_that_fills_up_keeps_no_half_file(tmp_path):
    """The check of space comes before; somebody else may fill the disk after it."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "small", mount], check=True)
    try:
        plan = json.loads(_core.dialect_parse("mkfile", ["16m", "file"]))
        trial = {"trial": "t1", "directory": str(mount), "workload": plan["rows"][0]["workload"]}
        done = subprocess.run(
            [find_agent(), "measure"],
            input=json.dumps(trial) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        result = json.loads(done.stdout.splitlines()[-1])["result"]
        assert result["status"] == "failed"
        told = re.search(r"file: initialized (\d+) of 16777216 bytes: No space", result["error"])
        assert told, result["error"]
        assert 4 << 20 < int(told[1]) <= 8 << 20
        assert list(mount.iterdir()) == []
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_link_of_the_name_selects_the_dialect(tmp_path, place):
    program = tmp_path / "mkfile"
    program.write_text("from iolab.cli.main import main\nimport sys\nsys.exit(main())\n")
    done = subprocess.run(
        [sys.executable, str(program), "-n", "4k", "made"],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert (place / "made").stat().st_size == 4096


def test_a_program_that_runs_stays(tmp_path, place):
    busy = place / "busy"
    busy.write_bytes(Path("/bin/sleep").read_bytes())
    busy.chmod(0o755)
    with subprocess.Popen([busy, "30"]) as running:
        code, _, err = mkfile(tmp_path, "64k", busy)
        running.kill()
    assert (code, "was not made by iolab" in err, "removed" in err) == (2, True, False), err
    assert busy.read_bytes() == Path("/bin/sleep").read_bytes()
