"""A session of slices becomes rounds: specs, the cutting of its record, what is stored."""

import math
from contextlib import contextmanager

import pytest

from iolab.errors import TestbedError
from iolab.run.campaign import Start
from iolab.run.record import derive
from iolab.run.slices import SlicedCampaign, in_order, session_spec, unit_records
from iolab.store.db import Origin, Store
from iolab.study.slice_lengths import SWITCHED_SLICE_MAX_NS
from iolab.testbed.agent import AgentError

MS = 1_000_000


@pytest.fixture
def sliced(plan_of):
    def make(**changes):
        usual = {
            "design": "pairs",
            "factors": {"record_size": ["4k", "8k"]},
            "workloads": [
                {"kind": "iozone", "tests": ["rewrite", "random-read"], "file_size": "1m"}
            ],
        }
        return plan_of(**(usual | changes))

    return make


def histogram(count):
    return {
        "unit": "ns",
        "count": count,
        "min": 1000,
        "max": 2000,
        "sum": 1500 * count,
        "sub_bucket_bits": 7,
        "counts": [[300, count]],
    }


def session_record(units=2, cells=((0, 4096), (1, 8192)), per_unit=3):
    """One phase of two treatments; the second is twice as fast in bytes, and slices are 10 ms."""
    slices = {
        name: []
        for name in (
            *("unit", "cell", "tenant", "begin_ns", "length_ns", "ops", "bytes"),
            *("longest_ns", "workers"),
        )
    }
    for unit in range(units):
        for turn in range(per_unit):
            for cell, (_, size) in enumerate(cells):
                ops = 100 + 10 * turn
                row = (unit, cell, 0, (10 * turn + cell) * MS, 10 * MS, ops, ops * size, 2000, 1)
                for name, value in zip(slices, row, strict=True):
                    slices[name].append(value)
    tenant = {"name": "random-read", "kind": "read", "access": "direct"}
    return {
        "trial": "t0001",
        "status": "ok",
        "error": None,
        "started_at_unix_ns": 1_000,
        "elapsed_ns": 99 * MS,
        "knobs": {},
        "facts": {"kernel": "6.1"},
        "warnings": [],
        "actions": [{"kind": "write_knob"}],
        "phases": [],
        "pairs": {
            "slice_ns": 10 * MS,
            "chosen_by": "shortest",
            "washout_ns": 0,
            "switch_cost_ns": 0,
            "slices_per_unit": per_unit,
            "elapsed_ns": units * 60 * MS,
            "cells": [
                {
                    "treatment": treatment,
                    "name": "random-read",
                    "kind": "read",
                    "io_size_bytes": size,
                    "access": "direct",
                    "tenants": [{**tenant, "io_size_bytes": size}],
                }
                for treatment, size in cells
            ],
            "units": [
                {
                    "began_ns": unit * 60 * MS,
                    "elapsed_ns": 60 * MS,
                    "service": [[{"read": histogram(330), "write": None, "sync": None}]] * 2,
                }
                for unit in range(units)
            ],
            "slices": slices,
        },
    }


def test_a_session_asks_for_every_treatment_once_and_ends_in_time(sliced, core):
    spec = session_spec(sliced(), core, units=9, time_ns=5_000 * MS, round_number=1)
    pairs = spec["pairs"]
    assert [t["workload"]["io_size_bytes"] for t in pairs["treatments"]] == [4096, 8192]
    assert (pairs["units"], pairs["time_ns"]) == (9, 5_000 * MS)
    assert spec["time_limit_ns"] > 5_000 * MS
    other = session_spec(sliced(), core, units=9, time_ns=0, round_number=2)
    assert other["pairs"]["seed"] != pairs["seed"]


def test_knobs_belong_to_their_treatments_and_may_have_longer_slices(sliced, core):
    plan = sliced(testbed="device:/dev/null", factors={"scheduler": ["none", "mq-deadline"]})
    pairs = session_spec(plan, core, units=1, time_ns=0, round_number=1)["pairs"]
    assert [t["knobs"] for t in pairs["treatments"]] == [
        {"scheduler": "none"},
        {"scheduler": "mq-deadline"},
    ]
    assert pairs["slice_max_ns"] == SWITCHED_SLICE_MAX_NS


def test_adaptive_schedulers_settle_on_twins_and_have_long_slices(sliced, core):
    plan = sliced(factors={"scheduler": ["none", "bfq"]})
    pairs = session_spec(plan, core, units=2, time_ns=0, round_number=1)["pairs"]
    assert pairs["slice_min_ns"] == 4 * pairs["settle_ns"] == 1200 * MS
    assert pairs["washout_ns"] == 100 * MS
    assert pairs["unit_ns"] == 2 * 2500 * MS


