"""Simulated testbeds: what is opened, what a trial leaves, how it is stopped."""

import json
from pathlib import Path

import pytest

from iolab import _core
from iolab.cli.main import main
from iolab.errors import StoppedError, StudyError, TestbedError
from iolab.run.record import derive
from iolab.run.trial import trial_spec
from iolab.study.load import parse_study
from iolab.study.plan import make_plan, round_ops
from iolab.testbed.model import make_testbed
from iolab.testbed.runner import choose_runner
from iolab.testbed.sim import SimRunner, SimTestbed, provenance_text

STUDY = """
testbed = "sim:fixed-100us"
seed = 7
[factors]
scheduler = ["noop", "mq-deadline"]
[settings]
file_size = "4m"
[[workloads]]
kind = "iozone"
tests = ["write", "random-read"]
settings = { "mq-deadline.read_expire" = "70" }
"""
RAID = """
name = "mirror"
[volume]
members = 2
parameters = { layout = "raid1" }
member.device.profile = "fixed-100us"
"""


class Presses:
    """Pressed once it has been asked a few times."""

    def __init__(self, after, presses=1):
        self.left, self.wanted = after, presses

    @property
    def presses(self):
        self.left -= 1
        return self.wanted if self.left < 0 else 0


def opened(testbed, *, stop=None, is_dry_run=False):
    runner = SimRunner(stop=stop)
    runner.hello("r-1", is_dry_run=is_dry_run)
    return runner, runner.open_testbed(testbed.agent_spec())


def specs():
    plan = make_plan(parse_study(STUDY))
    return [trial_spec(trial, _core, is_fresh_fs=True) for trial in plan.round_trials(1)]


def test_a_profile_is_a_testbed_that_needs_nothing():
    testbed = make_testbed("sim", "fixed-100us", {})
    assert isinstance(testbed, SimTestbed)
    assert (testbed.text, testbed.request) == ("sim:fixed-100us", ("sim", "fixed-100us", ()))
    assert not testbed.needs_root
    assert testbed.record_kind == "simulated"
    testbed.check_space(1 << 40)
    with pytest.raises(TestbedError, match="holds 1 TiB"):
        testbed.check_space((1 << 40) + 1)
    _, answer = opened(testbed)
    assert answer.class_letter == "S"
    assert {"noop", "anticipatory", "deadline", "none", "kyber"} <= set(answer.schedulers)
    assert [warning["code"] for warning in answer.warnings] == ["simulated"]
    assert "parameters: 4 assumed" in answer.warnings[0]["message"]


def test_a_stack_file_is_named_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror.toml").write_text(RAID, encoding="utf-8")
    testbed = make_testbed("sim", "mirror.toml", {})
    assert testbed.text == f"sim:{tmp_path}/mirror.toml"
    assert testbed.title == "mirror"


def test_a_stack_file_that_has_changed_is_another_testbed(tmp_path):
    path = tmp_path / "mirror.toml"
    path.write_text(RAID, encoding="utf-8")
    kind, argument, options = make_testbed("sim", str(path), {}).request
    path.write_text(f"# A comment changes nothing.\n{RAID}", encoding="utf-8")
    assert make_testbed(kind, argument, dict(options)).request == (kind, argument, options)
    path.write_text(RAID.replace("members = 2", "members = 3"), encoding="utf-8")
    with pytest.raises(TestbedError, match="was changed since the study was made"):
        make_testbed(kind, argument, dict(options))


def test_the_stacks_of_the_documents_can_be_built(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "simulate-a-stack.md"
    block = page.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "raid5.toml").write_text(block, encoding="utf-8")
    testbed = make_testbed("sim", str(tmp_path / "raid5.toml"), {})
    assert testbed.description["is_rotational"]
    assert testbed.description["capacity_bytes"] > 15e12


@pytest.mark.parametrize(
    ("argument", "options", "error", "part"),
    [
        ("", {}, TestbedError, "needs a profile"),
        ("fixed-100", {}, StudyError, "did you mean `fixed-100us`"),
        ("gone.toml", {}, TestbedError, "no stack file"),
        ("fixed-100us", {"device_count": "2"}, TestbedError, "has no device_count"),
    ],
)
def test_refusals(argument, options, error, part):
    with pytest.raises(error, match=part):
        make_testbed("sim", argument, options)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("fixed-100us", "fixed-10us", "did you mean `fixed-100us`"),
        ("raid1", "raid7", "raid7"),
        ("members = 2", "members = 1", "at least|2"),
        ("[volume]", "[volumes]", "volumes"),
    ],
)
def test_a_stack_file_with_a_mistake_says_which(tmp_path, old, new, part):
    path = tmp_path / "stack.toml"
    path.write_text(RAID.replace(old, new), encoding="utf-8")
    with pytest.raises(StudyError, match=part):
        make_testbed("sim", str(path), {})


