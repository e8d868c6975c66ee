"""Fairness, waiting, stalls and completion by hand-worked examples."""

import pytest

from iolab.run.contention import (
    behind_its_rate,
    contention_metrics,
    cut_off,
    flowing_share,
    grants_of,
    jain,
)
from iolab.run.record import derive, segment_name
from iolab.study.load import parse_study

SECOND = 1_000_000_000


def worker(rate, *, ops=100, elapsed=SECOND, **more):
    found = {"worker": 0, "ops": ops, "bytes": rate, "read_bytes": rate, "write_bytes": 0}
    return found | {"elapsed_ns": elapsed, "gap_ns_max": 5, "late_ops": None} | more


def tenant(workers, **more):
    found = {"name": "s", "workers": workers, "service": None, "response": None, "series": None}
    return found | more


def series(*moved):
    return {"interval_ns": SECOND // 10, "bytes": list(moved), "ops": list(moved)}


PHASE = {"elapsed_ns": 7 * SECOND}


def test_jain_of_known_shares():
    assert jain([5, 5, 5, 5]) == 1
    assert jain([8, 0, 0, 0]) == 0.25
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain([0, 0]) is None


def test_workers_of_one_stream_are_compared():
    metrics = contention_metrics(PHASE, [tenant([worker(100), worker(300)])])
    assert metrics["fairness_jain"] == pytest.approx(160_000 / (2 * 100_000))
    assert "fairness_jain" not in contention_metrics(PHASE, [tenant([worker(100)])])


def test_streams_that_do_the_same_are_compared_and_others_are_not():
    alike = [tenant([worker(100)], alike=0, share=1.0), tenant([worker(300)], alike=0, share=3.0)]
    other = tenant([worker(9000)], alike=2)
    metrics = contention_metrics(PHASE, [*alike, other], is_total=True)
    assert "fairness_jain" not in metrics, "who was promised more is no equal"
    assert metrics["fairness_jain_shares"] == pytest.approx(1.0), "each has what it was promised"
    assert contention_metrics(PHASE, [alike[0], other], is_total=True) == {}


def test_streams_with_other_limits_weights_or_priorities_are_no_equals():
    text = """
name = "grants"
testbed = "loop:1g"
rounds = 5
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
kind = "mixed"
duration = "1s"
workers_as = "processes"
[[workloads.streams]]
name = "a"
direction = "read"
record_size = "4k"
file_size = "1m"
{a}
[[workloads.streams]]
name = "b"
direction = "read"
record_size = "4k"
file_size = "1m"
{b}
"""
    pair = [
        tenant([worker(100)], name="a", alike=0, share=None),
        tenant([worker(300)], name="b", alike=0, share=None),
    ]

    def fairness(a, b, *shares):
        workload = parse_study(text.format(a=a, b=b)).workloads[0]
        shared = [one | {"share": s} for one, s in zip(pair, shares or (None, None), strict=True)]
        return contention_metrics(PHASE, shared, is_total=True, grants=grants_of(workload))

    assert fairness("", "") == {"fairness_jain": pytest.approx(0.8)}
    assert fairness('max_read = "1m"', "") == {}
    assert fairness('max_read = "1m"', 'max_read = "1m"') == {"fairness_jain": pytest.approx(0.8)}
    assert fairness('priority = "idle"', "") == {}, "a record knows no share of these"
    assert fairness("cgroup_weight = 100", "cgroup_weight = 300", 100.0, 300.0) == {
        "fairness_jain_shares": pytest.approx(1.0)
    }
    limited = 'cgroup_weight = 300\nmax_read = "1m"'
    assert fairness("cgroup_weight = 100", limited, 100.0, 300.0) == {}, "a limit is no promise"


def test_one_who_gets_nothing_waits_all_the_time():
    hungry = worker(0, ops=0, elapsed=0, gap_ns_max=0)
    metrics = contention_metrics(PHASE, [tenant([worker(100, gap_ns_max=9), hungry])])
    assert metrics["gap_ns_max"] == 7 * SECOND
    assert metrics["fairness_jain"] == 0.5
    old = [{key: value for key, value in worker(1).items() if key != "gap_ns_max"}]
    assert "gap_ns_max" not in contention_metrics(PHASE, [tenant(old)])


def test_silence_at_the_end_is_a_stall():
    steady = tenant([worker(1)], series=series(*[100] * 10))
    assert flowing_share(steady) == 1
    dips = tenant([worker(1)], series=series(100, 100, 9, 10, 100, 100, 100, 100, 0, 100))
    assert flowing_share(dips) == 0.8, "9 and 0 are below a tenth of 100"
    ends_early = tenant([worker(1)], series=series(*[100] * 6))
    assert flowing_share(ends_early) == 0.6
    assert flowing_share(tenant([worker(1, elapsed=SECOND // 3)], series=series(1, 1, 1))) is None


def test_a_stream_that_did_nothing_in_no_time_has_no_stalls():
    assert flowing_share(tenant([worker(0, ops=0, elapsed=3)], series=series())) is None
    idle = tenant([worker(0, ops=0)], series=series())
    assert flowing_share(idle) is None, "nothing to compare with"


def test_a_slow_stream_does_not_stall_between_its_operations():
    once_in_a_while = series(*([1, 0, 0, 0, 0] * 40))
    twice_a_second = tenant([worker(1, ops=40, elapsed=20 * SECOND)], series=once_in_a_while)
    assert flowing_share(twice_a_second) is None, "40 operations are 4 slices of ten"
    longer = tenant(
        [worker(1, ops=80, elapsed=40 * SECOND)], series=series(*([1, 0, 0, 0, 0] * 80))
    )
    assert flowing_share(longer) == 1


def test_frames_that_come_late_and_bursts_that_are_cut_off():
    film = tenant([worker(1, ops=50, late_ops=5), worker(1, ops=50, late_ops=0)])
    assert contention_metrics(PHASE, [film])["on_time_share"] == 0.95
    frozen = tenant([worker(1, ops=87, late_ops=3, missed_ops=163)])
    assert contention_metrics(PHASE, [frozen])["on_time_share"] == pytest.approx(84 / 250)
    (caveat,) = behind_its_rate("p/s", frozen)
    assert (caveat.code, "163 of 250" in caveat.message) == ("rate_missed", True)
    assert behind_its_rate("p/s", tenant([worker(1, ops=250, late_ops=0, missed_ops=1)])) == ()
    done = tenant([worker(1, ops=10, elapsed=3), worker(1, ops=10, elapsed=8)], asked_ops=10)
    assert contention_metrics(PHASE, [done])["completion_ns"] == 8
    assert cut_off("p/s", done) == ()
    (caveat,) = cut_off("p/s", tenant([worker(1, ops=7)], asked_ops=10))
    assert caveat.code == "cut_off"
    assert "7 of 10" in caveat.message


def test_segments_have_rates_of_their_own_length(core):
    segments = [
        {"from_ns": 0, "to_ns": SECOND, "ops": 100, "bytes": 1000, "service": {}},
        {"from_ns": SECOND, "to_ns": None, "ops": 30, "bytes": 300, "service": {}},
    ]
    late = tenant([worker(1300, elapsed=2 * SECOND)], segments=segments, began_ns=SECOND // 2)
    phase = {"name": "p", "tenants": [late], "elapsed_ns": 3 * SECOND, "warnings": []}
    record = {"status": "ok", "started_at_unix_ns": 1, "elapsed_ns": 2, "phases": [phase]}
    rows = {row.operation: row.metrics for row in derive(record, core).phases}
    assert list(rows) == ["p", "p@0-1s", "p@1-s"]
    assert rows["p@0-1s"]["throughput_bytes_per_s"] == 2000, "it began after half a second"
    assert rows["p@1-s"]["throughput_ops_per_s"] == pytest.approx(20)
    assert segment_name("p", 0, 2_500_000_000) == "p@0-2.5s"
