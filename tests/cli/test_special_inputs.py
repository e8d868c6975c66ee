"""Inputs that are no files. A pipe that nobody writes was waited for without end."""

import io
import os

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

COMMANDS = (
    ("import", "pipe"),
    ("import", "pipe.csv"),
    ("lint", "pipe.csv"),
    ("diff", "pipe.csv", "pipe.csv"),
    ("run", "pipe.toml"),
    ("run", "pipe.iolab"),
    ("plan", "pipe.toml"),
    ("trace", "show", "pipe"),
    ("trace", "summary", "pipe"),
    ("pattern", "pipe"),
    ("bon-csv2txt", "pipe"),
)


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_pipe_that_nobody_writes_is_refused_in_one_line(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in {word for word in words if word.startswith("pipe")}:
        os.mkfifo(name)
    code, out, err = iolab(*words)
    assert (code, out) == (1, "")
    assert err == f"iolab: {words[-1]} is a pipe (FIFO), not a regular file: name a file\n"
    assert [path.name for path in tmp_path.iterdir()] == [words[-1]]


def test_what_a_shell_has_opened_is_read(tmp_path, monkeypatch):
    """`iolab import <(zcat runs.csv.gz)` names a pipe that is open already."""
    monkeypatch.chdir(tmp_path)
    end, other = os.pipe()
    os.write(other, b"scheduler,throughput\nnone,1\n")
    os.close(other)
    code, _, err = iolab("import", f"/dev/fd/{end}")
    os.close(end)
    assert "regular file" not in err
    assert code in (0, 1)
