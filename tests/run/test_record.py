"""Records: throughput, latency and cache share by hand-worked examples."""

import pytest

from iolab.errors import TestbedError
from iolab.run.record import derive, failed_record, merge_histograms, timed_quantile


def histogram(count, low, high, counts=None):
    return {
        "unit": "ns",
        "count": count,
        "min": low,
        "max": high,
        "sum": count * (low + high) // 2,
        "sub_bucket_bits": 7,
        "counts": counts or [[low, count]],
    }


def worker(number, elapsed_ns, *, read=0, write=0, ops=100):
    return {
        "worker": number,
        "ops": ops,
        "bytes": read + write,
        "read_bytes": read,
        "write_bytes": write,
        "elapsed_ns": elapsed_ns,
        "errors": 0,
        "first_error": None,
    }


def tenant(name, workers, read=None, write=None, **more):
    service = {"read": read, "write": write, "sync": histogram(5, 1, 10**9)}
    return {
        "name": name,
        "workers": workers,
        "service": service,
        "response": None,
        "series": None,
        "depth_reached_mean": 1.5,
        **more,
    }


def record(tenants, devices=None, **more):
    phase = {
        "name": "p",
        "started_ns": 0,
        "elapsed_ns": 7,
        "io_size_bytes": 4096,
        "cpu": {"user_ns": 1, "system_ns": 2},
        "harness_ns_per_op": 52.0,
        "devices": devices or [],
        "tenants": tenants,
        "warnings": [{"code": "w", "message": "m", "hint": None}],
    }
    return {
        "trial": "t0001",
        "status": "ok",
        "error": None,
        "started_at_unix_ns": 1,
        "elapsed_ns": 2,
        "facts": {"a": 1},
        "warnings": [],
        "phases": [phase],
        **more,
    }


def device(read=0, write=0):
    return {"name": "d", "read_bytes": read, "write_bytes": write, "flushed_write_bytes": 5}


def test_one_worker_is_bytes_over_its_own_time(core):
    row = derive(record([tenant("main", [worker(0, 2_000_000_000, write=1000)])]), core).phases[0]
    assert row.operation == "p"
    assert row.metrics["throughput_bytes_per_s"] == 500
    assert row.metrics["throughput_ops_per_s"] == 50
    assert row.cache_share is None


def test_several_workers_count_until_the_last_has_ended(core):
    """The sum of their own rates said 1500: the first had ended when the second was half way."""
    workers = [worker(0, 10**9, read=1000), worker(1, 2 * 10**9, read=1000), worker(2, 0, ops=0)]
    row = derive(record([tenant("main", workers)]), core).phases[0]
    assert row.metrics["throughput_bytes_per_s"] == 1000
    assert len(row.workers) == 3


def test_streams_and_their_total(core):
    rows = derive(
        record(
            [
                tenant("a", [worker(0, 10**9, read=100)], read=histogram(1000, 10, 20)),
                tenant("b", [worker(0, 10**9, write=300)], write=histogram(50, 10, 20)),
            ],
            [device(read=25, write=600)],
        ),
        core,
    ).phases
    assert [row.operation for row in rows] == ["p/a", "p/b", "p/all"]
    assert rows[2].metrics["throughput_bytes_per_s"] == 400
    assert "latency_ns_p50" not in rows[2].metrics
    assert [row.cache_share for row in rows] == [0.75, 0.0, 0.1875]


def test_quantiles_need_operations_beyond_them(core):
    """A p99 of 100 operations differs from one of 150 of the same distribution."""
    common = {"p50", "p90", "max", "mean", "timed_p99"}
    for count, tails in ((999, set()), (1000, {"p99"}), (10_000, {"p99", "p999"})):
        stored = record([tenant("main", [worker(0, 1)], write=histogram(count, 100, 200))])
        metrics = derive(stored, core).phases[0].metrics
        latencies = {name for name in metrics if name.startswith("latency")}
        assert latencies == {f"latency_ns_{name}" for name in common | tails}
    assert metrics["latency_ns_max"] == 200
    assert metrics["latency_ns_mean"] == 150


def test_a_stall_counts_as_long_as_it_lasts():
    """1,000 operations of 100 ns and one of 1 ms: p99 does not see where nine tenths of it went."""
    stalled = {"sub_bucket_bits": 7, "min": 100, "max": 1_000_000, "counts": []}
    index = (1_000_000 >> 12) + (12 << 7)
    stalled["counts"] = [[100, 1000], [index, 1]]
    assert timed_quantile(stalled, 0.99) == pytest.approx(1_000_000, rel=1 / 256)
    quick = stalled | {"max": 100, "counts": [[100, 1000]]}
    assert timed_quantile(quick, 0.99) == 100


