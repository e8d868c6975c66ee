"""Treatments to export, from a study as it would be stored, without running anything."""

from dataclasses import replace

import pytest

from iolab import _core
from iolab.export.treatments import exported_treatments
from iolab.store.db import Origin, Store
from iolab.study.load import study_from_table
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource

STUDY = {
    "name": "s",
    "testbed": "loop:1g",
    "seed": 7,
    "rounds": 2,
    "factors": {"scheduler": ["none", "bfq"]},
}


def changed(workload, table):
    """Keys of a study with one IOzone workload, unless `table` has others."""
    tests = {"kind": "iozone", "tests": ["write", "read"]}
    held = {"settings": {"file_size": "1m"} | table.pop("settings", {})}
    return {"workloads": [tests | (workload or {})]} | held | table


@pytest.fixture
def exported(tmp_path):
    """Treatments of a study, as the store hands them out."""

    def make(workload=None, **table):
        plan = make_plan(study_from_table(STUDY | changed(workload, table), FlagSource({})))
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        testbed = plan.study.testbed
        kind = "simulated" if testbed.kind == "sim" else "real"
        with Store.create(path, plan, Origin("0.1", testbed.text, kind=kind)) as store:
            store.add_trials(plan.trials(2))
            return exported_treatments(store.load_data(), store.contents, _core)

    return make


@pytest.fixture
def with_fields():
    """A treatment whose tenants have other fields, as engines of another build might allow."""

    def make(item, *, engine=None, **fields):
        phases = [
            {**phase, "tenants": [{**tenant, **fields} for tenant in phase["tenants"]]}
            for phase in item.workload["phases"]
        ]
        asked = {"engine": engine or item.workload["engine"], "phases": phases}
        return replace(item, workload={**item.workload, **asked})

    return make
