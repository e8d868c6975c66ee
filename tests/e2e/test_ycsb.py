"""`iolab ycsb` as it is typed: stores, recorded key streams, reports, logs, studies."""

import base64
import ctypes.util
import io
import json
import re
import struct
import zlib
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store

GOLDEN = Path(__file__).parents[1] / "golden" / "ycsb"
CORE = ("-p", "workload=core")
LINE = re.compile(r"^\[([^\]]+)\], ([^,]+), (.+)$")
needs_rocksdb = pytest.mark.skipif(
    ctypes.util.find_library("rocksdb") is None
    and not list(Path("/usr/lib").rglob("librocksdb.so*")),
    reason="the library of RocksDB is not installed",
)


def iolab(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(a) for a in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def ycsb(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        stored = tmp_path / f"stored{len(list(tmp_path.glob('stored*')))}"
        words = [str(GOLDEN / a) if str(a).endswith(".properties") else a for a in arguments]
        code, out, err = iolab("ycsb", "--out", stored, *words)
        assert code == 0, err
        return out, err, stored

    return run


def lines_of(out):
    found = {}
    for line in out.splitlines():
        if match := LINE.match(line):
            found.setdefault(match[1], {})[match[2]] = match[3]
    return found


def recorded_words(name):
    text = (GOLDEN / f"{name}.cmd").read_text().splitlines()[0]
    return text.split()[1:]


@pytest.mark.parametrize(
    "name",
    [
        *("basic-load-hashed", "basic-load-integrity", "basic-load-ordered-pad"),
        *("basic-load-split", "basic-run-sequential"),
    ],
)
def test_the_recorded_keys_are_printed(ycsb, name):
    out, _, _ = ycsb(*recorded_words(name))

    def operations(text):
        # Values are random, but for those of checked fields; fields come in Java's order there.
        words = [line.split(" [ ") for line in text.splitlines() if " usertable " in line]
        keep = "integrity" in name
        return [(a, sorted(re.findall(r"field\d+=\S+", b)) if keep else []) for a, b in words]

    recorded = (GOLDEN / f"{name}.stdout").read_text()
    assert operations(out) == operations(recorded)
    assert operations(out)
    series = {name for name in lines_of(recorded) if not name.startswith("TOTAL_GC")}
    assert series <= set(lines_of(out))


def test_threads_share_the_recorded_keys(ycsb):
    out, _, _ = ycsb(*recorded_words("basic-load-threads"))
    keys = [line.split()[2] for line in out.splitlines() if line.startswith("INSERT usertable")]
    assert sorted(keys) == [f"user{number}" for number in range(10)]
    assert out.count("* properties *") == 3
    assert lines_of(out)["CLEANUP"]["Operations"] == "3"


def test_scans_and_changes_of_one_field_are_printed(ycsb):
    out, _, _ = ycsb(*recorded_words("basic-run-e"))
    found = re.findall(
        r"^(SCAN usertable user\d+ \d+ \[ <all fields>\]|INSERT usertable .*)$", out, re.M
    )
    assert len(found) == 20
    out, _, _ = ycsb(*recorded_words("basic-run-f-onefield"))
    changes = re.findall(
        r"^READ usertable (user\d+) \[ field\d \]\nUPDATE usertable (\S+)", out, re.M
    )
    assert changes
    assert all(read == update for read, update in changes)
    found = lines_of(out)
    assert found["READ"]["Operations"] == "12"
    assert found["UPDATE"]["Operations"] == found["READ-MODIFY-WRITE"]["Operations"]


def test_a_run_in_memory_counts_and_is_stored(ycsb):
    out, err, stored = ycsb("run", "memory", "-P", "core-f.properties", "-threads", "2")
    found = lines_of(out)
    assert found["READ"]["Operations"] == "10000"
    assert found["READ"]["Return=OK"] == "10000"
    assert found["UPDATE"]["Operations"] == found["READ-MODIFY-WRITE"]["Operations"]
    assert abs(int(found["UPDATE"]["Operations"]) - 5000) < 150  # Three standard deviations.
    assert "YCSB Client" in err
    with Store.open_reader(stored / "study.db") as store:
        ((_, record),) = store.contents.records()
    (tenant,) = record["phases"][0]["tenants"]
    assert tenant["kv"]["loaded"] == 10000
    assert sum(worker["ops"] for worker in tenant["workers"]) == 10000
    assert iolab("report", stored)[0] == 0


def test_values_are_checked(ycsb):
    words = (
        *CORE,
        "-p",
        "recordcount=500",
        "-p",
        "operationcount=2000",
        "-p",
        "dataintegrity=true",
    )
    found = lines_of(ycsb("run", "memory", *words)[0])
    assert found["VERIFY"]["Return=OK"] == found["READ"]["Operations"]
    assert "Return=UNEXPECTED_STATE" not in found["VERIFY"]


def test_a_target_is_kept_and_told(ycsb):
    words = ("-target", "1000", "-threads", "4", "-s", "-p", "status.interval=0.5")
    both = ("-p", "measurement.interval=both", "-p", "operationcount=1500")
    out, err, _ = ycsb("run", "memory", *CORE, "-p", "recordcount=100", *words, *both)
    found = lines_of(out)
    assert abs(int(found["OVERALL"]["RunTime(ms)"]) - 1500) < 150
    assert found["Intended-READ"]["Operations"] == found["READ"]["Operations"]
    status = [line for line in err.splitlines() if " sec: " in line]
    assert len(status) >= 3
    pattern = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} 1 sec: 1500 operations; .*\[READ: Count=\d+, Max="
    )
    assert re.match(pattern, status[-1]), status[-1]


def test_logs_are_those_of_hdrhistogram(ycsb, tmp_path):
    words = ("-p", "hdrhistogram.fileoutput=true", "-p", "hdrhistogram.output.path=log-")
    sizes = ("-p", "recordcount=100", "-p", "operationcount=1000", "-p", "readproportion=1")
    out, _, _ = ycsb("run", "memory", *CORE, *sizes, *words, "-p", "updateproportion=0")
    text = (tmp_path / "log-READ.hdr").read_text().splitlines()
    assert text[0] == "#[Logging for: READ]"
    assert text[1] == "#[Histogram log format version 1.3]"
    packed = base64.b64decode(text[-1].rpartition(",")[2])
    assert packed[:4] == bytes.fromhex("1c849314")
    data = zlib.decompress(packed[8:])
    cookie, length, _, digits = struct.unpack(">IIII", data[:16])
    assert (cookie, length, digits) == (0x1C849313, len(data) - 40, 3)
    counts, place = [], 40
    while place < len(data):
        shift = value = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        counts += [0] * -number if number < 0 else [number]
    assert sum(counts) == 1000
    assert lines_of(out)["READ"]["Operations"] == "1000"


def test_raw_latencies_json_and_files(ycsb, tmp_path):
    sizes = (*CORE, "-p", "recordcount=50", "-p", "operationcount=40")
    out, _, _ = ycsb("run", "memory", *sizes, "-p", "measurementtype=raw")
    raw = re.findall(r"^(?:READ|UPDATE),\d{13},\d+$", out, re.M)
    assert len(raw) == 40
    exporter = "exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter"
    ycsb("run", "memory", *sizes, "-p", exporter, "-p", "exportfile=report.json")
    names = {line["measurement"] for line in json.loads((tmp_path / "report.json").read_text())}
    assert {"RunTime(ms)", "Operations", "99thPercentileLatency(us)"} <= names


@needs_rocksdb
def test_a_database_is_loaded_used_and_kept(ycsb, tmp_path):
    place = ("-p", f"rocksdb.dir={tmp_path}/db")
    out, _, stored = ycsb("load", "rocksdb", "-P", "core-d.properties", *place)
    assert lines_of(out)["INSERT"]["Return=OK"] == "10000"
    with Store.open_reader(stored / "study.db") as store:
        ((_, record),) = store.contents.records()
    kv = record["phases"][0]["tenants"][0]["kv"]
    facts = {fact["name"]: fact["value"] for fact in kv["facts"]}
    assert facts["written_bytes"] > kv["user_write_bytes"] > 10_000 * 1140
    assert facts["wal_write_bytes"] >= facts["written_bytes"]
    assert kv["version"]
    found = lines_of(ycsb("run", "rocksdb", "-P", "core-d.properties", *place)[0])
    assert "READ-FAILED" not in found
    assert found["READ"].keys() >= {"Return=OK"}
    scans = lines_of(ycsb("run", "rocksdb", "-P", "core-e.properties", *place)[0])
    assert int(scans["SCAN"]["Operations"]) + int(scans["INSERT"]["Operations"]) == 10000
    missing = ycsb(
        "run",
        "rocksdb",
        *CORE,
        "-p",
        "recordcount=20000",
        "-p",
        "operationcount=500",
        "-p",
        "insertorder=ordered",
        *place,
    )[0]
    assert (
        lines_of(missing)["READ-FAILED"]["Operations"]
        == lines_of(missing)["READ"]["Return=NOT_FOUND"]
    )


@needs_rocksdb
def test_a_directory_of_the_users_is_refused(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "letter").write_text("dear")
    words = ("ycsb", "load", "rocksdb", *CORE, "-p", "recordcount=5")
    code, _, err = iolab(*words, "--out", tmp_path / "a", "-p", f"rocksdb.dir={theirs}")
    assert code == 2
    assert "not a database that iolab made" in err
    assert [path.name for path in theirs.iterdir()] == ["letter"]
    named = ("--overwrite", theirs, "-p", f"rocksdb.dir={theirs}")
    code, out, err = iolab(*words, "--out", tmp_path / "b", *named)
    assert code == 0, err
    assert "[INSERT], Return=OK, 5" in out


@needs_rocksdb
def test_an_option_of_the_store_is_a_factor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.properties").write_text(
        "workload=core\nrecordcount=200\noperationcount=300\n"
    )
    command = "ycsb run rocksdb -P small.properties"
    code, out, err = iolab(
        *("compare", "--workload", command, "--vary", "ycsb:threadcount=1,2", "--rounds", "2"),
        *("--on", f"dir:{tmp_path}", "--out", tmp_path / "study"),
    )
    assert code in (0, 4), err
    with Store.open_reader(tmp_path / "study" / "study.db") as store:
        records = [record for _, record in store.contents.records()]
    assert {record["status"] for record in records} == {"ok"}
    tenants = [record["phases"][0]["tenants"][0] for record in records]
    assert sorted(len(tenant["workers"]) for tenant in tenants) == [1, 1, 2, 2]
    assert all(tenant["kv"]["loaded"] == 200 for tenant in tenants), "each trial has its own"
    assert "ycsb" in out


