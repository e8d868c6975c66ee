"""Campaigns in memory: order, resumption, failures, budgets, stopping."""

import copy
from types import SimpleNamespace

import pytest

from iolab.errors import TestbedError
from iolab.run.campaign import Campaign, Start
from iolab.run.conduct import mismatch_error
from iolab.store.db import Origin, Store
from iolab.testbed.agent import AgentError
from iolab.testbed.model import make_testbed

SECOND = 1_000_000_000


class Clock:
    """Virtual time that trials spend."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        return self.now_ns


class Runner:
    """Answers trials from a script: trial id to an exception, a status, or a duration in s."""

    def __init__(self, clock, script=None, stop=None):
        self.clock, self.script, self.stop = clock, script or {}, stop
        self.specs = []

    @property
    def trials(self):
        return [spec["trial"] for spec in self.specs]

    def run_trial(self, spec, on_progress):
        self.specs.append(copy.deepcopy(spec))
        answer = self.script.get(spec["trial"], self.script.get("*", 1))
        on_progress({"trial": spec["trial"], "phase": "write"})
        if isinstance(answer, Exception):
            raise answer
        if answer == "press":
            self.stop.presses += 1
            answer = "interrupted"
        more = answer if isinstance(answer, dict) else {}
        if more:
            answer = more["status"]
        status = answer if isinstance(answer, str) else "ok"
        seconds = 1 if isinstance(answer, str) else answer
        self.clock.now_ns += seconds * SECOND
        return {
            "trial": spec["trial"],
            "status": status,
            "error": "broken" if status == "failed" else None,
            "started_at_unix_ns": 1,
            "elapsed_ns": seconds * SECOND,
            "phases": [],
            **more,
        }


@pytest.fixture
def lab(tmp_path, core):
    """Run a plan against one store, as often as wanted."""

    class Lab:
        def __init__(self):
            self.clock, self.stop = Clock(), SimpleNamespace(presses=0)
            self.told = []
            self.path = tmp_path / "study.db"

        def run(self, plan, script=None, is_decided=lambda: False, for_width=lambda: None):
            self.runner = Runner(self.clock, script, self.stop)
            with self.open(plan) as store:
                session = store.begin_session("r-1", iolab_version="0", testbed={})
                start = Start(
                    session,
                    self.stop,
                    self.told.append,
                    self.clock,
                    is_decided=is_decided,
                    rounds_for_width=for_width,
                )
                campaign = Campaign(plan, store, self.runner, core, start)
                try:
                    return campaign.run()
                finally:
                    self.data = store.load_data()

        def open(self, plan):
            if self.path.exists():
                return Store.open_writer(self.path)
            return Store.create(self.path, plan, Origin("0", "loop:1g"))

        @property
        def notices(self):
            return [progress.message for progress in self.told if progress.kind == "notice"]

    return Lab()


def ids(first, last):
    return [f"t{number:04d}" for number in range(first, last + 1)]


def test_trials_run_strictly_in_the_order_of_the_plan(lab, plan_of):
    outcome = lab.run(plan_of())
    assert lab.runner.trials == ids(1, 16)
    assert (outcome.ending, outcome.n_ok, outcome.rounds_complete) == ("complete", 16, 4)
    assert all(trial.status == "ok" for trial in lab.data.trials)


def test_a_file_system_is_made_once_per_whole_plot(lab, plan_of):
    plan = plan_of(rounds=1, factors={"fs": ["ext4", "xfs"], "record_size": ["4k", "8k", "16k"]})
    lab.run(plan)
    assert [spec["is_fresh_fs"] for spec in lab.runner.specs] == [True, False, False] * 2


def test_an_agent_that_dies_loses_only_the_running_trial(lab, plan_of):
    plan = plan_of()
    with pytest.raises(TestbedError, match="dead"):
        lab.run(plan, {"t0006": TestbedError("dead")})
    assert [trial.status for trial in lab.data.trials].count("ok") == 5
    outcome = lab.run(plan)
    assert lab.runner.trials == ids(6, 16)
    assert lab.runner.specs[0]["is_fresh_fs"], "nobody knows what the dead one left mounted"
    assert outcome.ending == "complete"


def test_a_finished_study_resumes_to_nothing_and_may_be_extended(lab, plan_of):
    lab.run(plan_of())
    assert lab.run(plan_of()).ending == "complete"
    assert lab.runner.trials == []
    assert lab.run(plan_of(rounds=5)).n_ok == 20
    assert lab.runner.trials == ids(17, 20)


def test_a_failed_trial_is_recorded_and_the_study_goes_on(lab, plan_of):
    outcome = lab.run(
        plan_of(), {"t0002": AgentError("mkfs failed", "see dmesg"), "t0005": "failed"}
    )
    assert (outcome.n_ok, outcome.n_failed, outcome.rounds_complete) == (14, 2, 2)
    assert lab.data.trials[1].error == "mkfs failed: see dmesg"
    assert lab.run(plan_of()).n_ok == 16
    assert lab.runner.trials == ["t0002", "t0005"], "failures are tried again on request"


def test_three_identical_failures_in_a_row_stop_the_study(lab, plan_of):
    outcome = lab.run(plan_of(), {f"t{n:04d}": AgentError(f"loop{n} broke") for n in range(4, 99)})
    assert outcome.ending == "failing"
    assert "loop6 broke" in outcome.message
    assert lab.runner.trials == ids(1, 6)


def test_different_failures_do_not_stop_it(lab, plan_of):
    script = {f"t{n:04d}": AgentError("odd" if n % 2 else "even") for n in range(1, 9)}
    assert lab.run(plan_of(), script).ending == "complete"


def test_only_rounds_that_fit_the_budget_are_begun(lab, plan_of):
    outcome = lab.run(plan_of(rounds=100, budget="43s"), {"*": 2})
    assert (outcome.ending, outcome.rounds_complete) == ("budget", 5)
    assert "round 6 needs about 8 s" in outcome.message
    assert "3 s left" in outcome.message
    assert lab.notices == []
    assert lab.data.study.rounds_planned == 5


def test_a_budget_counts_over_resumptions(lab, plan_of):
    plan = plan_of(rounds=100, budget="10s")
    with pytest.raises(TestbedError):
        lab.run(plan, {"t0003": TestbedError("dead")})
    outcome = lab.run(plan)
    assert (outcome.ending, outcome.rounds_complete) == ("budget", 2)


def test_the_user_is_told_when_fewer_than_five_rounds_fit(lab, plan_of):
    lab.run(plan_of(rounds=100, budget="11s"))
    assert len(lab.notices) == 1
    assert "2 complete rounds" in lab.notices[0]
    assert "5 rounds need about 20 s" in lab.notices[0]


def test_a_budget_too_small_for_one_round_ends_it_with_the_reason(lab, plan_of):
    outcome = lab.run(plan_of(budget="25s"), {"*": 20})
    assert (outcome.ending, outcome.rounds_complete) == ("budget", 0)
    assert "a round needs about 1 min 20 s" in outcome.message
    assert lab.runner.trials == ids(1, 2)


def test_stopping_keeps_what_is_finished(lab, plan_of):
    outcome = lab.run(plan_of(), {"t0003": "press"})
    assert (outcome.ending, outcome.n_ok) == ("interrupted", 2)
    assert lab.data.trials[2].status == "interrupted"
    lab.stop.presses = 0
    assert lab.run(plan_of()).ending == "complete"
    assert lab.runner.trials == ids(3, 16)


def test_the_eta_comes_from_observed_times(lab, plan_of):
    lab.run(plan_of(), {"*": 10})
    etas = [progress.eta_ns for progress in lab.told if progress.kind == "finished"]
    # What has not run yet is guessed: smaller records take a little longer.
    assert etas == pytest.approx([left * 10 * SECOND for left in range(15, -1, -1)], rel=0.02)


def test_the_eta_of_a_continued_study_counts_what_is_left(lab, plan_of):
    plan = plan_of()
    with pytest.raises(TestbedError, match="dead"):
        lab.run(plan, {"t0006": TestbedError("dead")})
    lab.told.clear()
    lab.run(plan)
    etas = [progress.eta_ns for progress in lab.told if progress.kind == "finished"]
    assert etas == [left * SECOND for left in range(10, -1, -1)]


def test_wrong_data_is_kept_apart_from_other_failures(lab, plan_of, tmp_path):
    """A study goes on after a mismatch, and says at its end which trials had one."""
    wrong = {
        "status": "failed",
        "warnings": [
            {"code": "verify_failed", "message": "read: file iozone.0, torn write", "hint": ""},
            {"code": "load", "message": "the load was 9", "hint": ""},
        ],
    }
    outcome = lab.run(plan_of(rounds=1), {"t0002": wrong})
    assert lab.runner.trials == ids(1, 4)
    assert (outcome.ending, outcome.n_ok, outcome.n_failed) == ("complete", 3, 1)
    assert outcome.mismatches == ("t0002: read: file iozone.0, torn write",)
    beds = (make_testbed("dir", str(tmp_path), {}), make_testbed("sim", "fixed-100us", {}))
    on_a_device, simulated = (mismatch_error(outcome, testbed) for testbed in beds)
    assert "do not trust this device" in on_a_device.hint
    assert "the simulation gave back other data" in str(simulated)
    assert "report this" in simulated.hint


def test_a_study_with_looks_ends_at_a_look_if_all_is_decided(lab, plan_of):
    """Six rounds of four trials, two looks: asked after round 3 only."""
    asked = []

    def is_decided():
        asked.append(len(lab.runner.trials))
        return True

    outcome = lab.run(plan_of(rounds=6, looks=2), is_decided=is_decided)
    assert (outcome.ending, outcome.rounds_complete, asked) == ("decided", 3, [12])
    assert "after round 3" in outcome.message
    assert len(lab.data.trials) == 12
    again = lab.run(plan_of(rounds=6, looks=2), is_decided=is_decided)
    assert (again.ending, again.rounds_complete) == ("decided", 3)


def test_a_study_with_looks_goes_on_while_undecided_and_one_without_never_asks(lab, plan_of):
    asked = []

    def is_decided():
        asked.append(1)
        return False

    outcome = lab.run(plan_of(rounds=6, looks=2), is_decided=is_decided)
    assert (outcome.ending, outcome.rounds_complete, len(asked)) == ("complete", 6, 1)


def test_without_looks_nobody_asks(lab, plan_of):
    def never():
        raise AssertionError("asked without a planned look")

    assert lab.run(plan_of(rounds=2), is_decided=never).ending == "complete"


def test_a_study_with_a_width_asks_its_pilot_once_and_ends_there(lab, plan_of):
    asked = []

    def for_width():
        asked.append(len(lab.runner.trials))
        return 11

    plan = plan_of(rounds=20, width="2%")
    script = {"t0033": "failed"}
    outcome = lab.run(plan, script, for_width=for_width)
    assert asked == [32], "after eight rounds of four trials"
    assert (outcome.ending, outcome.rounds_complete) == ("decided", 11)
    assert lab.runner.trials == ids(1, 48), "round 9 does not count: a trial of it failed"
    assert "11 rounds give the wanted width" in outcome.message
    assert lab.notices == ["the pilot of 8 rounds asks for 11 rounds in all"]


def test_a_width_that_the_rounds_do_not_allow_is_told(lab, plan_of):
    outcome = lab.run(plan_of(rounds=9, width="2%"), for_width=lambda: 30)
    assert (outcome.ending, outcome.rounds_complete) == ("complete", 9)
    assert lab.notices == [
        "the pilot of 8 rounds asks for 30 rounds in all; rounds = 9 ends the study before, with a "
        "wider interval"
    ]


def test_a_width_inside_a_budget_ends_with_the_budget(lab, plan_of):
    plan = plan_of(rounds=100, budget="40s", width="2%")
    outcome = lab.run(plan, for_width=lambda: 30)
    assert (outcome.ending, outcome.rounds_complete) == ("budget", 10)


def test_looks_belong_to_the_plan(plan_of):
    plain = plan_of(rounds=6)
    assert plain.digest == plan_of(rounds=8).digest
    assert plan_of(rounds=6, looks=2).digest != plan_of(rounds=8, looks=2).digest
    assert plan_of(rounds=6, looks=2).look_rounds == (3, 6)
