"""One simulated trial without files."""

import pickle
import sys

import pytest

import iolab
from iolab.errors import StoppedError

WORKLOAD = {"kind": "iozone", "tests": ["write", "random-read"]}


def small(**arguments):
    given = {"workload": WORKLOAD, "settings": {"file_size": "1m", "workers": 4}, "seed": 7}
    return iolab.simulate("sim:sata7200-4tb", **{**given, **arguments})


@pytest.mark.parametrize("scheduler", ["noop", "deadline"])
def test_it_is_the_first_trial_of_the_study(result, scheduler):
    """Seeds are equal for all treatments of a round, so both levels can be compared."""
    trial = small(knobs={"scheduler": scheduler})
    place = {name: at for at, name in enumerate(result.columns)}
    rows = [r for r in result.to_rows() if r[place["round"]] == 1]
    rows = [r for r in rows if r[place["scheduler"]] == scheduler]
    assert len(rows) == len(trial.metrics) == 2
    for row in rows:
        stored = dict(zip(result.columns[8:], row[8:], strict=True))
        stored = {name: value for name, value in stored.items() if value is not None}
        assert trial.metrics[row[place["operation"]]] == stored


def test_nothing_is_written(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    small()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_trial_says_what_it_was():
    trial = small(knobs={"scheduler": "deadline", "nr_requests": 64})
    assert (trial.testbed, trial.workload, trial.seed) == ("sim:sata7200-4tb", "iozone", 7)
    assert trial.levels["scheduler"] == "deadline"
    assert trial.levels["nr_requests"] == "64"
    assert trial.levels["file_size"] == "1m"
    assert trial.record["status"] == "ok"
    columns = trial.columns
    assert columns[:4] == ("operation", "io_size_bytes", "elapsed_ns", "depth_reached_mean")
    rows = [dict(zip(columns, row, strict=True)) for row in trial.to_rows()]
    assert [row["operation"] for row in rows] == ["write", "random-read"]
    assert {row["io_size_bytes"] for row in rows} == {4096}
    for row in rows:
        assert row["latency_ns_p50"] == trial.metrics[row["operation"]]["latency_ns_p50"]


def test_a_seed_repeats_a_trial_and_another_changes_it():
    streams = [{"name": "r", "direction": "read", "record_size": "4k", "file_size": "64m"}]
    workload = {"kind": "mixed", "duration": "200ms", "streams": streams}
    trials = [small(workload=workload, settings={}, seed=seed) for seed in (7, 7, 8)]
    assert trials[0] == trials[1]
    assert trials[0].metrics != trials[2].metrics


def test_streams_side_by_side():
    trial = iolab.simulate(
        "sim:fixed-100us",
        workload={"kind": "contention", "preset": "latency", "duration": "100ms"},
    )
    operations = list(trial.metrics)
    assert len(operations) == 3
    assert any(name.endswith("/all") for name in operations)


def test_a_trial_can_be_sent_between_processes():
    assert pickle.loads(pickle.dumps(small())) == small()


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(iolab.IolabError, match="needs pandas"):
        small().to_frame()


def test_a_switch_ends_it():
    stop = iolab.StopSwitch()
    stop.press()
    with pytest.raises(StoppedError):
        small(stop=stop)
    stop.close()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"testbed": "loop:1g"}, iolab.TestbedError, "loop:1g is not simulated"),
        ({"testbed": "sim:nothing"}, iolab.StudyError, "unknown profile"),
        ({"knobs": {"record_size": "4k"}}, iolab.StudyError, "record_size is no knob"),
        ({"knobs": {"schedulr": "noop"}}, iolab.StudyError, "did you mean 'scheduler'"),
        ({"knobs": {"scheduler": "cfk"}}, iolab.StudyError, "did you mean 'cfq'"),
        ({"workload": ["latency", "video"]}, iolab.StudyError, "2 workloads are as many trials"),
        ({"seed": -1}, iolab.StudyError, "'-1' is not a seed"),
        ({"settings": {"file_size": "16t"}}, iolab.TestbedError, "files need"),
    ],
)
def test_errors_say_what_and_what_to_do(arguments, error, message):
    given = {"testbed": "sim:sata7200-4tb", "workload": WORKLOAD, **arguments}
    with pytest.raises(error) as caught:
        iolab.simulate(**given)
    assert message in str(caught.value)
    assert "--on" not in str(caught.value)
