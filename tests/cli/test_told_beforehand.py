"""Faults are told before anything runs, and in words. Issue 14, points 2, 8 and 15.

Symptoms, as a newcomer met them: names that are not UTF-8 ended with exit code 70; `--overwrite`
let a file be removed without a word; a missing file was told by the measuring child after the head
of the table; `iolab doctor /nonexist` ended with 0; a number that a device does not take ended a
study in the middle of its first round; README said that exit code 1 meant usage only.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import EXIT_BUG, EXIT_CODES, main

ROOT = Path(__file__).parents[2]
NOT_UTF8 = b"caf\xe9"


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    "words",
    [
        ("iozone", "-s", "64", "-i", "0", "-f"),
        ("report",),
        ("compare", "--on", "sim:fixed-100us", "--scheduler"),
        ("compare", "--on"),
        ("sim", "profiles"),
        (),
    ],
)
def test_a_word_that_is_not_utf8_is_told(tmp_path, words):
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"iolab", *(word.encode() for word in words), NOT_UTF8],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"argument 'caf\\xe9' is not UTF-8: write it in UTF-8" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_working_directory_that_is_not_utf8_is_told(tmp_path):
    place = tmp_path / os.fsdecode(NOT_UTF8)
    place.mkdir()
    command = [sys.executable, "-m", "iolab"]
    study = ("iozone", "-s", "64", "-r", "4", "-i", "0")
    done = subprocess.run([*command, *study], cwd=place, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert b"caf\\xe9' is not UTF-8: rename it" in done.stderr
    assert not list(place.iterdir())
    for harmless in ("--version", "--help"):
        subprocess.run([*command, harmless], cwd=place, capture_output=True, check=True)


def test_a_working_directory_that_is_gone_is_told(tmp_path, monkeypatch):
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    code, _, err = run("workloads")
    assert (code, err.count("\n")) == (1, 1)
    assert "the working directory cannot be used: No such file or directory" in err


def test_files_whose_names_are_not_utf8_are_no_trouble(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(os.fsdecode(NOT_UTF8)).write_text("mine")
    assert run("iozone", "-s", "64", "-r", "4", "-i", "0", "--out", "results")[0] == 0
    code, _, err = run("iozone", "-s", "64", "-r", "4", "-i", "0", "--out", ".")
    assert code == 2, err
    assert Path(os.fsdecode(NOT_UTF8)).read_text() == "mine"


def test_a_file_name_that_no_file_can_have_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("report", "9" * 400)
    assert code == 1
    assert "File name too long" in err


def test_what_overwrite_lets_go_is_said_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("precious")
    words = ("iozone", "-s", "64", "-r", "4", "-i", "0", "-f", "mine", "--overwrite", "mine")
    code, _, err = run(*words, "-w", "--out", "a")
    assert code == 0
    assert "removed at the end" not in err
    Path("mine").write_text("precious")
    code, _, err = run(*words, "--out", "b")
    assert code == 0
    assert "mine is overwritten, as --overwrite says, and removed at the end; -w keeps" in err
    assert not Path("mine").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-i", "1", "-f", "none"), "there is no file {}/none, and read reads one: name one"),
        (("-i", "1", "-t", "2", "-F", "a", "b"), "there is no file {}/a, and read reads one"),
        (
            ("-i", "0", "-f", "no/f"),
            "no cannot be used: No such file or directory: name a directory",
        ),
        (("-i", "0", "-b", "no/x.xls"), "no does not exist: make it first, or name another"),
    ],
)
def test_a_missing_file_is_told_before_the_table(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("iozone", "-s", "64", "-r", "4", *words)
    assert (code, out) == (1, "")
    assert message.format(tmp_path.resolve()) in err
    assert not list(tmp_path.iterdir())


def test_doctor_fails_if_a_named_place_is_not_there(tmp_path):
    code, out, _ = run("doctor", str(tmp_path / "none"))
    assert code == 1
    assert "does not exist" in out
    code, out, _ = run("doctor", str(tmp_path))
    assert code == 0
    assert "the trial" not in out
    assert ("io_uring_poll" in out) == ("io_uring_poll asks the device for completions" in out)


@pytest.mark.needs_loop
def test_a_level_that_a_device_does_not_take_is_told_before_round_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = ("compare", "--on", "loop:64m", "--file-size", "4m", "--test", "write", "--rounds", "2")
    code, _, err = run(*base, "--max-sectors-kb", "64,99999999", "--out", "o")
    assert code in (1, 2)
    assert "'99999999': it must lie between 4 and" in err
    assert not (tmp_path / "o").exists(), "nothing was measured, so nothing is kept"


def test_exit_codes_are_listed_once():
    told = (ROOT / "docs" / "explanation" / "safety.md").read_text()
    rows = [f"| {code} | {text} |" for code, text in EXIT_CODES]
    assert "| code | meaning |\n| --- | --- |\n" + "\n".join(rows) + "\n" in told
    help_text = run("--help")[1]
    assert all(text in help_text for _, text in EXIT_CODES)
    assert {code for code, _ in EXIT_CODES} == {0, 1, 2, 3, 4, 5, EXIT_BUG, 128, 130}
