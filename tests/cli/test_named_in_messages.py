"""A message names what was typed, and what to do. Issue 14, point 8.

Symptoms: a recording that is not there was named by another file; a missing directory was told as
a full disk; --inject 20 asked for "30m, 2h", and a pause of days ended a study of twenty rounds
without an operation; a default directory was told as if it had been typed; advice to --resume where
a changed study cannot be resumed, or a budget is used up; "give it, or another option, several".
Causes: one text for all that can go wrong with a file, and advice that knew no option but one.
"""

from __future__ import annotations

import errno
import importlib.util
import io
from pathlib import Path

import pytest

from iolab.archive.write import write_new
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import IolabError


def _commands():
    path = Path(__file__).with_name("test_commands.py")
    spec = importlib.util.spec_from_file_location("commands", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARE = _commands().COMPARE
iolab = _commands().iolab

TYPED = [
    ("report nosuch", "nosuch does not exist: name the directory that --out made"),
    ("report nosuch.db", "nosuch.db does not exist"),
    ("archive nosuch", "nosuch does not exist: name the directory that --out made"),
    ("plan nosuch", "nosuch does not exist: name a study file, or results to look back at"),
    ("import nosuch.csv", "nosuch.csv: there is no such file: name a file: what fio, iozone"),
    ("import folder", "folder cannot be read: Is a directory: name a file: what fio, iozone"),
    ("sim dispatch nosuch", "'nosuch' is not a file"),
    ("aa --on loop:1g --workload nosuch", "--workload: 'nosuch' is not a workload"),
    ("aa --on loop:1g --inject 20", "--inject 20: this is not a pause"),
    ("aa --on loop:1g --inject 0", "as in --inject 20us or --inject 1ms"),
    ("aa --on loop:1g --inject 5000d", "--inject 5000d: trials would consist of the pause"),
    ("compare --on loop:1g --image-dir /nosuch", "--image-dir /nosuch does not exist"),
    ("compare --on ./file.csv", "use --on loop:1g, --on dir:PATH, "),
    ("compare --on ./folder", "use --on loop:1g, --on dir:./folder, "),
]


@pytest.mark.parametrize(("typed", "told"), TYPED, ids=[typed for typed, _ in TYPED])
def test_what_was_typed_is_named(iolab, typed, told):
    Path("folder").mkdir()
    Path("file.csv").write_text("a,b\n")
    run = iolab(*typed.split())
    assert run.code == 1
    assert told in run.err
    assert not Path("iolab-out").exists()


def test_where_a_study_can_go_is_named(iolab):
    assert iolab(*COMPARE, "--record-size", "4k,8k", "--out", "results").code == 0
    run = iolab("archive", "results", "--out", "results")
    assert run.err.startswith("iolab: results is a directory, and an archive is a file: name the")
    with pytest.raises(IolabError, match="there is no directory no: make it first") as caught:
        write_new(Path("no/such.iolab"), b"")
    assert "room" not in str(caught.value)


def test_an_answer_that_is_no_report_is_not_printed_by_report(iolab):
    with Path("/dev/full").open("w") as full:
        err = io.StringIO()
        assert main(["workloads"], console=Console(full, err)) == 1
    assert "the answer cannot be printed: No space left on device: make room" in err.getvalue()
    assert "iolab report" not in err.getvalue()


def test_how_to_compare_is_said_with_an_example(iolab):
    run = iolab(*COMPARE, "--record-size", "4k", "--test", "write", "--dry-run")
    assert "give an option several levels, as in --record-size 4k,64k" in run.err
    assert "give it" not in run.err


@pytest.mark.parametrize(("budget", "more"), [([], ""), (["--budget", "1h"], " and a larger --b")])
def test_point_8_after_a_level_that_always_fails_a_budget_is_told_of(iolab, budget, more):
    levels = ["--record-size", "4k", "--scheduler", "none,bfq"]
    run = iolab(*COMPARE, *levels, *budget, mode="fail-scheduler=bfq")
    assert run.code == 1
    assert f" --resume`{more}" in run.err
    assert "correct the cause, then continue with `iolab run " in run.err
    assert "what cannot work here is left out in a new study" in run.err


def test_point_7_a_rehearsal_names_one_number_of_rounds(iolab):
    """A note asked for 5 rounds, the last line for 11."""
    arguments = [*COMPARE, "--record-size", "4k,8k", "--test", "write"]
    rehearsed = iolab(*arguments, "--dry-run")
    assert "plan at least" not in rehearsed.err
    assert "About 11 rounds decide" in rehearsed.out
    run = iolab(*arguments)
    assert "only 2 complete rounds: where results vary" in run.err


class _NearlyFull(io.RawIOBase):
    """An unbuffered stream with room for some bytes, as that of ``python -u`` on a full disk."""

    def __init__(self, room):
        self.taken = b""
        self._room = room

    def writable(self):
        return True

    def write(self, piece):
        if len(self.taken) == self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(piece)[: self._room - len(self.taken)]
        self.taken += part
        return len(part)


@pytest.mark.parametrize("print_to", ["result", "stream"])
def test_an_unbuffered_answer_on_a_full_disk_is_an_error(print_to):
    """`iolab export DIR > FILE` under PYTHONUNBUFFERED=1 lost its end, with exit code 0."""
    full = _NearlyFull(10)
    console = Console(io.TextIOWrapper(full, write_through=True), io.StringIO())
    text = "0123456789abcdef"
    with pytest.raises(IolabError, match="No space left on device"):
        getattr(console, print_to)(text if print_to == "result" else text.encode())
    assert full.taken == b"0123456789"
    roomy = _NearlyFull(100)
    console = Console(io.TextIOWrapper(roomy, write_through=True), io.StringIO())
    console.result(text)
    console.stream(text.encode())
    assert roomy.taken.decode() == f"{text}\n{text}"
