"""`iolab report --md` and `--json`: printed, and nothing written anywhere."""

import io
import json
from pathlib import Path

import jsonschema
import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

ROOT = Path(__file__).parents[2]
D2 = ROOT / "tests" / "golden" / "published" / "iozone_vmware_pc601.csv"
SCHEMA = ROOT / "docs" / "reference" / "verdict.schema.json"


def iolab(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(a) for a in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def study(tmp_path):
    assert iolab("import", D2, "--out", tmp_path / "d2")[0] == 0
    return tmp_path / "d2"


def files(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_json_is_the_verdict_file_and_follows_the_schema(study):
    before = files(study)
    code, out, _ = iolab("report", study, "--json")
    assert code == 0
    written = (study / "verdict.json").read_text(encoding="utf-8")
    assert out == written.replace("\N{NARROW NO-BREAK SPACE}", " ")
    jsonschema.validate(json.loads(out), json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert "as two independent samples" not in out
    assert "Imported from" in json.loads(out)["methods"]
    assert files(study) == before


def test_markdown_is_printed_and_nothing_is_written(study):
    before = files(study)
    code, out, _ = iolab("report", study, "--md")
    assert code == 0
    assert out.startswith("### ")
    assert "<summary>Methods</summary>" in out
    assert files(study) == before


def test_both_at_once_or_with_a_directory_are_refused(study, tmp_path):
    for arguments, message in (
        (["--md", "--json"], "--json and --md exclude each other: see `iolab report --help`"),
        (["--md", "--out", tmp_path / "x"], "writes no files"),
        (["--json", "--out", tmp_path / "x"], "writes no files"),
    ):
        code, out, err = iolab("report", study, *arguments)
        assert (code, out) == (1, "")
        assert message in err
    assert not (tmp_path / "x").exists()


def test_strict_tells_an_open_answer_by_its_exit_code(study):
    document = json.loads(iolab("report", study, "--json")[1])
    expected = 4 if document["headline_word"] == "undecided" else 0
    assert iolab("report", study, "--json", "--strict")[0] == expected


def test_another_metric_may_be_asked_for(study):
    code, _, err = iolab("report", study, "--json", "--metric", "p98")
    assert code == 1
    assert "--metric" in err


def test_the_short_answer_names_what_prints_the_rest(study):
    code, short, _ = iolab("report", study)
    assert code == 0
    assert len(short.splitlines()) <= 25
    assert f"All of it: iolab report {study} --full" in short
    full = iolab("report", study, "--full")[1]
    assert len(full.splitlines()) > 60
    assert "Single cells (exploratory)" in full
    assert f"data:     {study / 'study.db'}" in full


def test_quiet_leaves_the_sentence(study):
    code, out, err = iolab("report", study, "--quiet")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    assert out.startswith("Imported from iozone_vmware_pc601.csv. ")


def test_quiet_leaves_the_sentence_of_a_run(tmp_path):
    """Notes, the plan and "... trials finished" stood before it."""
    words = ("--on", "sim:fixed-100us", "--record-size", "4k,8k", "--file-size", "256k", "--direct")
    code, out, err = iolab("compare", *words, "--rounds", "2", "--out", tmp_path / "a", "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("Simulated on sim:fixed-100us. ")
    assert out.count("\n") == 1
    loud = iolab("compare", *words, "--rounds", "2", "--out", tmp_path / "b")[2]
    assert "iolab: note: only 2 complete rounds: where results vary" in loud
    assert "iolab: 4 trials finished, 2 complete rounds" in loud
    # A failure is no note.
    code, _, err = iolab("compare", *words, "--out", tmp_path / "a", "--quiet")
    assert code != 0
    assert err.startswith("iolab: ")


def test_a_caveat_is_told_once_in_an_output(tmp_path):
    """Caveats that can still be heeded were told before the run and again in the answer."""
    words = ["compare", "--on", f"dir:{tmp_path}", "--record-size", "4k,8k", "--file-size", "256k"]
    words += ["--buffered", "--test", "read", "--rounds", "2", "--full"]
    told = "lie on the file system that is measured"
    both = io.StringIO()
    console = Console(both, both)
    assert main([*words, "--out", str(tmp_path / "a")], console=console) == 0, both.getvalue()
    text = " ".join(both.getvalue().split())
    assert text.count(told) == 1
    assert text.index(told) < text.index("read")
    assert "Told above, before the first trial." in text
    assert told in " ".join((tmp_path / "a" / "report.html").read_text().split())
    # An answer that is read without the notes, as from a file, is complete.
    out = " ".join(iolab(*words, "--out", tmp_path / "b")[1].split())
    assert out.count(told) == 1
    assert "old above" not in out


def test_of_a_model_only_the_answer_tells_what_it_rests_on(tmp_path):
    words = ("--on", "sim:fixed-100us", "--record-size", "4k,8k", "--file-size", "256k", "--direct")
    code, out, err = iolab("compare", *words, "--rounds", "2", "--full", "--out", tmp_path / "a")
    assert code == 0, err
    assert "iolab sim profiles fixed-100us" not in err
    assert "iolab sim profiles fixed-100us" in " ".join(out.split())


def test_the_page_is_shown_by_the_browser_of_the_user(study, tmp_path, monkeypatch):
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {told}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setattr("webbrowser._tryorder", None)
    monkeypatch.setattr("webbrowser._browsers", {})
    assert iolab("report", study, "--open")[0] == 0
    assert told.read_text().strip() == (study / "report.html").as_uri()


def test_without_a_browser_the_page_is_named(study, monkeypatch):
    monkeypatch.setenv("BROWSER", "/nowhere/browser")
    monkeypatch.setattr("webbrowser._tryorder", [])
    code, _, err = iolab("report", study, "--open")
    assert code == 1
    assert f"open {(study / 'report.html').as_uri()} yourself" in err
