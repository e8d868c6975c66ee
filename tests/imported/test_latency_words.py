"""Statistics of latencies are known by whole words, and one without a metric is not judged.

Symptom: "min latency" was told as the longest one, p99.99 as p99.9, `read_p99_latency` as the
longest, `lat_avg` as the time of the whole operation.
Cause: patterns for pieces of words, in which ``_`` is a letter.
"""

import pytest

from iolab.imported.mapping import Wishes
from iolab.imported.quantities import quantity_of
from iolab.imported.study import store_imported, understand
from iolab.stats.judge import judge
from iolab.stats.ledger import is_average_of_operations
from iolab.store.db import Store


@pytest.mark.parametrize(
    ("operation", "metric"),
    [
        ("read_p99_latency", "latency_ns_p99"),
        ("p99", "latency_ns_p99"),
        ("p999", "latency_ns_p999"),
        ("p99.9 latency", "latency_ns_p999"),
        ("latency 99.9", "latency_ns_p999"),
        ("99.90th", "latency_ns_p999"),
        ("read 99 percentile", "latency_ns_p99"),
        ("99% latency", "latency_ns_p99"),
        ("readP90", "latency_ns_p90"),
        ("50th percentile", "latency_ns_p50"),
        ("read median", "latency_ns_p50"),
        ("lat_avg", "latency_ns_mean"),
        ("clat mean", "latency_ns_mean"),
        ("avgLatency", "latency_ns_mean"),
        ("avg", "latency_ns_mean"),
        ("sd0 svc_t", "latency_ns_mean"),
        ("asvc_t", "latency_ns_mean"),
        ("r_await", "latency_ns_mean"),
        ("write (time per op)", "latency_ns_mean"),
        ("max_lat", "latency_ns_max"),
        ("p100", "latency_ns_max"),
        ("put_block_latency", "latency_ns_max"),
        ("Random Read Latency", "latency_ns_max"),
        ("read", "elapsed_ns_total"),
        ("1st read", "elapsed_ns_total"),
        ("70% read", "elapsed_ns_total"),
    ],
)
def test_a_statistic_is_known_by_whole_words(operation, metric):
    assert quantity_of("us", operation).metric == metric


@pytest.mark.parametrize(
    "operation",
    [
        *(
            "min latency",
            "min",
            "read_min_lat",
            "lat_stddev",
            "latency stdev",
            "p95",
            "read_p95_lat",
        ),
        *(
            "p99.99 latency",
            "p9999",
            "99.99th",
            "95th percentile latency",
            "clat",
            "p50 to p99 lat",
        ),
    ],
)
def test_a_statistic_without_a_metric_is_no_other(operation):
    assert quantity_of("us", operation) is None


@pytest.mark.parametrize("operation", ["max compression", "15 min run", "mean time to repair"])
def test_seconds_of_a_whole_operation_stay_what_they_are(operation):
    assert quantity_of("s", operation).metric == "elapsed_ns_total"


def test_what_is_not_judged_is_said_with_what_would_be(tmp_path):
    rows = [f"{s},{r},min latency,{r + d},us" for s, d in (("noop", 1), ("bfq", 5)) for r in (1, 2)]
    path = tmp_path / "t.csv"
    path.write_text("scheduler,run,operation,value,unit\n" + "\n".join(rows) + "\n")
    store_imported(understand(path, Wishes()), tmp_path / "out" / "study.db", "test")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        verdict = judge(store.load_data())
    assert verdict.headline == []
    assert "no value is of a unit and a statistic that iolab judges" in verdict.sentence
    (told,) = [c.sentences for c in verdict.caveats if c.kind == "not_judged"]
    assert "of no statistic that iolab judges: min latency 2 us" in told
    assert "mean, p50, p90, p99, p99.9 or longest" in told


@pytest.mark.parametrize(
    "head", ["read mean latency us", "avg_us", "latency avg (us)", "lat_avg_us"]
)
def test_a_mean_latency_is_judged_and_no_average_over_operations(tmp_path, head):
    """The hint of `not_judged` named it, but it was taken for a mean over several operations."""
    path = tmp_path / "t.csv"
    rows = [
        f"{fs},{run},{run + shift}" for fs, shift in (("a", 100), ("b", 200)) for run in (1, 2, 3)
    ]
    path.write_text(f"fs,run,{head}\n" + "\n".join(rows) + "\n")
    store_imported(understand(path, Wishes()), tmp_path / "out" / "study.db", "test")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        verdict = judge(store.load_data())
    (headline,) = verdict.headline
    assert (headline.metric, headline.effect.word) == ("latency_ns_mean", "worse")


def test_an_average_over_operations_stays_one():
    assert is_average_of_operations("mean of 7 operations")
    assert is_average_of_operations("mean latency of all operations")
    assert is_average_of_operations("average")
    assert not is_average_of_operations("write mean latency")