def test_treatments_keep_the_device_of_each_slice_and_the_knobs_that_were_read_back(core):
    record = session_record()
    record["knobs"] = {"scheduler": "none"}
    record["pairs"]["places"] = 2
    record["pairs"]["knobs"] = [{"scheduler": "none"}, {"scheduler": "bfq", "bfq.low_latency": "1"}]
    record["pairs"]["slices"]["place"] = [turn % 2 for turn in range(12)]
    first, second = unit_records(record, session=1)[0]
    assert (first["session"]["places"], second["session"]["places"]) == (2, 2)
    assert [each["knobs"]["scheduler"] for each in (first, second)] == ["none", "bfq"]
    assert second["phases"][0]["tenants"][0]["slices"]["place"] == [1, 1, 1]
    assert not first["phases"][0]["tenants"][0]["slices"]["place"]


def test_each_unit_and_treatment_gets_its_own_slices(core):
    units = unit_records(session_record(), session=4)
    assert [len(unit) for unit in units] == [2, 2]
    first, second = units[1]
    tenant = second["phases"][0]["tenants"][0]
    assert tenant["slices"]["bytes"] == [100 * 8192, 110 * 8192, 120 * 8192]
    assert tenant["workers"][0]["elapsed_ns"] == 30 * MS
    assert first["session"]["number"] == 4
    assert first["started_at_unix_ns"] == 1_000 + 60 * MS
    assert [unit[0]["actions"] for unit in units] == [[{"kind": "write_knob"}], []]


def test_a_trial_in_slices_is_the_geometric_mean_of_their_rates(core):
    record = unit_records(session_record(), session=1)[0][0]
    metrics = derive(record, core).phases[0].metrics
    expected = math.prod(ops / 0.01 for ops in (100, 110, 120)) ** (1 / 3)
    assert metrics["throughput_ops_per_s"] == pytest.approx(expected)
    assert metrics["throughput_bytes_per_s"] == pytest.approx(expected * 4096)
    assert metrics["latency_ns_p50"] > 0
    assert "latency_ns_p99" not in metrics  # 330 operations are too few for it


def test_a_record_of_another_version_is_refused():
    record = session_record()
    del record["pairs"]["slices"]["ops"]
    with pytest.raises(TestbedError, match="session of slices cannot be understood"):
        unit_records(record, session=1)


class Agent:
    def __init__(self, *answers):
        self.answers, self.specs = list(answers), []

    def run_trial(self, spec, on_progress):
        self.specs.append(spec)
        on_progress({"message": "1 balanced units"})
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Stop:
    presses = 0


@contextmanager
def campaign(tmp_path, plan, core, agent, **start):
    with Store.create(
        tmp_path / "study.db", plan, Origin("0.0.0", "loop:1g", kind="real")
    ) as store:
        number = store.begin_session("r-1", iolab_version="0.0.0", testbed={}, caveats=[])
        heard = []
        begun = Start(session_id=number, stop=Stop(), report=heard.append, **start)
        yield SlicedCampaign(plan, store, agent, core, begun), store


def test_every_unit_of_a_session_becomes_a_round(tmp_path, sliced, core):
    plan, agent = sliced(rounds=2), Agent(session_record(units=2))
    with campaign(tmp_path, plan, core, agent) as (running, store):
        outcome = running.run()
        assert (outcome.ending, outcome.rounds_complete, outcome.n_ok) == ("complete", 2, 4)
        data = store.load_data()
    assert len(agent.specs) == 1
    assert data.study.is_in_slices
    assert len(data.slices) == 4
    trials = {trial.trial_id: trial for trial in data.trials}
    for row in data.slices:
        size = {"4k": 4096, "8k": 8192}[trials[row.trial_id].levels["record_size"]]
        assert row.bytes[0] == row.ops[0] * size
    assert [t.trial_id for t in in_order(plan, 1)] == sorted(
        (t.trial_id for t in in_order(plan, 1)), key=lambda i: trials[i].levels["record_size"]
    )


def test_a_session_that_is_interrupted_keeps_its_complete_units(tmp_path, sliced, core):
    agent = Agent({**session_record(units=1), "status": "interrupted"})
    with campaign(tmp_path, sliced(rounds=5), core, agent) as (running, _):
        outcome = running.run()
    assert (outcome.ending, outcome.rounds_complete) == ("interrupted", 1)


