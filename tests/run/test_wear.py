"""Writes of a study to a whole device: foretold, counted, and stopped at what was accepted."""

import time
from dataclasses import replace

import pytest

from iolab.errors import TestbedError
from iolab.run.campaign import Campaign, Start
from iolab.run.stop import StopSwitch
from iolab.run.wear import (
    ENDS_BYTES,
    Accepted,
    History,
    WriteBudget,
    forecast_writes,
    written_counter,
)
from iolab.store.db import Origin, Store

MIB = 1 << 20
GIB = 1 << 30
DEVICE = {"kind": "device", "path": "/dev/null"}
FAST = {
    "kind": "mixed",
    "name": "fast",
    "duration": "1s",
    "streams": [{"name": "w", "direction": "write", "record_size": "4k", "file_size": "1m"}],
}


class Disk:
    """A device that counts; a runner whose trials write to it."""

    def __init__(self, *amounts, stop=None):
        self.written, self.amounts, self.stop = 7 * GIB, list(amounts), stop
        self.trials = []

    def count(self):
        return self.written

    def run_trial(self, spec, on_progress):
        on_progress({"trial": spec["trial"], "phase": "write"})
        self.trials.append(spec["trial"])
        self.written += self.amounts.pop(0)
        status = "ok"
        if self.stop is not None:  # As the agent does, once its client says so.
            deadline = time.monotonic() + 0.5
            while time.monotonic() < deadline and not self.stop.presses:
                time.sleep(0.01)
            status = "interrupted" if self.stop.presses else "ok"
        return {
            "trial": spec["trial"], "status": status, "error": None,
            "started_at_unix_ns": 1, "elapsed_ns": 1, "phases": [],
        }  # fmt: skip


@pytest.fixture
def stop():
    switch = StopSwitch()
    yield switch
    switch.close()


@pytest.fixture
def lab(tmp_path, core, stop):
    path = tmp_path / "study.db"

    def history(plan):
        with Store.open_reader(path) as store:
            return History.of(plan, store.contents.attempts())

    def run(plan, accepted_bytes, disk, *, is_watched=False):
        known = history(plan) if path.exists() else History()
        accepted = Accepted(accepted_bytes, GIB, 0, known)
        budget = WriteBudget(accepted, plan, disk.count, stop)
        is_new = not path.exists()
        opened = Store.create(path, plan, Origin("0", "x")) if is_new else Store.open_writer(path)
        with opened as store:
            session = store.begin_session("r-1", iolab_version="0", testbed={})
            start = Start(session, stop, lambda _: None, writes=budget)
            campaign = Campaign(plan, store, disk, core, start)
            if not is_watched:
                return campaign.run()
            disk.stop = budget
            with budget:
                return campaign.run()

    run.history, run.path = history, path
    return run


@pytest.fixture
def plan(plan_of):
    return plan_of(testbed=DEVICE, rounds=2, factors={"scheduler": ["none", "bfq"]})


def test_a_raw_study_of_whole_files_is_bound(plan):
    found = forecast_writes(plan, GIB, 5 * MIB)
    assert (found.total_bytes, found.is_bound) == (4 * MIB + 5 * MIB + ENDS_BYTES, True)


def test_a_file_system_a_budget_and_a_fast_stream_are_estimates(plan_of, plan):
    with_fs = plan_of(testbed=DEVICE, rounds=2, settings={"fs": "ext4"})
    found = forecast_writes(with_fs, 64 * GIB, 0)
    assert not found.is_bound
    assert found.total_bytes > 2 * 2 * GIB, "each round makes a file system with its journal"
    fast = plan_of(testbed=DEVICE, factors={"scheduler": ["none"]}, workloads=[FAST])
    assert not forecast_writes(fast, GIB, 0).is_bound
    study = replace(plan.study, rounds=None, budget_ns=60_000_000_000)
    assert not forecast_writes(replace(plan, study=study), GIB, 0).is_bound


def test_the_next_trial_is_not_begun_if_it_would_write_too_much(lab, plan):
    disk = Disk(MIB, MIB, MIB, MIB)
    outcome = lab(plan, 3 * MIB + MIB // 2, disk)
    assert (outcome.ending, outcome.n_ok, disk.trials) == (
        "writes", 3, ["t0001", "t0002", "t0003"],
    )  # fmt: skip
    assert "t0004 would write about 1 MiB more" in outcome.message
    assert "3 MiB were written to the device, 3.5 MiB were accepted" in outcome.message
    assert "--resume --accept-writes" in outcome.hint


def test_going_on_with_what_the_hint_names_ends_the_study(lab, plan):
    first = lab(plan, 3 * MIB, Disk(MIB, 2 * MIB))
    assert (first.ending, first.n_ok) == ("writes", 2)
    assert lab.history(plan).written_bytes == 3 * MIB, "of all starts, whatever the counter says"
    assert lab(plan, 3 * MIB, Disk()).ending == "writes"
    wanted = int(first.hint.partition("--accept-writes ")[2].split()[0])
    assert forecast_writes(plan, GIB, 0, lab.history(plan)).total_bytes <= wanted
    assert lab(plan, wanted, Disk(2 * MIB, 2 * MIB)).ending == "complete"


def test_a_trial_that_wrote_more_than_thought_teaches_the_next(lab, plan):
    outcome = lab(plan, 20 * MIB, Disk(8 * MIB, 8 * MIB))
    assert (outcome.ending, outcome.n_ok) == ("writes", 2)
    assert "would write about 8 MiB more" in outcome.message


def test_a_running_trial_is_ended_and_not_taken_for_a_press(lab, plan, stop):
    outcome = lab(plan, 20 * MIB, Disk(25 * MIB), is_watched=True)
    assert (outcome.ending, outcome.n_ok, stop.presses) == ("writes", 0, 0)
    assert "t0001 was ended while it wrote; 25 MiB" in outcome.message
    found = lab.history(plan)
    assert (found.written_bytes, found.finished) == (25 * MIB, frozenset())
    wanted = int(outcome.hint.partition("--accept-writes ")[2].split()[0])
    assert wanted > 75 * MIB, "the trial is expected to write more than it was let"
    assert forecast_writes(plan, GIB, 0, found).total_bytes <= wanted


def test_enough_is_never_stopped(lab, plan):
    disk = Disk(MIB, MIB, MIB, MIB)
    assert lab(plan, 4 * MIB, disk, is_watched=True).ending == "complete"


def test_records_say_what_was_written_during_and_before_their_trial(lab, plan):
    disk = Disk(MIB, MIB, 3 * MIB, MIB)
    lab(plan, GIB, disk)
    with Store.open_reader(lab.path) as store:
        kept = [record["host_writes"] for _, _, record in store.contents.attempts()]
    assert [item["trial_bytes"] for item in kept] == [MIB, MIB, 3 * MIB, MIB]
    assert all(item["before_bytes"] == 0 for item in kept)


def test_the_users_press_is_more_than_the_budgets(stop, plan):
    disk = Disk()
    budget = WriteBudget(Accepted(MIB, GIB), plan, disk.count, stop)
    assert (budget.presses, budget.fileno()) == (0, stop.fileno())
    with budget:
        disk.written += 2 * MIB
        deadline = time.monotonic() + 5
        while not budget.is_spent and time.monotonic() < deadline:
            time.sleep(0.01)
    assert (budget.presses, stop.presses) == (1, 0)
    stop.press()
    assert budget.presses == 1
    stop.press()
    assert budget.presses == 2


def test_what_is_no_block_device_cannot_be_counted(tmp_path):
    with pytest.raises(TestbedError, match="cannot be counted"):
        written_counter(tmp_path)()