@needs_rocksdb
def test_a_load_that_did_not_end_is_no_database(tmp_path, monkeypatch):
    """Symptom: the run after a killed load measured a part of the records, without a word.

    Cause: whatever the library could open counted as loaded. Fix: a file beside the database says
    that a load is under way; the next run loads again.
    """
    monkeypatch.chdir(tmp_path)
    words = (*CORE, "-p", "recordcount=60", "-p", "operationcount=20", "-p", "rocksdb.dir=db")
    code, _, err = iolab("ycsb", "--out", tmp_path / "a", "load", "rocksdb", *words)
    assert code == 0, err
    note = tmp_path / "db" / "IOLAB-LOADING"
    assert not note.exists(), "a load that ended leaves no note"
    note.touch()
    code, _, err = iolab("ycsb", "--compat", "--out", tmp_path / "b", "run", "rocksdb", *words)
    assert code != 0
    assert "db holds a part of its records: a load did not end" in err
    assert "load it again (ycsb load)" in err
    code, _, err = iolab("ycsb", "--out", tmp_path / "c", "run", "rocksdb", *words)
    assert code == 0, err
    with Store.open_reader(tmp_path / "c" / "study.db") as store:
        ((_, record),) = store.contents.records()
    assert record["phases"][0]["tenants"][0]["kv"]["loaded"] == 60
    assert not note.exists()


def test_more_records_than_memory_holds_are_refused(tmp_path, monkeypatch):
    """Symptom: two billion records in memory were accepted, and took all of it."""
    monkeypatch.chdir(tmp_path)
    words = (*CORE, "-p", "recordcount=2000000000", "-p", "operationcount=10")
    for action in ("load", "run"):
        code, out, err = iolab("ycsb", "--out", tmp_path / action, action, "memory", *words)
        told = out + err
        assert code != 0, told
        assert "2000000000 records need about" in told
        assert "are available" in told
        assert "recordcount" in told


def test_simulation_without_files_is_refused_by_name_and_null_is_not(tmp_path):
    words = (*CORE, "-p", "recordcount=100", "-p", "operationcount=200")
    place = ("--out", tmp_path / "sim", "--on", "sim:fixed-100us")
    code, _, err = iolab("ycsb", *place, "run", "memory", *words)
    assert code == 1, err
    assert "a simulated store keeps its files in a file system" in err
    code, out, err = iolab(
        "ycsb", "--out", tmp_path / "n", "--on", "null:", "run", "memory", *words
    )
    assert code == 0, err
    assert "[OVERALL], Throughput" in out
    assert [path.name for path in tmp_path.iterdir()] == ["n"]
