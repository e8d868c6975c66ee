"""Defaults of the user's own file: behind flags, never over a study file, bad keys named."""

import io
import os
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store

D2 = Path(__file__).parents[1] / "golden" / "published" / "iozone_vmware_pc601.csv"


@pytest.fixture
def iolab(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()

    def run(*words):
        out, err = io.StringIO(), io.StringIO()
        code = main([str(word) for word in words], console=Console(out, err))
        return code, out.getvalue(), err.getvalue()

    return run


def write(tmp_path, text):
    (tmp_path / "config" / "iolab.toml").write_text(text, encoding="utf-8")


def margin_of(folder):
    with Store.open_reader(folder / "study.db") as store:
        return store.study.margin


def test_flags_come_before_the_file_and_the_file_before_what_is_built_in(iolab, tmp_path):
    assert iolab("import", D2, "--out", tmp_path / "a", "--quiet")[0] == 0
    write(tmp_path, 'margin = "3%"\nunits = "si"\n')
    assert iolab("import", D2, "--out", tmp_path / "b", "--quiet")[0] == 0
    words = ("import", D2, "--out", tmp_path / "c", "--margin", "4%", "--units", "iec")
    assert iolab(*words)[0] == 0
    assert [margin_of(tmp_path / name) for name in "abc"] == [0.05, 0.03, 0.04]
    checked = ['id="units-si" class="units" checked' in page_of(tmp_path / n) for n in "abc"]
    assert checked == [False, True, False]
    assert iolab("report", tmp_path / "b")[0] == 0
    assert margin_of(tmp_path / "b") == 0.03


def page_of(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_results_go_below_the_directory_of_the_file(iolab, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 'out = "~/studies"\n')
    words = ("--rounds", "2", "--file-size", "1m", "--record-size", "4k,8k", "--quiet")
    for _ in range(2):
        code, _, err = iolab("compare", "--on", "sim:fixed-100us", *words)
        assert code == 0, err
    assert iolab("import", D2, "--name", "table", "--quiet")[0] == 0
    line = ("--on", "sim:fixed-100us", "iozone", "-I", "-s", "1m", "-i", "0")
    assert iolab(*line)[0] == 0
    found = {path.parent.name for path in (tmp_path / "home" / "studies").glob("*/study.db")}
    assert found == {"record-size-1", "record-size-2", "table-1", "iozone-1"}
    assert not (tmp_path / "iolab-out").exists()
    assert iolab("import", D2, "--out", tmp_path / "named", "--quiet")[0] == 0
    assert (tmp_path / "named" / "study.db").exists()


def test_a_stored_command_line_runs_again_whatever_the_units_of_the_file(iolab, tmp_path):
    stored, again = tmp_path / "stored", tmp_path / "again"
    line = ("--on", "sim:fixed-100us", "--out", stored, "iozone", "-I", "-s", "1m", "-i", "0")
    assert iolab(*line)[0] == 0
    write(tmp_path, 'units = "si"\n')
    code, _, err = iolab("run", stored, "--out", again)
    assert code == 0, err
    code, _, err = iolab("run", stored, "--units", "iec", "--out", tmp_path / "other")
    assert code == 1
    assert "--units iec is about the report" in err


def test_the_newest_study_below_that_directory_is_resumed(iolab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f'out = "{tmp_path}/studies"\n')
    code, _, err = iolab("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--resume")
    assert code == 1
    assert f"no {tmp_path}/studies/record-size-N holds a study" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('magrin = "3%"', "there is no key 'magrin'; did you mean 'margin'?"),
        ('units = "metric"', "units = 'metric'"),
        ('margin = "wide"', "margin: "),
        ("margin = ", "is no TOML"),
        ('out = ""', "out = '' names no directory"),
        ("out = 3", "out = 3 names no directory"),
        (f"margin = {'1' * 5000}", "is no TOML: "),
        (f"# {'long ' * 20_000}", "is larger than 64 KiB"),
        ('out = "~nobody-of-this-name/x"', "names no directory"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(iolab, tmp_path, text, message):
    write(tmp_path, text)
    code, out, err = iolab("import", D2, "--out", tmp_path / "a")
    assert (code, out) == (1, "")
    assert f"{tmp_path}/config/iolab.toml" in err
    assert message in err
    assert not (tmp_path / "a").exists()


def test_a_pipe_in_place_of_the_file_is_refused_and_not_waited_for(iolab, tmp_path):
    os.mkfifo(tmp_path / "config" / "iolab.toml")
    code, _, err = iolab("import", D2, "--out", tmp_path / "a")
    assert code == 1
    assert "iolab.toml is no regular file" in err
