"""A study made from Python values is the one that a file describes."""

import pickle
from pathlib import Path

import pytest

import iolab
from iolab.study.presets import PRESETS

ROOT = Path(__file__).parents[2]


def test_values_and_a_file_make_the_same_study(study, text):
    assert study == iolab.Study.parse(text)
    assert hash(study) == hash(iolab.Study.parse(text))
    assert study != study.with_seed(8)
    assert study != "small"


def test_a_study_says_what_it_asks(study):
    assert (study.name, study.testbed, study.rounds, study.seed) == (
        "small",
        "sim:sata7200-4tb",
        3,
        7,
    )
    assert study.factors == {"scheduler": ("noop", "deadline")}
    assert (study.workloads, study.n_treatments) == (("iozone",), 2)
    assert repr(study) == "<iolab.Study 'small' on sim:sata7200-4tb: scheduler: noop/deadline>"


def test_what_is_held_is_no_factor():
    study = iolab.Study(testbed="sim:fixed-100us", factors={"scheduler": ["noop"]})
    assert (study.factors, study.n_treatments, study.seed) == ({}, 1, None)


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/study.toml")), ids=str)
def test_every_example_comes_back_from_its_text(path):
    study = iolab.Study.load(path)
    assert iolab.Study.parse(study.to_toml()) == study


@pytest.mark.parametrize("preset", [preset.name for preset in PRESETS])
def test_a_workload_may_be_the_name_of_a_preset(preset):
    study = iolab.Study(testbed="sim:fixed-100us", workload=preset)
    table = {"kind": "contention", "preset": preset}
    assert study == iolab.Study(testbed="sim:fixed-100us", workload=table)


def test_a_workload_may_be_a_command_of_another_program():
    """The same text as after `iolab compare --workload`."""
    command = "iozone -s 1m -r 4k -i 0 -i 1"
    factors = {"scheduler": ["noop", "deadline"]}
    study = iolab.Study(testbed="sim:fixed-100us", workload=command, factors=factors)
    assert study.workloads == ("iozone",)
    table = {"dialect": "iozone", "command": "-s 1m -i 0", "vary": {"-r": ["4k", "64k"]}}
    varied = iolab.Study(testbed="sim:fixed-100us", workload=table)
    assert varied.n_treatments == 2
    assert iolab.Study.parse(varied.to_toml()) == varied


def test_without_a_workload_it_is_that_of_the_command_line():
    tests = ["write", "read", "random-read", "random-write"]
    table = {"kind": "iozone", "tests": tests}
    assert iolab.Study(testbed="sim:fixed-100us") == iolab.Study(
        testbed="sim:fixed-100us", workload=table
    )


def test_several_workloads_and_all_kinds_of_levels():
    study = iolab.Study(
        testbed={"kind": "loop", "size": "2g", "device_count": 2},
        workload=[
            {"kind": "iozone", "name": "iozone", "tests": "write"},
            {"kind": "iozone", "name": "deep", "tests": "read"},
        ],
        factors={"record_size": ["4k", 65536], "direct": (True, False)},
        settings={"vm.dirty_ratio": 10},
        budget="10m",
        margin=0.1,
        metric="p99",
    )
    assert study.workloads == ("iozone", "deep")
    assert study.factors == {"record_size": ("4k", "64k"), "direct": ("true", "false")}
    assert study.rounds is None
    assert 'budget = "10m"' in study.to_toml()
    assert 'metric = "latency_ns_p99"' in study.to_toml()


def test_a_study_can_be_sent_to_a_worker(study):
    assert pickle.loads(pickle.dumps(study)) == study


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"workload": "vidio"}, "Study(workload=...): 'vidio' is not", "presets are start"),
        ({"factors": {"schedular": ["a"]}}, "Study(factors=...)['schedular']: ", "iolab compare"),
        ({"factors": {"scheduler": ["noop", "noop"]}}, "Study(factors=...)", "remove one"),
        ({"workload": {"kind": "iozone", "tests": ["rite"]}}, "[0]['tests']: 'rite' is not", ""),
        ({"rounds": 0}, "Study(rounds=...): '0' is not a number of rounds", ""),
        ({"rouns": 3}, "Study(rouns=...): there is no 'rouns' here; did you mean 'rounds'", ""),
        ({"testbed": 3}, "Study(testbed=...): a testbed is a text", ""),
        ({"looks": 3}, "Study(looks=...): 3 looks need rounds", "rounds=9"),
        ({"workload": []}, "Study(...): there is no workload", "add"),
        ({"settings": {"scheduler": ["a", "b"]}}, "Study(settings=...)['scheduler']", ""),
    ],
)
def test_an_argument_without_meaning_is_named(arguments, message, hint):
    with pytest.raises(iolab.StudyError) as caught:
        iolab.Study(**{"testbed": "sim:fixed-100us", **arguments})
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(iolab.TestbedError, match="'nul' is not a kind of testbed; did you mean"):
        iolab.Study(testbed="nul")
    with pytest.raises(iolab.StudyError, match="there is no such file"):
        iolab.Study.load(tmp_path / "study.toml")
