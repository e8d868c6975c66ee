"""``iolab advise`` as it is typed: text, JSON, refusals, and proofs that run in simulation."""

import json

import pytest

from iolab.advise import FILE_SYSTEMS
from iolab.cli.advise import NAME
from iolab.cli.main import main
from iolab.library import advising

D3 = ("stripe", "--raid", "5", "--disks", "8", "--unit", "128k")


def answer(capsys, *words):
    assert main([NAME, *words]) == 0
    return capsys.readouterr().out


def refusal(capsys, *words):
    assert main([NAME, *words]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_lines_come_with_reason_and_source(capsys):
    text = answer(capsys, *D3, "--fs", "ufs", "--memory", "1g")
    assert "7 x 128 KiB = 896 KiB of data per stripe" in text
    assert "\n  newfs -C 112 RAW_DEVICE\n      112 blocks of 8 KiB are 896 KiB" in text
    assert "[newfs(1M)]" in text
    assert "UFS cannot align clusters to stripes" in text


@pytest.mark.parametrize("name", [row.name for row in FILE_SYSTEMS])
def test_json_has_every_line(name, capsys):
    found = json.loads(answer(capsys, *D3, "--fs", name, "--json"))
    assert found["subject"] == "stripe"
    assert found["geometry"]["data_disks"] == 7
    assert found["proofs"] is None
    assert found["is_simulated"] == (name in ("ext4", "xfs", "ufs", "vxfs", "zfs"))
    assert all({"where", "line", "reason", "source"} == set(line) for line in found["lines"])


def test_random_names_the_four_rules_for_every_file_system(capsys):
    text = answer(capsys, "random")
    assert all(f"== {row.title} ==" in text for row in FILE_SYSTEMS)
    found = json.loads(answer(capsys, "random", "--json", "--app-io", "16k"))
    assert found["app_io_bytes"] == 16384
    assert [row["file_system"] for row in found["file_systems"]] == [r.name for r in FILE_SYSTEMS]
    assert "recordsize=16K" in answer(capsys, "random", "--fs", "zfs", "--app-io", "16k")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*D3, "--fs", "exf4"), "no advice for such a file system; did you mean 'ext4'?"),
        ((*D3, "--fs", "qfs", "--prove"), "no simulated proof of the advice for qfs yet"),
        ((*D3, "--fs", "ufs", "--out", "x"), "--prove, which is not given"),
        (("random", "--prove"), "name it, as in --fs ext4"),
        (("stripe", "--raid", "1", "--disks", "2", "--fs", "xfs", "--prove"), "nothing differs"),
        (("stripes",), "did you mean 'stripe'?"),
        ((), "stripe, random"),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(words, told, capsys):
    assert told in refusal(capsys, *words)


@pytest.mark.timeout(600)
def test_advice_is_proved_in_simulation(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(advising, "ROUNDS", 2)
    words = ("stripe", "--raid", "5", "--disks", "3", "--unit", "32k", "--fs", "xfs", "--degraded")
    out = str(tmp_path / "out")
    found = json.loads(answer(capsys, *words, "--prove", "--json", "--out", out))
    assert [proof["name"] for proof in found["proofs"]] == ["cluster", "geometry"]
    assert all(proof["verdict"].startswith("Simulated on ") for proof in found["proofs"])
    stack = (tmp_path / "out" / "advice-raid5-3x32k-degraded-xfs.toml").read_text()
    assert "lost_member = 0" in stack


@pytest.mark.timeout(600)
def test_a_proof_prints_its_verdict_and_can_be_repeated(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(advising, "ROUNDS", 2)
    for number in (1, 2):
        words = ("random", "--fs", "xfs", "--prove", "--out", str(tmp_path))
        text = answer(capsys, *words)
        assert "-- proof 1 of 1: reads of 8k at random places" in text
        assert f"advice-disk-xfs-random-read-ahead-{number}/report.html" in text
    (tmp_path / "advice-disk-xfs.toml").write_text("changed")
    assert "another stack" in refusal(capsys, *words)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "proofs"),
    [
        ("ufs", ["cluster", "write-clusters", "read-ahead"]),
        ("vxfs", ["cluster", "write-clusters", "read-ahead", "log"]),
    ],
)
def test_advice_for_solaris_is_proved_and_not_to_be_repeated_on_a_device(
    name, proofs, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(advising, "ROUNDS", 2)
    words = ("stripe", "--raid", "5", "--disks", "3", "--unit", "64k", "--fs", name)
    out = tmp_path / "out"
    found = json.loads(answer(capsys, *words, "--prove", "--json", "--out", str(out)))
    assert [proof["name"] for proof in found["proofs"]] == proofs
    assert all(proof["verdict"].startswith("Simulated on ") for proof in found["proofs"])
    stack = (out / f"advice-raid5-3x64k-{name}.toml").read_text()
    assert "[queue]\nmax_sectors_kb = 128" in stack
    for proof in proofs[1:]:
        page = (out / f"advice-raid5-3x64k-{name}-{proof}-1" / "report.html").read_text()
        assert "Repeat on a real device" not in page, proof