def test_a_trial_leaves_a_record_like_the_agents():
    runner, _ = opened(make_testbed("sim", "fixed-100us", {}))
    for spec in specs():
        record = runner.run_trial(spec)
        assert record == {**runner.run_trial(spec), **_clock(record)}, "the same seed, another end"
        derived = derive(record, _core)
        assert derived.status == "ok"
        assert [phase.operation for phase in derived.phases] == ["write", "random-read"]
        assert derived.facts["testbed.kind"] == "simulated"
        assert not any(name.startswith("host") for name in derived.facts)
        for phase in derived.phases:
            assert phase.metrics["latency_ns_p50"] == pytest.approx(106_000, rel=0.05)
            assert phase.cache_share == 0


def _clock(record):
    return {key: record[key] for key in ("started_at_unix_ns", "elapsed_ns")}


def test_knobs_are_read_back_as_the_scheduler_has_them():
    runner, _ = opened(make_testbed("sim", "fixed-100us", {}))
    found = [runner.run_trial(spec)["knobs"] for spec in specs()]
    assert {"scheduler": "noop"} in found, "another scheduler's tunable is nobody's"
    assert {"scheduler": "mq-deadline", "mq-deadline.read_expire": "70"} in found


def test_a_rehearsal_names_what_it_would_do_and_does_not():
    runner, _ = opened(make_testbed("sim", "fixed-100us", {}), is_dry_run=True)
    actions = runner.run_trial(specs()[0])["actions"]
    assert actions[-1]["kind"] == "simulate"
    assert actions[-1]["detail"] == "write, random-read"
    assert {action["class"] for action in actions} == {"S"}


def test_one_press_ends_the_trial_and_two_the_study():
    testbed = make_testbed("sim", "fixed-100us", {})
    runner, _ = opened(testbed, stop=Presses(after=0))
    assert runner.run_trial(specs()[0])["status"] == "interrupted"
    runner, _ = opened(testbed, stop=Presses(after=0, presses=2))
    with pytest.raises(StoppedError):
        runner.run_trial(specs()[0])


def test_operations_are_told_and_a_long_wait_with_its_time():
    testbed = make_testbed("sim", "fixed-100us", {})
    assert testbed.round_text(0, 0, None) == "simulated, nothing is written but the results"
    assert testbed.round_text(0, 0, 1).endswith("; a round simulates 1 operation")
    assert testbed.round_text(0, 0, 5_000).endswith("; a round simulates 5 000 operations")
    long = testbed.round_text(0, 0, 104_857_600)
    assert "104 857 600 operations (roughly 17 min" in long
    assert "100 000 a second" in long


def test_operations_of_a_round_are_those_that_records_count():
    plan = make_plan(parse_study(STUDY))
    runner, _ = opened(make_testbed("sim", "fixed-100us", {}))
    records = [derive(runner.run_trial(spec), _core, {}) for spec in specs()]
    counted = sum(w["ops"] for r in records for p in r.phases for w in p.workers)
    assert round_ops(plan) == counted > 0


def test_a_long_trial_shows_that_it_goes_on(monkeypatch):
    class Slow:
        def simulate_trial(self, stack_json, trial_json, should_stop):
            assert not any(should_stop() for _ in range(4))
            return "{}"

    clock = iter([0.0, 1.0, 6.0, 8.0, 75.0])
    monkeypatch.setattr("iolab.testbed.sim.time.monotonic", lambda: next(clock))
    told = []
    SimRunner(simulator=Slow()).run_trial({}, lambda params: told.append(params["phase"]))
    assert told == ["simulating", "simulating for 6 s", "simulating for 1 min 15 s"]


def test_no_agent_is_needed(monkeypatch):
    monkeypatch.setenv("IOLAB_AGENT", "/nowhere")
    start = choose_runner(make_testbed("sim", "fixed-100us", {}), needs_root=False)
    with start(None, None) as runner:
        assert isinstance(runner, SimRunner)


def test_provenance_names_the_most_trustworthy_first():
    assert provenance_text({"assume": 3, "doc": 12}) == "12 from data sheets, 3 assumed"
    assert provenance_text({}) == "none"


def test_the_description_can_be_stored():
    _, answer = opened(make_testbed("sim", "fixed-100us", {}))
    assert json.loads(json.dumps(dict(answer.description)))["class"] == "S"


def test_a_level_out_of_range_is_refused_before_anything_is_made(tmp_path, capsys):
    out = tmp_path / "out"
    flags = ["--on", "sim:fixed-100us", "--scheduler", "mq-deadline", "--nomerges", "0,3"]
    assert main(["compare", *flags, "--out", str(out)]) == 1
    assert "nomerges = 3: not a whole number from 0 to 2" in capsys.readouterr().err
    assert not out.exists()
