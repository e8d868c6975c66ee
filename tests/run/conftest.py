"""A stand-in for the compiled half, and a small plan."""

import json

import pytest

from iolab.study.load import study_from_table
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource


class FakeCore:
    def __init__(self):
        self.inputs = []

    def sim_refusals(self, stack_json, trial_json):
        return "[]"

    def workload_refusals(self, abilities_json, workload_json):
        return "[]"

    def iozone_workload(self, spec_json):
        self.inputs.append(json.loads(spec_json))
        return spec_json

    def mixed_workload(self, spec_json):
        self.inputs.append(json.loads(spec_json))
        return spec_json

    def histogram_quantiles(self, histogram_json, quantiles):
        histogram = json.loads(histogram_json)
        return [histogram["min"] + q * (histogram["max"] - histogram["min"]) for q in quantiles]


@pytest.fixture
def core():
    return FakeCore()


@pytest.fixture
def plan_of():
    def make(**changes):
        table = {
            "name": "s",
            "testbed": "loop:1g",
            "seed": 7,
            "rounds": 4,
            "factors": {"scheduler": ["none", "bfq"], "record_size": ["4k", "8k"]},
            "workloads": [{"kind": "iozone", "tests": ["write"], "file_size": "1m"}],
        }
        return make_plan(study_from_table(table | changes, FlagSource({})))

    return make
