"""Contention workloads from the command line, on a simulated disk: run, refused, judged again."""

import json

import pytest

from iolab.cli.main import main
from iolab.cli.workloads import NAME
from iolab.study.presets import PRESETS

SIM = ["--on", "sim:sata7200-4tb", "--seed", "3", "--rounds", "2"]


def compare(out, *more):
    flags = ["--scheduler", "none,bfq", "--duration", "2s", "--file-size", "16m"]
    return main(["compare", *SIM, *flags, *more, "--out", str(out)])


def verdict_of(out):
    return json.loads((out / "verdict.json").read_text(encoding="utf-8"))


def test_every_workload_is_listed_and_printed(capsys):
    assert main([NAME]) == 0
    listed = capsys.readouterr().out
    for preset in PRESETS:
        assert preset.name in listed
        assert preset.question in listed
        assert main([NAME, preset.name]) == 0
        assert "[[workloads.streams]]" in capsys.readouterr().out


@pytest.mark.parametrize("name", [preset.name for preset in PRESETS])
def test_a_preset_runs_in_simulation(name, tmp_path):
    assert compare(tmp_path / "out", "--workload", name) == 0
    found = verdict_of(tmp_path / "out")
    (preset,) = [preset for preset in PRESETS if preset.name == name]
    assert (found["study"]["metric"], found["study"]["metric_of"]) == (
        preset.metric,
        preset.metric_of,
    )
    assert found["trials"]["ok"] == 4
    metrics = {row["metric"] for row in found["treatments"]}
    assert {"gap_ns_max", "flowing_time_share", "latency_ns_max"} <= metrics


def test_a_finished_study_is_judged_by_another_metric(tmp_path, capsys):
    assert compare(tmp_path / "out", "--workload", "latency") == 0
    again = ["report", str(tmp_path / "out"), "--metric", "max", "--metric-of", "reader"]
    assert main([*again, "--out", str(tmp_path / "again")]) == 0
    found = verdict_of(tmp_path / "again")
    assert {row["metric"] for row in found["pooled"]} == {"latency_ns_max"}
    assert (found["metric_of"], found["pooled"][0]["n_cells"]) == ("reader", 1)
    capsys.readouterr()
    assert main([*again[:-1], "raeder"]) == 1
    assert "did you mean 'reader'" in capsys.readouterr().err
    assert main([*again[:3], "fairnes"]) == 1
    assert "did you mean 'fairness'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--workload", "latancy"], "did you mean 'latency'"),
        (["--workload", "latency", "--test", "read"], "exclude each other"),
        (["--workload", "latency", "--record-size", "4k"], "belongs to IOzone's tests"),
        (["--metric", "p98", "--workload", "latency"], "did you mean"),
        ([], "--duration belongs to --workload"),
    ],
)
def test_what_does_not_go_together_is_one_line(more, message, tmp_path, capsys):
    assert compare(tmp_path / "out", *more) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