def test_response_times_only_where_a_rate_was_asked_for(core):
    response = {"read": histogram(1000, 5, 6), "write": None, "sync": None}
    metrics = (
        derive(
            record([tenant("main", [worker(0, 1)], read=histogram(9, 1, 2), response=response)]),
            core,
        )
        .phases[0]
        .metrics
    )
    assert metrics["response_ns_max"] == 6
    assert metrics["latency_ns_max"] == 2


def test_reads_and_writes_of_a_stream_are_merged():
    merged = merge_histograms(
        [histogram(3, 5, 9, [[5, 1], [9, 2]]), None, histogram(2, 1, 9, [[9, 1], [1, 1]])]
    )
    assert merged["counts"] == [[1, 1], [5, 1], [9, 3]]
    assert (merged["count"], merged["min"], merged["max"]) == (5, 1, 9)
    assert merge_histograms([None, histogram(0, 0, 0)]) is None
    with pytest.raises(ValueError, match="resolution"):
        merge_histograms([histogram(1, 1, 1), histogram(1, 1, 1) | {"sub_bucket_bits": 8}])


@pytest.mark.parametrize(
    ("read", "moved", "share"), [(1000, 0, 1.0), (1000, 20, 0.98), (1000, 1000, 0), (1000, 4000, 0)]
)
def test_cache_share_is_what_no_device_moved(core, read, moved, share):
    made = record([tenant("main", [worker(0, 1, read=read)])], [device(read=moved)])
    assert derive(made, core).phases[0].cache_share == pytest.approx(share)


def test_only_finished_trials_give_measurements(core):
    made = record([tenant("main", [worker(0, 1, read=9)])], status="interrupted")
    found = derive(made, core)
    assert (found.status, found.phases) == ("interrupted", ())


@pytest.mark.parametrize(
    "error", ["mkfs failed", {"code": "failed", "message": "mkfs failed", "hint": ""}]
)
def test_errors_may_be_texts_or_objects(core, error):
    made = record([], status="failed", phases=[], error=error)
    assert derive(made, core).error == "mkfs failed"


def test_a_record_that_breaks_the_contract_is_named(core):
    for broken in ({"phases": [{}]}, {"status": "fine"}, {"elapsed_ns": None}):
        with pytest.raises(TestbedError, match="t0001 cannot be understood"):
            derive(record([]) | broken, core)
    assert derive(failed_record("t1", "x", started_at_unix_ns=1), core).error == "x"


def test_caveats_and_facts_are_carried_along(core):
    found = derive(record([tenant("main", [worker(0, 1)])]), core)
    assert found.phases[0].caveats[0].code == "w"
    assert found.phases[0].caveats[0].hint == ""
    assert found.facts == {"a": "1"}


def test_reads_of_somebody_else_do_not_hide_the_page_cache(core):
    """On a live file system another process read from the same device while ours hit the cache."""
    device = {"name": "vda", "read_bytes": 3 << 20, "write_bytes": 0, "flushed_write_bytes": 0}
    found = record([tenant("main", [worker(0, 10**9, read=1 << 20)])], [device])
    found["phases"][0]["own_read_bytes"] = 0
    assert {phase.cache_share for phase in derive(found, core).phases} == {1.0}


@pytest.mark.parametrize(
    ("delays", "share"),
    [((0, 0), 1.0), ((100, 300), 0.8), ((None, 300), None), ((1500, 600), None)],
)
def test_time_without_a_processor_is_a_share_of_the_workers_time(delays, share, core):
    workers = [
        worker(number, 1000, read=4096) | ({} if delay is None else {"run_delay_ns": delay})
        for number, delay in enumerate(delays)
    ]
    row = derive(record([tenant("p", workers, read=histogram(100, 1, 9))]), core).phases[0]
    assert row.metrics.get("running_share") == share


@pytest.mark.parametrize(("sync_ns", "is_told"), [(10**6, True), (10, False)])
def test_what_waits_for_flushes_is_no_cell_of_memory(sync_ns, is_told, core):
    """Reads of varmail came from memory and took no time; it "compared memory, not storage"."""
    told = record([tenant("p", [worker(0, 10**9, read=4096)], read=histogram(100, 1000, 2000))])
    told["phases"][0]["tenants"][0]["service"]["sync"] = histogram(50, sync_ns, sync_ns)
    caveats = [caveat.code for caveat in derive(told, core).phases[0].caveats]
    assert ("flush_bound" in caveats) is is_told