@pytest.mark.parametrize("answer", [AgentError("failed", "no space"), None])
def test_a_session_without_a_unit_is_stored_as_a_failure(tmp_path, sliced, core, answer):
    failed = {**session_record(), "status": "failed", "error": "no space", "pairs": None}
    with campaign(tmp_path, sliced(rounds=5), core, Agent(answer or failed)) as (running, store):
        outcome = running.run()
        statuses = list(store.finished_trials().values())
    assert outcome.ending == "failing"
    assert "no space" in outcome.message
    assert statuses == ["failed"]


def test_looks_end_a_session_and_may_end_the_study(tmp_path, sliced, core):
    plan, agent = sliced(rounds=6, looks=2), Agent(session_record(units=3))
    with campaign(tmp_path, plan, core, agent, is_decided=lambda: True) as (running, _):
        outcome = running.run()
    assert (outcome.ending, outcome.rounds_complete) == ("decided", 3)
    assert agent.specs[0]["pairs"]["units"] == 3


def image_record(units=2):
    """A session on two images: the first treatment worked on the second device."""
    record = session_record(units=units, cells=((0, 4096), (1, 4096)))
    slices = record["pairs"]["slices"]
    slices["place"] = [1 - cell for cell in slices["cell"]]
    images = [
        {"stack": {"fs": fs, "parameters": []}, "facts": {"fs.type": fs}} for fs in ("xfs", "ext4")
    ]
    return {**record, "facts": {"kernel": "6.1", "fs.type": "xfs"}, "images": images}


def on_images(sliced, **changes):
    return sliced(**{"factors": {"fs": ["ext4", "xfs"]}, "rounds": 5} | changes)


def test_images_change_devices_from_round_to_round_and_are_made_in_random_order(sliced, core):
    plan, made = on_images(sliced), set()
    for number in range(1, 21):
        spec = session_spec(plan, core, units=2, time_ns=0, round_number=number)
        pairs = spec["pairs"]
        where = {image["place"]: image["stack"]["fs"] for image in pairs["images"]}
        assert sorted(where) == [0, 1]
        assert [where[t["place"]] for t in pairs["treatments"]] == ["ext4", "xfs"]
        assert where[number % 2] == "ext4"
        made.add(tuple(image["stack"]["fs"] for image in pairs["images"]))
        assert spec["is_fresh_fs"]
        assert pairs["settle_ns"] == 0
    assert len(made) == 2


def test_all_units_on_a_set_of_images_are_one_round(tmp_path, sliced, core):
    plan, agent = on_images(sliced), Agent(*(image_record() for _ in range(5)))
    with campaign(tmp_path, plan, core, agent) as (running, store):
        outcome = running.run()
        data = store.load_data()
    assert (outcome.ending, outcome.rounds_complete, len(agent.specs)) == ("complete", 5, 5)
    assert [spec["pairs"]["units"] for spec in agent.specs] == [2] * 5
    assert {row.session for row in data.slices} == {1, 2, 3, 4, 5}
    assert {(len(row.ops), row.images) for row in data.slices} == {(6, 2)}
    trials = {trial.trial_id: trial.levels["fs"] for trial in data.trials}
    types = data.varying_facts["fs.type"]
    assert {trial: types[trial] for trial in trials} == trials
    assert {trials[trial] for trial in data.file_systems} == {"ext4", "xfs"}


def test_a_set_of_images_that_was_cut_off_is_no_round(tmp_path, sliced, core):
    agent = Agent({**image_record(units=1), "status": "interrupted"})
    with campaign(tmp_path, on_images(sliced), core, agent) as (running, _):
        outcome = running.run()
    assert (outcome.ending, outcome.rounds_complete) == ("interrupted", 0)


class SlowAgent(Agent):
    """A set of images takes 50 s."""

    now_ns = 0

    def run_trial(self, spec, on_progress):
        self.now_ns += 50_000 * MS
        return super().run_trial(spec, on_progress)


def test_no_set_of_images_is_begun_that_would_not_fit_the_budget(tmp_path, sliced, core):
    agent = SlowAgent(*(image_record() for _ in range(5)))
    plan = on_images(sliced, budget="3m")
    with campaign(tmp_path, plan, core, agent, clock=lambda: agent.now_ns) as (running, _):
        outcome = running.run()
    assert (outcome.ending, outcome.rounds_complete) == ("budget", 3)
    assert "3 sets of images fit the budget" in outcome.message
