"""Contention workloads in study files: presets, control groups, changes, the verdict's metric."""

import pytest

from iolab.errors import StudyError
from iolab.library.preset_list import study_text
from iolab.run.trial import trial_spec
from iolab.stats.metrics import METRICS
from iolab.study.checks import check
from iolab.study.load import parse_study
from iolab.study.metric_names import METRIC_NAMES, SHORT_NAMES, parse_metric
from iolab.study.model import MixedWorkload
from iolab.study.plan import make_plan
from iolab.study.presets import PRESETS
from iolab.study.render import spec_toml
from iolab.study.treatment import treatments_of

SECOND = 1_000_000_000


class Echo:
    """A stand-in for the compiled half: lowers nothing."""

    def mixed_workload(self, spec_json):
        return spec_json


@pytest.fixture
def core():
    return Echo()


HEAD = """\
testbed = "{testbed}"
rounds = 5
{keys}
[factors]
scheduler = ["none", "bfq"]
[settings]
workers_as = "{workers_as}"
"""
STREAM = """
[[workloads]]
name = "w"
kind = "mixed"
duration = "4s"
{changes}
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
file_size = "16m"
{stream}
"""


def study(testbed="loop:1g", keys="", workers_as="processes", changes="", stream=""):
    head = HEAD.format(testbed=testbed, keys=keys, workers_as=workers_as)
    return parse_study(head + STREAM.format(changes=changes, stream=stream))


def preset(name, more="", testbed="loop:2g", keys=""):
    head = HEAD.format(testbed=testbed, keys=keys, workers_as="threads")
    workload = f'[[workloads]]\nkind = "contention"\npreset = "{name}"\n{more}'
    return parse_study(head + workload)


def change(at="1s", what="read_ahead_kb = 64"):
    return f'[[workloads.changes]]\nat = "{at}"\n{what}\n'


def test_the_names_of_metrics_are_those_that_are_judged():
    assert set(METRIC_NAMES) == {metric.name for metric in METRICS}
    assert set(SHORT_NAMES.values()) <= set(METRIC_NAMES)
    assert parse_metric("p99") == "latency_ns_p99"


@pytest.mark.parametrize("name", [row.name for row in PRESETS])
def test_a_preset_is_an_ordinary_workload_with_a_metric(name):
    row = next(row for row in PRESETS if row.name == name)
    found = preset(name, 'duration = "3s"\nfile_size = "8m"')
    (workload,) = found.workloads
    assert isinstance(workload, MixedWorkload)
    assert (workload.duration_ns, workload.streams[0].file_bytes) == (3 * SECOND, 8 << 20)
    assert (found.metric, found.metric_of) == (row.metric, row.metric_of)
    assert row.metric_of in {"all", *(stream.name for stream in workload.streams)}
    make_plan(found.with_seed(1))
    assert parse_study(spec_toml(found)) == found, "the stored form does not need the preset"


@pytest.mark.parametrize("row", PRESETS, ids=[row.name for row in PRESETS])
def test_what_is_printed_is_the_preset(row):
    text = study_text(row, "loop:2g", 3 * SECOND, 8 << 20)
    again = parse_study(text)
    streams = preset(row.name, 'duration = "3s"\nfile_size = "8m"').workloads[0].streams
    assert again.workloads[0].streams == streams
    assert (again.metric, again.metric_of) == (row.metric, row.metric_of)


def test_presets_scale_with_their_duration():
    short, long = (preset("start-up", f'duration = "{s}s"').workloads[0] for s in (5, 10))
    assert long.streams[0].ops == 2 * short.streams[0].ops
    assert long.streams[0].begins_ns == 2 * short.streams[0].begins_ns


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(StudyError, match="did you mean 'latency'"):
        preset("latancy")


def test_the_metric_of_the_verdict_can_be_chosen():
    found = study(keys='metric = "p99"\nmetric_of = "reader"')
    assert (found.metric, found.metric_of) == ("latency_ns_p99", "reader")
    assert parse_study(spec_toml(found)) == found
    chosen = preset("latency", keys='metric = "max"')
    assert (chosen.metric, chosen.metric_of) == ("latency_ns_max", None)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('metric = "fairnes"', "did you mean 'fairness'"),
        ('metric = "p99"\nmetric_of = "raeder"', "did you mean 'reader'"),
    ],
)
def test_a_wrong_metric_is_refused(keys, message):
    with pytest.raises(StudyError, match=message):
        study(keys=keys)


def test_a_control_group_reaches_the_agent(core):
    found = study(stream='cgroup_weight = 300\nmax_write = "20m/s"\nmax_read_iops = 500')
    assert parse_study(spec_toml(found)) == found
    spec = trial_spec(make_plan(found.with_seed(1)).round_trials(1)[0], core, is_fresh_fs=True)
    assert spec["io_groups"] == [
        {
            "tenants": ["reader"],
            "weight": 300,
            "max_write_bytes_per_s": 20 << 20,
            "max_read_ops_per_s": 500,
        }
    ]
    assert spec["workload"]["streams"][0]["share"] == 300.0


def test_changes_reach_the_agent_and_cut_the_phase(core):
    found = study(changes=change("1s", '"read_ahead_kb" = 64') + change("2.5s", "nomerges = 2"))
    assert parse_study(spec_toml(found)) == found
    spec = trial_spec(make_plan(found.with_seed(1)).round_trials(1)[0], core, is_fresh_fs=True)
    assert spec["changes"] == [
        {"at_ns": SECOND, "knobs": {"read_ahead_kb": "64"}},
        {"at_ns": 2_500_000_000, "knobs": {"nomerges": "2"}},
    ]
    assert spec["workload"]["cuts_ns"] == [SECOND, 2_500_000_000]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (change("4s"), "ended by then"),
        (change("0s"), "at the very beginning nothing runs|a duration"),
        (change("2s") + change("1s"), "not after the change before"),
        (change(what='engine = "sync"'), "cannot change while"),
        (change(what=""), "nothing changes"),
        (change(what="read_ahed_kb = 64"), "did you mean 'read_ahead_kb'"),
    ],
)
def test_changes_that_cannot_be_are_refused(changes, message):
    with pytest.raises(StudyError, match=message):
        study(changes=changes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"workers_as": "threads", "stream": "cgroup_weight = 50"}, 'workers_as = "processes"'),
        ({"testbed": "sim:sata7200-4tb", "stream": "max_read_iops = 50"}, "control groups are not"),
        ({"testbed": "sim:sata7200-4tb", "changes": change(what="nomerges = 2")}, "cannot change"),
        ({"changes": change(what='scheduler = "bfq"')}, "scheduler is compared"),
    ],
)
def test_what_a_testbed_cannot_do_is_refused_by_name(more, message):
    found = study(**more)
    with pytest.raises(StudyError, match=message):
        check(found, treatments_of(found))


@pytest.mark.parametrize("weight", ["0", "1001", '"heavy"', "true"])
def test_a_weight_has_bounds(weight):
    with pytest.raises(StudyError, match="from 1 to 1000"):
        study(stream=f"cgroup_weight = {weight}")
