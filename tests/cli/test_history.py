"""``iolab history`` as it is typed: folders, files, refusals."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

D2 = Path(__file__).parents[1] / "golden" / "published" / "iozone_vmware_pc601.csv"
WORDS = ("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--file-size", "256k")


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    for name in ("one", "two"):
        code, _, err = iolab(*WORDS, "--direct", "--rounds", "3", "--out", folder / name, "--quiet")
        assert code == 0, err
    (folder / "beside").mkdir()
    return folder


def test_a_folder_stands_for_the_studies_in_it(studies, tmp_path):
    code, out, err = iolab("history", studies)
    assert (code, err) == (0, "")
    assert out.startswith("Throughput over 2 studies, oldest first; higher is better. 2 are")
    assert f"{studies}/one" in out
    assert f"{studies}/two" in out
    assert "2 studies are too few to find changes of level" in out
    page = tmp_path / "history.html"
    code, out, err = iolab("history", studies / "one", studies / "two", "--out", page)
    assert (code, err) == (0, "")
    assert out.endswith(f"\nchart:    {page}\n")
    assert "Simulated studies are not measured." in page.read_text(encoding="utf-8")
    assert iolab("history", studies, "--out", tmp_path / "history.svg")[0] == 0
    assert (tmp_path / "history.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_foreign_database_in_a_folder_is_left_out_and_told(studies, tmp_path):
    """One such file stopped the command."""
    folder = tmp_path / "mixed"
    shutil.copytree(studies, folder)
    foreign = folder / "browser.db"
    foreign.write_text("no database")
    code, out, err = iolab("history", folder)
    assert code == 0
    assert "Throughput over 2 studies" in out
    assert err.startswith(f"iolab: note: {foreign} is damaged or not a study")
    assert err.endswith(": it is left out\n")
    code, out, err = iolab("history", folder / "one", folder / "two", foreign)
    assert (code, out) == (5, "")
    assert f"{foreign} is damaged or not a study" in err


def test_json_has_all_of_it(studies):
    code, out, _ = iolab("history", studies, "--json", "--metric", "median")
    found = json.loads(out)
    assert code == 0
    assert found["metric"] == "latency_ns_p50"
    (group,) = found["groups"]
    assert [Path(entry["name"]).name for entry in group["entries"]] == ["one", "two"]
    assert group["entries"][1]["step"]["word"] == "same"


def test_a_table_is_a_study_of_another_kind(studies):
    code, out, _ = iolab("history", studies, D2)
    assert code == 0
    assert f"{D2.name}: it is imported, and" in " ".join(out.split())


def test_a_copy_is_told(studies, tmp_path):
    shutil.copytree(studies / "one", tmp_path / "copy")
    _, out, _ = iolab("history", studies, tmp_path / "copy")
    assert "it is the same study as" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("{0}/one",), "a history needs at least two different studies, and there is one"),
        (("{0}/one", "{0}/one"), "{0}/one is named twice, and counts once"),
        (("{0}/beside",), "there is no study in {0}/beside: name a results directory"),
        (("{0}/nowhere",), "{0}/nowhere does not exist"),
        (("{0}", "--metric", "p98"), "--metric: 'p98' is not a metric; did you mean 'p99'?"),
        (("{0}", "--margin", "wide"), "--margin: "),
        (("{0}", "--out", "x.pdf"), "no chart is written as '.pdf'"),
        (("{0}", "--overwrite", "x.html"), "--overwrite names a file, and none is written"),
        (("{0}/one", str(D2), "--out", "x.svg"), "no two of these studies are comparable"),
    ],
)
def test_what_cannot_be_done_is_told(studies, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    code, _, err = iolab("history", *(word.format(studies) for word in words))
    assert code == 1
    assert told.format(studies) in err
    assert not list(tmp_path.iterdir())


def test_what_is_no_regular_file_is_left_out_aloud(studies, tmp_path):
    """A study whose database was a link to nowhere, or a pipe, was not mentioned."""
    folder = tmp_path / "folder"
    shutil.copytree(studies, folder)
    (folder / "piped").mkdir()
    os.mkfifo(folder / "piped" / "study.db")
    (folder / "linked").mkdir()
    (folder / "linked" / "study.db").symlink_to("nowhere")
    (folder / "nested" / "study.db").mkdir(parents=True)
    code, _, err = iolab("history", folder)
    assert code == 0, err
    for name in ("piped", "linked", "nested"):
        assert f"{folder}/{name} is left out: its study.db is not a regular file" in err
    code, _, err = iolab("history", folder / "piped", folder)
    assert code == 1, "a pipe that is named is not waited for"
    assert "study.db" in err
