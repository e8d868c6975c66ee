"""`iolab ycsb ... --on sim:`: the model of RocksDB on simulated file systems (LSM-6 to LSM-8)."""

import io
import re

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store

STACK = """
name = "small"
device.profile = "sata7200-4tb"

[files]
fs = "{fs}"
memory = "64m"
mount_options = [{options}]
"""
SMALL = (
    *("-p", "workload=core", "-p", "recordcount=12000", "-p", "operationcount=4000"),
    *("-p", "rocksdb.option.write_buffer_size=2M", "-p", "rocksdb.option.max_background_jobs=4"),
    *("-p", "rocksdb.option.target_file_size_base=2M"),
    *("-p", "rocksdb.option.max_bytes_for_level_base=8M"),
)
MIXES = {
    "a": ("readproportion=0.5", "updateproportion=0.5", "requestdistribution=zipfian"),
    "b": ("readproportion=0.95", "updateproportion=0.05", "requestdistribution=zipfian"),
    "c": ("readproportion=1", "updateproportion=0", "requestdistribution=zipfian"),
    "d": (
        *("readproportion=0.95", "updateproportion=0", "insertproportion=0.05"),
        "requestdistribution=latest",
    ),
    "e": (
        *("readproportion=0", "updateproportion=0", "scanproportion=0.95"),
        *("insertproportion=0.05", "requestdistribution=zipfian", "maxscanlength=100"),
    ),
    "f": (
        *("readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5"),
        "requestdistribution=zipfian",
    ),
}
LINE = re.compile(r"^\[([^\]]+)\], ([^,]+), (.+)$")
SAME_NAMES = {
    *("written_bytes", "wal_write_bytes", "flush_write_bytes", "compaction_read_bytes"),
    *("compaction_write_bytes", "stall_us", "wal_syncs", "memtable_hits", "block_cache_hits"),
    *("block_cache_misses", "bloom_filter_saved_reads", "files_opened", "compactions", "flushes"),
    *("write_amplification", "level0_files", "sst_files_bytes", "pending_compaction_bytes"),
    *("memtables_bytes", "delayed_write_bytes_per_s", "is_write_stopped"),
}
"""Names of `crates/iolab-kv/src/rocksdb/facts.rs`."""


