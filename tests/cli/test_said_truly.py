"""Sentences of commands that a newcomer found to be false: fewer rounds than are there, plans below
the least that decides, two lines of noise without their class.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from iolab.cli import doctor as doctor_command
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.library import doctor
from iolab.testbed import command

ROOT = Path(__file__).parents[2]
STUDY = (
    *("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--test", "write,read"),
    *("--file-size", "1m", "--seed", "7", "--out", "out"),
)


@pytest.fixture
def iolab(monkeypatch, tmp_path):
    """Run one command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        return code, " ".join(out.getvalue().split()), " ".join(err.getvalue().split())

    return run


def test_fewer_rounds_than_there_are_leave_nothing_to_do(iolab):
    assert iolab(*STUDY, "--rounds", "6")[0] == 0
    code, _, err = iolab("run", "out", "--resume", "--rounds", "4")
    assert code == 0
    assert "it has 6 complete rounds already, more than the 4 asked for: nothing is to do" in err
    assert "only 4 complete rounds" not in err
    assert "2 treatments, 6 rounds" in err
    assert iolab("run", "out", "--resume", "--rounds", "7")[0] == 0
    assert "7 rounds" in iolab("report", "out")[1]


def test_no_plan_is_below_the_rounds_that_decide_and_noise_has_a_class(iolab):
    iolab(*STUDY, "--rounds", "4")
    _, out, _ = iolab("plan", "out")
    assert "noise writes: 8k / 4k: sd" in out
    assert "noise reads: 8k / 4k: sd" in out
    assert "3 rounds would find a difference of twice the margin, 3 rounds would show 'same'" in out


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("[global]\nrw=randread\n[a]\nsize=1m\n", "a job file of fio: `iolab fio 'my file'`"),
        ("define fileset name=x\n", "a script of Filebench: `iolab filebench -f 'my file'`"),
        (
            "workload=site.ycsb.CoreWorkload\nrecordcount=100\n",
            "a file of properties of YCSB: `iolab ycsb run rocksdb -P 'my file'`",
        ),
        ("rounds = 4k\n", 'texts need quotes, as in "4k"'),
    ],
)
def test_a_file_of_another_program_is_sent_to_its_command(iolab, tmp_path, text, advice):
    """`iolab run j.fio` said that texts need quotes."""
    (tmp_path / "my file").write_text(text)
    code, _, err = iolab("run", "my file")
    assert code != 0
    assert "this is not TOML" in err
    assert advice in err


def test_who_lacks_root_is_told_what_needs_it(iolab, monkeypatch, tmp_path):
    """A study of schedulers said "this needs root ... or use dir:PATH without knobs" of `dir:`."""
    monkeypatch.setattr(command.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(command.installed, "INSTALLED_AGENT", tmp_path / "none")
    words = ("--test", "write", "--file-size", "1m", "--rounds", "3", "--out", "out")
    code, _, err = iolab("compare", "--on", f"dir:{tmp_path}", "--scheduler", "none,bfq", *words)
    assert code != 0
    assert "setting scheduler needs root" in err
    assert f"leave scheduler out: dir:{tmp_path} alone needs no root" in err


def test_a_disk_in_use_is_protected_not_a_disk_that_cannot_do_something():
    """Symptom: "ok device vda cannot be erased": a defect of the disk, and why is that in order?"""
    why = "cannot be erased by `--on device:`: it carries the running system (/)"
    source = (ROOT / "crates/iolab-agent/src/doctor.rs").read_text(encoding="utf-8")
    assert f'"{doctor_command._REFUSED}{{why}}"' in source
    check = {"name": "device vda", "status": "ok", "message": why, "hint": ""}
    out = io.StringIO()
    doctor_command._print(Console(out, io.StringIO()), check)
    assert " ".join(out.getvalue().split()) == (
        "ok device vda is protected: iolab refuses to erase it with `--on device:`, because"
        " it carries the running system (/)"
    )


def test_advice_that_only_root_can_follow_says_so():
    hint = "to change its knobs: --allow-knobs-on vda"
    check = {"name": "dir", "status": "ok", "message": "", "hint": hint}
    assert doctor._for_a_user(check)["hint"].startswith(f"{hint} (as root; dir:PATH")
    assert doctor._for_a_user({**check, "hint": "install it"})["hint"] == "install it"
