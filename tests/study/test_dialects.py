"""Rows of a dialect as a study's workloads and factors."""

import json

import pytest

from iolab import _core
from iolab.study.load import study_from_table
from iolab.study.model import Factor, Study, TestbedRequest
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource
from iolab.study.table import RowTable


def table_of(command):
    dialect, *words = command.split()
    return RowTable(dialect, json.loads(_core.dialect_parse(dialect, words))["rows"])


def study_of(table):
    return Study(
        name="x",
        testbed=TestbedRequest("dir", "/tmp", ()),
        factors=table.factors,
        settings=table.settings,
        workloads=table.workloads,
        compared_factor=table.factors[0].name,
        baseline=table.baseline,
        rounds=2,
        seed=1,
    )


DIRECT = Factor("direct", ("false",))
CASES = {
    "iozone -a -i 0 -n 64k -g 128k -y 32k": (
        [("record_size", ("32k", "64k", "128k")), ("file_size", ("64k", "128k"))],
        "32k",
    ),
    # Above 32 MiB the automatic mode leaves small records out: most rows have 64 KiB or more.
    "iozone -a -i 0 -n 16m -g 64m": (
        [
            ("record_size", ("4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k",
                             "1m", "2m", "4m", "8m", "16m")),
            ("file_size", ("16m", "32m", "64m")),
        ],
        "64k",
    ),
    "iozone -i 0 -i 1 -s 1m -r 4k -r 8k": ([("record_size", ("4k", "8k"))], "4k"),
    "iozone -a -i 0 -r 4k -n 64k -g 128k": ([("file_size", ("64k", "128k"))], "64k"),
    "iozone -l 1 -u 3 -i 0 -s 64k -r 4k": ([("workers", ("1", "2", "3"))], "1"),
}  # fmt: skip


@pytest.mark.parametrize("command", CASES)
def test_sizes_of_rows_are_levels_of_one_workload(command):
    table = table_of(command)
    factors, baseline = CASES[command]
    assert list(table.factors) == [Factor(*given) for given in factors]
    assert table.settings == (("direct", "false"),)
    assert table.baseline == baseline
    assert [workload.name for workload in table.workloads] == ["iozone"]
    held = dict(table.workloads[0].settings)
    assert not held.keys() & {factor.name for factor in table.factors}


@pytest.mark.parametrize("command", [*CASES, "iozone -i 0", "bonnie++ -d /tmp", "mkfile 1m a b"])
def test_a_plan_has_the_rows_as_treatments_in_their_order_in_every_round(command):
    table = table_of(command)
    plan = make_plan(study_of(table), table.places)
    assert [treatment.place for treatment in plan.treatments] == table.places
    assert len(set(table.places)) == len(table.rows)
    for number in (1, 2):
        trials = plan.round_trials(number)
        assert [trial.treatment.place for trial in trials] == table.places
        assert [trial.position for trial in trials] == list(range(len(trials)))
    for row, treatment in zip(table.rows, plan.treatments, strict=True):
        assert treatment.effective["record_size"] == size(row["record_kb"], treatment)
        assert treatment.effective["workers"] == str(row["children"])


def size(kb, treatment):
    if kb == 0:  # Files without records.
        return treatment.effective["record_size"]
    return f"{kb >> 10}m" if kb % 1024 == 0 else f"{kb}k"


@pytest.mark.parametrize(
    "command",
    [
        "iozone -i 0 -s 64k",
        "mkfile 1m a b",
        # One child reads, the second of two writes: not the same test with more workers.
        "iozone -i 0 -i 8 -t 1 -t 2 -s 64k -r 4k",
        "iozone -i 0 -t 1 -t 2 -t 2 -s 64k -r 4k",
    ],
)
def test_other_rows_are_workloads_of_their_own(command):
    table = table_of(command)
    assert (table.factors, table.settings) == ((DIRECT,), ())
    assert [workload.name for workload in table.workloads] == [row["name"] for row in table.rows]


def test_the_order_is_part_of_what_a_plan_is():
    text = {
        "testbed": "loop:1g",
        "seed": 7,
        "rounds": 2,
        "factors": {"scheduler": ["none", "bfq"]},
        "workloads": [{"kind": "iozone", "tests": "write", "file_size": "1m"}],
    }
    study = study_from_table(text, FlagSource({}))
    random = make_plan(study)
    ordered = make_plan(study, [treatment.place for treatment in random.treatments])
    assert random.digest != ordered.digest