@pytest.fixture
def ycsb(tmp_path):
    """Run a command line on a simulated stack; answers exit code, series, facts and messages."""
    count = 0

    def run(*words, fs="ext4", options=""):
        nonlocal count
        count += 1
        stack = tmp_path / "stack.toml"
        stack.write_text(STACK.format(fs=fs, options=options), encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        stored = tmp_path / f"stored{count}"
        line = ["ycsb", *words, "--on", f"sim:{stack}", "--out", str(stored)]
        code = main([str(word) for word in line], console=Console(out, err))
        series = {}
        for found in filter(None, map(LINE.match, out.getvalue().splitlines())):
            series.setdefault(found[1], {})[found[2]] = found[3]
        facts = _facts(stored) if code == 0 else {}
        return code, series, facts, err.getvalue()

    return run


def _facts(stored):
    with Store.open_reader(stored / "study.db") as store:
        ((_, record),) = store.contents.records()
    (tenant,) = record["phases"][0]["tenants"]
    return {fact["name"]: fact["value"] for fact in tenant["kv"]["facts"]}


def of_mix(name, *more):
    mix = (word for pair in MIXES[name] for word in ("-p", pair))
    return ("run", "rocksdb", *SMALL, *mix, *more)


@pytest.mark.parametrize("name", MIXES)
def test_workloads_run_with_the_names_of_the_real_store(ycsb, name):
    code, series, facts, err = ycsb(*of_mix(name))
    assert code == 0, err
    ops = {key: int(value["Operations"]) for key, value in series.items() if "Operations" in value}
    ops.pop("CLEANUP")
    if name == "f":
        # Half of all operations read and update one record, which counts three times.
        assert ops["READ"] == 4000
        assert ops["UPDATE"] == ops["READ-MODIFY-WRITE"]
        assert abs(ops["UPDATE"] - 2000) < 150
    else:
        assert sum(ops.values()) == 4000, ops
    assert not any(key.endswith("-FAILED") for key in series), series
    assert float(series["OVERALL"]["Throughput(ops/sec)"]) > 0
    assert set(facts) >= SAME_NAMES
    assert facts["flushes"] >= 1
    assert facts["block_cache_misses"] > 0
    if "UPDATE" in ops or "INSERT" in ops:
        assert facts["wal_write_bytes"] > 12_000 * 1163


def test_the_same_line_gives_the_same_trial(ycsb):
    _, *first = ycsb(*of_mix("a", "-threads", "3"))
    _, *second = ycsb(*of_mix("a", "-threads", "3"))
    assert first[:2] == second[:2]


def test_lsm_6_one_sync_for_all_writers_that_wait(ycsb):
    words = ("load", "rocksdb", "-p", "workload=core", "-p", "recordcount=600")
    _, series, alone, _ = ycsb(*words, "-p", "durability=sync")
    assert alone["wal_syncs"] == 600
    assert float(series["INSERT"]["AverageLatency(us)"]) > 2000
    _, series, together, _ = ycsb(*words, "-p", "durability=sync", "-threads", "4")
    # Up to four puts for each sync: who waits goes together with the next one.
    assert 600 / 4 <= together["wal_syncs"] <= 600 / 2


def test_lsm_8_an_option_of_the_file_system_changes_times_and_not_bytes(ycsb):
    more = ("-p", "recordcount=40000", "-p", "operationcount=20000")
    levels = ("'delalloc'", "'nodelalloc'")
    trials = [ycsb(*of_mix("a", *more), options=level) for level in levels]
    (with_delay, without) = (facts for _, _, facts, _ in trials)
    assert without["wal_write_bytes"] == pytest.approx(with_delay["wal_write_bytes"], rel=0.01)
    # How many buffers a flush finds, and what is not flushed yet at the end, is a matter of time.
    assert without["flush_write_bytes"] == pytest.approx(with_delay["flush_write_bytes"], rel=0.05)
    rates = [series["OVERALL"]["Throughput(ops/sec)"] for _, series, _, _ in trials]
    assert rates[0] != rates[1]


def test_an_option_of_the_store_counts(ycsb):
    more = ("-p", "recordcount=40000", "-p", "rocksdb.option.write_buffer_size=512K")
    filtered = (*more, "-p", "rocksdb.table.filter_policy=bloomfilter:10:false")
    _, _, plain, _ = ycsb(*of_mix("c", *more))
    _, _, with_filter, _ = ycsb(*of_mix("c", *filtered), fs="xfs")
    assert with_filter["bloom_filter_saved_reads"] > 0
    assert with_filter["block_cache_misses"] < plain["block_cache_misses"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "memory"), "use the store rocksdb"),
        (("run", "rocksdb", "-p", "rocksdb.option.write_bufer_size=1M"), "`write_buffer_size`?"),
        (("run", "rocksdb", "-p", "rocksdb.option.block_size=1K"), "rocksdb.table.block_size"),
        (("run", "rocksdb", "-p", "dataintegrity=true"), "no records that could be compared"),
    ],
)
def test_what_is_not_modelled_is_refused(ycsb, words, told):
    core = ("-p", "workload=core", "-p", "recordcount=100", "-p", "operationcount=100")
    code, _, _, err = ycsb(*words, *core)
    assert code == 1
    assert told in err, err
    assert err.count("\n") <= 2, err


def test_memory_of_a_study_bounds_the_page_cache(tmp_path):
    text = """
testbed = "sim:sata7200-4tb"
rounds = 1
seed = 1
compare = "memory_limit"
[settings]
fs = "ext4"
[factors]
memory_limit = ["32m", "none"]
[[workloads]]
name = "again"
dialect = "fio"
command = "--name=again --rw=randread --bs=4k --size=64m --io_size=128m --invalidate=0"
"""
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]) == 0
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        records = [record for _, record in store.contents.records()]
    read = {r["facts"]["sim.memory"]: r["phases"][0]["devices"][0]["read_bytes"] for r in records}
    assert read["8g"] < 1.1 * (64 << 20)
    # Each page is asked for twice; with half of the file in memory many are read again.
    assert read["32m"] > 1.5 * read["8g"]
