"""`iolab plan` and `iolab aa` from the command line, on simulated stacks: no agent, no root."""

import io
import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import StudyError
from iolab.library import calibrations
from iolab.run.same_machine import check_same_machine
from iolab.store import facts
from iolab.store.db import Store
from iolab.testbed.model import LoopTestbed, make_testbed

STUDY = """
name = "schedulers"
testbed = "{testbed}"
rounds = 5
{more}
[factors]
scheduler = ["none", "mq-deadline", "bfq"]
record_size = ["4k", "8k", "16k", "32k", "64k"]
[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["write", "read", "random-read", "random-write"]
file_size = "256m"
[[workloads]]
name = "mix"
kind = "mixed"
duration = "20s"
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
file_size = "64m"
"""
AA = ("aa", "--on", "sim:fixed-100us", "--rounds", "6", "--seed", "7")


@pytest.fixture
def iolab(monkeypatch, tmp_path):
    """Run one command in an empty directory on a machine without an agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IOLAB_DEBUG", raising=False)
    monkeypatch.setenv("IOLAB_AGENT", "/nowhere/iolab-agent")

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def write_study(testbed="loop:1g", more=""):
    text = STUDY.format(testbed=testbed, more=more)
    # A workload's file size is a setting of its own.
    text = text.replace('file_size = "256m"', 'settings = { file_size = "256m" }')
    Path("study.toml").write_text(text, encoding="utf-8")


def test_a_plan_without_calibration_gives_a_range_and_says_how_to_measure(iolab):
    write_study()
    code, out, err = iolab("plan", "study.toml")
    assert code == 0, err
    assert "Plan of 'schedulers' on loop:1g: 18 treatments a round, 5 rounds." in out
    assert "not measured here" in out
    assert "`iolab aa --on loop:1g` measures it" in out
    assert len([line for line in out.splitlines() if line.startswith("rounds ")]) == 3
    for part in ("exact test (sign flips)", "no interval of a median below 6", "a round writes"):
        assert part in out
    assert list(Path().iterdir()) == [Path("study.toml")]


def test_a_plan_says_what_to_cut_when_the_budget_is_too_small(iolab):
    write_study(more='budget = "10m"')
    code, out, _ = iolab("plan", "study.toml", "--noise", "5%")
    assert code == 0
    assert "are needed; to cut:" in out
    cuts = [line for line in out.splitlines() if line.strip().startswith("- ")]
    assert any("record_size" in line for line in cuts)
    assert any("leave workload mix out" in line for line in cuts)
    write_study(more='budget = "100h"')
    assert ": enough" in iolab("plan", "study.toml", "--noise", "1%")[1]


def test_more_noise_needs_more_rounds(iolab):
    write_study()
    needed = []
    for noise in ("1%", "4%", "12%"):
        out = iolab("plan", "study.toml", "--noise", noise)[1]
        line = next(line for line in out.splitlines() if line.startswith("rounds "))
        needed.append(int(line.split()[1]))
    assert needed == sorted(needed)
    assert needed[0] < needed[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "study.toml", "--noise", "huge"), "--noise:"),
        (("plan", "gone.toml"), "gone.toml does not exist"),
        (("aa",), "--on is missing"),
        ((*AA, "--for-rounds", "1"), "--for-rounds 1 is not a number from 2 to 1000"),
        ((*AA, "--inject", "soon"), "--inject soon: this is not a pause"),
        ((*AA, "--depth", "1,8"), "--depth has 2 levels, an A/A study one treatment"),
        ((*AA, "--workload", "video", "--workload", "iops"), "one workload, not 2"),
        (
            ("aa", "--workload", "study.toml", "--record-size", "4k"),
            "study.toml is a study, which says its levels itself",
        ),
        ((*AA, "--rounds", "none"), "rounds"),
        ((*AA, "--rounds", "2"), "2 rounds are too few"),
    ],
)
def test_nonsense_is_refused_with_words(iolab, arguments, message):
    write_study()
    code, _, err = iolab(*arguments)
    assert code != 0
    assert message in err


def test_an_aa_study_is_kept_and_used_by_the_planner(iolab):
    code, out, err = iolab(*AA, "--out", "o", "--inject", "10us")
    assert code == 0, err
    assert "A/A over 6 rounds: B / A = 1.0000" in out
    assert "Positive control delay=10us: found" in out
    assert "as expected" in out
    result = json.loads(Path("o/aa.json").read_text(encoding="utf-8"))
    # 100 us of service, 10 us of pause.
    assert result["control"]["expected_ratio"] == pytest.approx(100 / 110, abs=0.01)
    assert result["control"]["ratio"] == pytest.approx(100 / 110, abs=0.01)
    assert result["false_positives"] == 0
    (kept,) = Path("iolab-out/aa").glob("*.json")
    document = json.loads(kept.read_text(encoding="utf-8"))
    assert document["result"]["sd_upper"] == result["sd_upper"]
    assert document["machine"] == {"testbed": "sim:fixed-100us", "kind": "simulated"}
    write_study("sim:fixed-100us")
    Path("study.toml").write_text(
        Path("study.toml").read_text().replace('"none", "mq-deadline", "bfq"', '"noop", "cfq"')
    )
    plan = iolab("plan", "study.toml")[1]
    assert f"A/A of 6 rounds, {document_date(document)}, {kept}" in plan
    assert "nothing is written but the results" in plan


def document_date(document):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(document["made_at_unix_ns"] / 1e9, tz=UTC).strftime("%Y-%m-%d")


def test_an_aa_study_is_resumed_with_more_rounds(iolab):
    assert iolab(*AA, "--out", "o")[0] == 0
    more = ("aa", "--on", "sim:fixed-100us", "--rounds", "8", "--seed", "7")
    code, out, err = iolab(*more, "--out", "o", "--resume")
    assert code == 0, err
    assert "A/A over 8 rounds" in out


def test_an_aa_study_takes_the_flags_of_a_workload_and_says_what_it_lacks(iolab):
    asked = (*AA, "--test", "random-read", "--file-size", "1m", "--scheduler", "noop")
    code, out, err = iolab(*asked, "--out", "o")
    assert code == 0, err
    assert "A/A over 6 rounds" in out
    with Store.open_reader(Path("o/study.db")) as store:
        study = store.study
    assert study.factors == {"label": ["A", "B"]}
    assert study.settings["record_size"] == "4k"
    assert study.settings["scheduler"] == "noop"
    before = err.partition("trials finished")[0]
    assert "nothing shows that a difference would be found" in before
    assert "6 rounds make 1 study of 5" in before
    assert "--design pairs" in before


def test_a_plan_in_slices_names_its_design_and_its_own_noise(iolab):
    write_study(more='design = "pairs"')
    text = Path("study.toml").read_text().replace('"mq-deadline", "bfq"', '"mq-deadline"')
    text = text.replace('"write", "read", "random-read", "random-write"', '"random-read"')
    text = text.replace('"4k", "8k", "16k", "32k", "64k"', '"4k"').replace("rounds = 5\n", "")
    Path("study.toml").write_text(text)
    code, out, err = iolab("plan", "study.toml")
    assert code == 0, err
    assert "as many balanced units as the budget admits" in out
    assert "alternating slices of 12 to 65 ms on 2 twin devices" in out
    assert "`iolab aa --on loop:1g --design pairs` measures it" in out
    assert "of a round's ratio assumed 1 to 10 %" in out


def test_an_aa_study_takes_the_workload_of_a_study(iolab):
    write_study("sim:fixed-100us")
    text = Path("study.toml").read_text().replace('"none", "mq-deadline", "bfq"', '"noop", "cfq"')
    Path("study.toml").write_text(text.replace('"256m"', '"1m"'))
    code, out, err = iolab("aa", "--workload", "study.toml", "--rounds", "4", "--out", "o")
    assert code == 0, err
    assert "A/A of writes over 4 rounds" in out
    with Store.open_reader(Path("o/study.db")) as store:
        study = store.study
    assert study.factors == {"label": ["A", "B"]}
    assert study.settings["record_size"] == "4k"
    assert study.workloads == ["iozone"]
    refused = iolab("aa", "--workload", "study.toml", "--rounds", "4", "--inject", "10us")
    assert refused[0] != 0
    assert "mixed workloads only" in refused[2]


def test_a_dry_run_of_compare_says_how_many_rounds_decide(iolab):
    code, out, _ = iolab(
        *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
        *("--file-size", "1m", "--dry-run"),
    )
    assert code == 0
    assert "rounds decide at a margin of 5 %" in out


def test_a_damaged_calibration_is_told_by_name(iolab, monkeypatch):
    write_study()
    testbed = make_testbed("loop", "1g", {})
    path = calibrations.FOLDER / f"{calibrations.fingerprint(testbed)}.json"
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    code, _, err = iolab("plan", "study.toml")
    assert code != 0
    assert str(path) in err
    assert "run `iolab aa` again" in err


def test_another_kernel_or_testbed_has_another_fingerprint(monkeypatch):
    testbed = LoopTestbed()
    here = calibrations.fingerprint(testbed)
    assert calibrations.fingerprint(replace(testbed, size_bytes=1 << 31)) != here
    name = os.uname()
    monkeypatch.setattr(
        os, "uname", lambda: os.uname_result((name[0], name[1], "9.9.9", name[3], name[4]))
    )
    assert calibrations.fingerprint(testbed) != here


def test_another_kernel_is_not_resumed_on(iolab, digests_anew):
    """A simulated study with the facts of a real one: 6.14 stored, 6.17 here."""
    assert iolab(*AA, "--out", "o")[0] == 0
    with sqlite3.connect("o/study.db") as connection:
        connection.execute("DROP TRIGGER record_facts_no_delete")
        connection.execute("DELETE FROM record_facts WHERE record_id = 1")
        facts.insert(connection, 1, {"kernel.release": "6.14.0"})
        digests_anew(connection)
    with Store.open_reader(Path("o/study.db")) as store:
        check_same_machine(store, {"kernel.release": "6.14.0", "cpu.model": "any"})
        check_same_machine(store, {})
        with pytest.raises(StudyError, match=r"begun with kernel.release = 6.14.0; here it is 6.1"):
            check_same_machine(store, {"kernel.release": "6.17.0"})


def test_noise_of_a_plan_is_a_share(iolab):
    write_study()
    out = iolab("plan", "study.toml", "--noise", "3%")[1]
    assert "sd 3 % of a round's ratio (as given by --noise)" in out


def test_results_are_looked_back_at_and_take_no_flags(iolab):
    run = ("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--seed", "3")
    size = ("--test", "read", "--file-size", "1m", "--rounds", "10", "--out", "out")
    code, _, err = iolab(*run, *size)
    assert code == 0, err
    code, out, err = iolab("plan", "out")
    assert code == 0, err
    assert "Looking back at 'scheduler' on sim:fixed-100us: 10 rounds, margin 5 %." in out
    assert "deadline / noop: sd 0 %" in out
    assert "the first 8 rounds ask for 8 (Stein)" in out
    assert "2 of 2 medians are known to ±3 % after 10 rounds" in out
    assert iolab("plan", "out/study.db")[1] == out
    code, out, err = iolab("plan", "out", "--rounds", "3")
    assert (code, out) == (1, "")
    assert "--rounds: out holds results" in err
    assert iolab("plan", "nowhere")[0] == 1


def test_a_study_ends_when_its_intervals_are_narrow_enough(iolab):
    run = ("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--seed", "3")
    more = ("--test", "read", "--file-size", "1m", "--width", "2%", "--out", "out")
    code, out, err = iolab(*run, *more, "--rounds", "30", "--full")
    assert code == 0, err
    assert "at most 30 rounds for intervals of ±2 %" in err
    assert "8 complete rounds; 8 rounds give the wanted width" in err
    assert "wanted width" in out
    code, _, err = iolab(*run, *more[:-1], "other")
    assert (code, "a width alone may take for ever" in err) == (1, True)


def test_a_plan_says_what_a_width_will_cost(iolab):
    write_study(more='width = "2%"')
    text = Path("study.toml").read_text(encoding="utf-8").replace("rounds = 5", "rounds = 100")
    Path("study.toml").write_text(text, encoding="utf-8")
    code, out, err = iolab("plan", "study.toml", "--noise", "5%")
    assert code == 0, err
    assert "18 treatments a round, at most 100 rounds" in out
    (line,) = [line for line in out.splitlines() if line.startswith("width ")]
    # Two comparisons: t of 7 degrees at 1 - .0125 is 2.8412; (2.8412 x .05 / ln 1.02)^2 = 51.5.
    assert "take about 52 rounds; the first 8 decide how many (Stein)" in line
