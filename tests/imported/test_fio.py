"""Results of fio: every form of every version becomes a study, garbage an error with its line."""

import json
import math
import shutil
from pathlib import Path

import pytest

from iolab.imported.foreign.fio_logs import bin_value
from iolab.imported.foreign.fio_options import about_options, size_of, size_text
from iolab.imported.foreign.join import parse_argument
from iolab.imported.foreign.recognise import read_foreign
from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand_files
from iolab.imported.table import TableError
from iolab.stats.judge import judge
from iolab.store.db import Store

GOLDEN = Path(__file__).parents[1] / "golden" / "fio"
JSON = sorted(GOLDEN.glob("*.json"))
NORMAL = sorted(p for p in GOLDEN.glob("g*.stdout") if "groupid=" in p.read_text())
TERSE = sorted(GOLDEN.glob("terse-v*.stdout"))


def understood(*paths, **wishes):
    return understand_files([parse_argument(str(path)) for path in paths], Wishes(**wishes))


def study(tmp_path, *paths, **wishes):
    database = tmp_path / "stored" / "study.db"
    shutil.rmtree(database.parent, ignore_errors=True)
    store_imported(understood(*paths, **wishes), database, "test")
    with Store.open_reader(database) as store:
        data = store.load_data()
    return data, judge(data)


def measured(data):
    return {(m.operation, m.metric): m.value for m in data.measurements}


def amounts(path, **wishes):
    """Metric values by operation, unit and run."""
    return {
        (v.operation, v.quantity.metric if v.quantity else v.unit, v.run): float(v.printed)
        * (v.quantity.scale if v.quantity else 1)
        for v in understood(path, **wishes).reading.runs
    }


def direction(ios=1000, **more):
    """One direction as version 3 writes it."""
    base = {
        "io_bytes": ios * 4096,
        "io_kbytes": ios * 4,
        "bw_bytes": 4096 * ios // 2,
        "bw": 2 * ios,
        "iops": ios / 2,
        "runtime": 2000,
        "total_ios": ios,
        "clat_ns": {
            "min": 10,
            "max": 9000,
            "mean": 500.5,
            "N": ios,
            "percentile": {"50.000000": 400, "90.000000": 700, "99.000000": 8000},
        },
    }
    return base | more


def document(jobs, version="fio-3.33", timestamp=1_700_000_000, **more):
    return {"fio version": version, "timestamp": timestamp, "jobs": jobs} | more


def job(name="j", group=0, error=0, **more):
    base = {
        "jobname": name,
        "groupid": group,
        "error": error,
        "elapsed": 3,
        "job options": {"rw": "randread", "bs": "4k", "iodepth": "1"},
        "read": direction(),
        "write": direction(0, io_bytes=0),
        "usr_cpu": 12.5,
        "sys_cpu": 25.0,
        "job_runtime": 2000,
    }
    return base | more


def write(path, *documents, before=""):
    path.write_text(before + "\n".join(json.dumps(d, indent=2) for d in documents) + "\n")
    return path


def test_the_recordings_are_there():
    assert len(JSON) >= 20
    assert len(NORMAL) >= 8
    assert len(TERSE) == 4


@pytest.mark.parametrize("path", [*JSON, *NORMAL, *TERSE], ids=lambda p: p.name)
def test_every_recording_has_rates(path):
    assert any("throughput" in metric for _, metric, _ in amounts(path))


@pytest.mark.parametrize("path", [JSON[2], NORMAL[1], TERSE[0]], ids=lambda p: p.name)
def test_every_form_is_a_study(tmp_path, path):
    data, verdict = study(tmp_path, path)
    assert data.measurements
    assert verdict.headline_word == "undecided"


def _is_of_one_good_job(path):
    jobs = _told(path)["jobs"]
    return len(jobs) == 1 and not jobs[0]["error"]


def _told(path):
    text = path.read_text()
    return json.loads(text[text.index("{") :])


@pytest.mark.parametrize(
    "path", [path for path in JSON if _is_of_one_good_job(path)], ids=lambda p: p.name
)
def test_numbers_of_a_single_job_are_those_of_the_file(path):
    told = _told(path)
    ours = amounts(path)
    rates = {v for (_, metric, _), v in ours.items() if metric == "throughput_bytes_per_s"}
    theirs = {
        float(told["jobs"][0][way]["bw_bytes"])
        for way in ("read", "write", "trim", "mixed")
        if told["jobs"][0].get(way, {}).get("bw_bytes")
    }
    assert rates == theirs or (rates < theirs and "mixed" in told["jobs"][0])


def test_junk_before_and_between_documents_is_passed_over(tmp_path):
    clean = write(tmp_path / "a.json", document([job()]))
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected\nfio: {x}\n{ no json\n"
    noisy = write(tmp_path / "b.json", document([job()]), before=note)
    assert amounts(clean) == amounts(noisy)


def test_interim_results_are_no_runs_but_appended_runs_are(tmp_path):
    def at(elapsed, ios, timestamp):
        return document([job(elapsed=elapsed, read=direction(ios))], timestamp=timestamp)

    path = tmp_path / "a.json"
    write(path, at(1, 300, 1001), at(2, 600, 1002), at(3, 1000, 1003), at(3, 900, 1010))
    runs = amounts(path)
    assert {run for *_, run in runs} == {1, 2}
    assert runs["randread", "throughput_ops_per_s", 1] == 500
    assert runs["randread", "throughput_ops_per_s", 2] == 450
    assert "2 interim results" in understood(path).reading.table.notes[0]


def test_files_are_rounds_in_the_order_of_their_start(tmp_path):
    late = write(tmp_path / "a.json", document([job(read=direction(2000))], timestamp=2000))
    early = write(tmp_path / "b.json", document([job(read=direction(1000))], timestamp=1000))
    imported = understood(late, early)
    rates = {v.run: v.printed for v in imported.reading.runs if v.unit == "IOPS"}
    assert rates == {1: "500", 2: "1000"}
    assert "order_unknown" not in {c.code for c in imported.caveats}


def test_options_that_differ_are_levels_and_others_are_facts(tmp_path):
    paths = []
    for place, depth in enumerate(("1", "32", "1", "32")):
        options = {"rw": "randread", "bs": "4096", "iodepth": depth, "name": f"x{place}"}
        one = job(f"x{place}", **{"job options": options})
        paths.append(write(tmp_path / f"{place}.json", document([one], timestamp=place * 10 + 10)))
    data, verdict = study(tmp_path, *paths, compare="iodepth")
    assert verdict.compared_factor == "iodepth"
    assert max(t.round for t in data.trials) == 2
    assert {t.levels["iodepth"] for t in data.trials} == {"1", "32"}
    assert {m.operation for m in data.measurements} == {"randread"}


def test_an_option_that_a_file_lacks_is_at_its_default(tmp_path):
    one = write(tmp_path / "a.json", document([job(**{"job options": {"rw": "read"}})]))
    two = write(
        tmp_path / "b.json", document([job(**{"job options": {"rw": "read", "bs": "64k"}})])
    )
    data, _ = study(tmp_path, one, two)
    assert {t.levels["record_size"] for t in data.trials} == {"4k", "64k"}


def test_levels_are_never_taken_from_the_names_of_files(tmp_path):
    for name in ("bfq-1", "bfq-2", "cfq-1", "cfq-2"):
        write(tmp_path / f"{name}.json", document([job()]))
    paths = sorted(tmp_path.glob("*.json"))
    data, _ = study(tmp_path, *paths)
    assert {t.levels.get("scheduler") for t in data.trials} == {None}
    assert max(t.round for t in data.trials) == 4
    data, verdict = study(tmp_path, *(f"{p.name[:3]}={p}" for p in paths))
    assert {t.levels.get("scheduler") for t in data.trials} == {"bfq", "cfq"}
    assert verdict.compared_factor == "scheduler"


def test_jobs_of_different_work_in_one_file_are_operations_not_levels(tmp_path):
    reader = job("a", 0)
    writer = job(
        "b",
        1,
        **{"job options": {"rw": "write", "bs": "1m"}, "read": direction(0), "write": direction()},
    )
    paths = [
        write(tmp_path / f"{n}.json", document([reader, writer], timestamp=n)) for n in (5, 50)
    ]
    data, verdict = study(tmp_path, *paths)
    assert {m.operation for m in data.measurements} == {"randread", "write"}
    assert len(data.trials) == 2
    assert "does not say" in verdict.sentence
    assert dict(understood(*paths).facts)["source.bs.write"] == "1m"


def test_a_sweep_within_one_file_is_a_factor(tmp_path):
    def at(depth, group):
        options = {"rw": "randread", "bs": "4k", "iodepth": str(depth)}
        return job(f"d{depth}", group, **{"job options": options})

    path = write(tmp_path / "a.json", document([at(1, 0), at(4, 1), at(16, 2)]))
    data, verdict = study(tmp_path, path)
    assert [t.levels["iodepth"] for t in data.trials] == ["1", "4", "16"]
    assert verdict.compared_factor == "iodepth"


def test_jobs_beside_each_other_are_one_trial(tmp_path):
    reader = job("r")
    writer = job(
        "w",
        **{"job options": {"rw": "write"}, "read": direction(0), "write": direction(50)},
    )
    data, _ = study(tmp_path, write(tmp_path / "a.json", document([reader, writer])))
    assert len(data.trials) == 1
    assert {m.operation for m in data.measurements} == {"r read", "w write"}


def test_clones_are_added_up_and_percentiles_not_averaged(tmp_path):
    path = write(tmp_path / "a.json", document([job(), job(read=direction(3000))]))
    found = amounts(path)
    assert found["randread", "throughput_ops_per_s", 1] == 2000
    assert not [key for key in found if "_p9" in key[1]]
    assert found["randread", "latency_ns_max", 1] == 9000


def test_histograms_of_clones_are_merged(tmp_path):
    def with_bins(value):
        latency = {"max": value, "mean": value, "N": 10, "bins": {str(value): 10}}
        return job(read=direction(10, clat_ns=latency))

    found = amounts(write(tmp_path / "a.json", document([with_bins(100), with_bins(300)])))
    assert found["randread", "latency_ns_p50", 1] == 100
    assert found["randread", "latency_ns_p90", 1] == 300
    assert found["randread", "latency_ns_mean", 1] == 200


def test_version_2_counts_microseconds_and_kib(tmp_path):
    way = {"io_bytes": 4000, "bw": 2000, "iops": 500.0, "runtime": 2000, "total_ios": 1000}
    way["clat"] = {"max": 9, "mean": 0.5, "percentile": {"50.000000": 4, "99.000000": 8}}
    old = {"jobname": "j", "groupid": 0, "error": 0, "read": way}
    found = amounts(write(tmp_path / "a.json", {"fio version": "fio-2.1.11", "jobs": [old]}))
    assert found["read", "throughput_bytes_per_s", 1] == 2000 * 1024
    assert found["read", "latency_ns_mean", 1] == 500
    assert found["read", "latency_ns_p99", 1] == 8000


def test_clients_are_summed_once(tmp_path):
    clients = [job(hostname=h) for h in ("a", "b")]
    whole = job("All clients", read=direction(2000)) | {"hostname": ""}
    path = tmp_path / "a.json"
    write(path, {"fio version": "fio-3.1", "client_stats": [*clients, whole]})
    found = amounts(path)
    assert found["randread", "throughput_ops_per_s", 1] == 1000
    assert found["randread", "latency_ns_p99", 1] == 8000


def test_a_failed_job_is_a_failed_trial(tmp_path):
    good = write(tmp_path / "a.json", document([job()], timestamp=100))
    bad = write(tmp_path / "b.json", document([job(error=5)], timestamp=200))
    data, verdict = study(tmp_path, good, bad)
    assert verdict.trials.failed == 1
    assert verdict.trials.ok == 1
    assert [t.error for t in data.trials if t.error] == ["j: error 5"]
    with pytest.raises(TableError, match=r"every run failed.*error 5"):
        understood(bad)


def test_a_job_without_io_is_an_error_with_its_line(tmp_path):
    idle = job(read=direction(0, io_bytes=0))
    with pytest.raises(TableError, match=r"line 6: no job of fio did any I/O"):
        understood(write(tmp_path / "a.json", document([idle])))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_json_that_is_broken_off_says_where(tmp_path, share):
    text = (GOLDEN / "g11-stonewall-groups.json").read_text()
    path = tmp_path / "a.json"
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(TableError, match=r"a\.json, line \d+: the JSON is broken off"):
        understood(path)


@pytest.mark.parametrize("value", ["1e400", "-5", '"x"', "1e-400", "9" * 400])
def test_numbers_that_no_fio_prints_are_refused(tmp_path, value):
    text = json.dumps(document([job()]), indent=1).replace('"iops": 500.0', f'"iops": {value}')
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(TableError, match=r"line \d+: job 'j', read\.iops: .* no number"):
        understood(tmp_path / "a.json")


@pytest.mark.parametrize("value", ["nan", "-nan", "NaN", "inf", "null"])
def test_numbers_that_fio_could_not_work_out_are_left_out(tmp_path, value):
    text = json.dumps(document([job()]), indent=1).replace('"iops": 500.0', f'"iops": {value}')
    (tmp_path / "a.json").write_text(text)
    found = amounts(tmp_path / "a.json")
    assert ("randread", "throughput_ops_per_s", 1) not in found
    assert found["randread", "throughput_bytes_per_s", 1] == 2048000


def test_nested_garbage_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text('{"fio version": ' + "[" * 100_000)
    with pytest.raises(TableError):
        understood(tmp_path / "a.json")


@pytest.mark.parametrize("path", TERSE, ids=lambda p: p.name)
def test_terse_lines_of_all_versions(path):
    """528 KiB in 1 ms read, 496 KiB written; latencies below 1 µs are missing, not 0."""
    found = amounts(path)
    assert found["read", "throughput_bytes_per_s", 1] == 528000 * 1024
    assert found["write", "throughput_ops_per_s", 1] == 124000
    assert found["read", "latency_ns_max", 1] in (7000, 8000)
    assert ("read", "latency_ns_p50", 1) not in found


def test_a_terse_line_of_another_length_is_refused(tmp_path):
    text = (GOLDEN / "terse-v3.stdout").read_text().strip()
    for fields in (text.split(";")[:-3], [*text.split(";"), "1", "2"]):
        (tmp_path / "a").write_text(";".join(fields))
        with pytest.raises(TableError, match=r"line 1: \d+ fields, but terse version 3 has"):
            understood(tmp_path / "a")
    disk = ["sda", "1", "2", "3", "4", "5", "6", "7", "0.50%"]
    (tmp_path / "a").write_text(";".join([*text.split(";")[:-1], *disk]))
    assert amounts(tmp_path / "a")


def test_terse_runs_that_were_appended_are_rounds(tmp_path):
    text = (GOLDEN / "terse-v4.stdout").read_text()
    first = text.replace(";x;0;0;", ";a;0;0;")
    second = text.replace(";x;0;0;", ";b;1;0;")
    (tmp_path / "a").write_text((first + second) * 3)
    reading = understood(tmp_path / "a").reading
    assert {v.run for v in reading.runs} == {1, 2, 3}
    assert {dict(v.levels)["job"] for v in reading.runs} == {"a", "b"}


OLD_TEXT = """\
x: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32
fio-2.2.10
Starting 1 process

x: (groupid=0, jobs=1): err= 0: pid=7: Mon Feb 20 13:55:42 2017
  read : io=121340KB, bw=2019.9KB/s, iops=504, runt= 60073msec
    slat (usec): min=4, max=285, avg=24.74, stdev= 8.69
    clat (usec): min=532, max=366269, avg=63293.77, stdev=44200.23
     lat (usec): min=598, max=366299, avg=63319.19, stdev=44205.06
    clat percentiles (msec):
     |  1.00th=[    7], 50.00th=[   71], 90.00th=[  101], 99.00th=[  227],
     | 99.90th=[  355], 99.95th=[  359]
    bw (KB  /s): min=  367, max=14480, per=100.00%, avg=2025.30, stdev=2493.85
  cpu          : usr=0.83%, sys=2.23%, ctx=25812, majf=0, minf=747
"""
NEW_TEXT = """\
x: (g=0): rw=randwrite, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
ioengine=psync, iodepth=1
fio-3.25
x: (groupid=0, jobs=1): err= 0: pid=7: Mon Jul  3 22:30:33 2023
  write: IOPS=36.6k, BW=18.8MiB/s (19.7MB/s)(22.0MiB/1173msec); 0 zone resets
    clat (nsec): min=10519, max=57976, avg=13462.14, stdev=2609.65
    clat percentiles (nsec):
     | 50.00th=[12608], 60.00th=[12992], 90.00th=[15424], 99.00th=[  23k],
     | 99.90th=[38656], 99.95th=[43264]
  fsync/fdatasync/sync_file_range:
    sync (usec): min=161, max=345, avg=192.48, stdev=20.09
    sync percentiles (usec):
     | 50.00th=[  184], 99.00th=[  260]
  cpu          : usr=2.99%, sys=21.84%, ctx=11253, majf=0, minf=12
"""


def test_normal_output_of_version_2(tmp_path):
    (tmp_path / "a.txt").write_text(OLD_TEXT)
    found = amounts(tmp_path / "a.txt")
    assert math.isclose(found["randread", "throughput_bytes_per_s", 1], 2019.9 * 1024)
    assert found["randread", "throughput_ops_per_s", 1] == 504
    assert found["randread", "latency_ns_p99", 1] == 227_000_000
    assert found["randread", "latency_ns_p999", 1] == 355_000_000
    assert found["randread", "latency_ns_max", 1] == 366_269_000
    assert math.isclose(found["randread", "cpu_system_share", 1], 0.0223)


def test_normal_output_of_version_3(tmp_path):
    (tmp_path / "a.txt").write_text(NEW_TEXT)
    found = amounts(tmp_path / "a.txt")
    assert math.isclose(found["randwrite", "throughput_bytes_per_s", 1], 18.8 * (1 << 20))
    assert found["randwrite", "throughput_ops_per_s", 1] == 36600
    assert found["randwrite", "latency_ns_p50", 1] == 12608
    assert found["randwrite", "latency_ns_p99", 1] == 23000
    assert found["randwrite", "flush_ns_p99", 1] == 260_000


@pytest.mark.parametrize("path", NORMAL, ids=lambda p: p.name)
def test_normal_output_and_json_of_the_same_run_agree(path):
    """The recordings of both forms are of two runs: they agree in operations, not in numbers."""
    other = path.with_suffix(".json")
    ours = {operation for operation, metric, _ in amounts(path) if "throughput" in metric}
    theirs = {operation for operation, metric, _ in amounts(other) if "throughput" in metric}
    assert ours == theirs


def test_logs_of_windows_are_means_and_series(tmp_path):
    logs = GOLDEN / "g15-logs"
    paths = [logs / f"g15_{what}.1.log" for what in ("bw", "iops", "clat", "slat")]
    data, _ = study(tmp_path, *paths)
    found = measured(data)
    assert found["read", "throughput_bytes_per_s"] == 801 * 1024
    assert found["read", "throughput_ops_per_s"] == 200
    assert len(data.trials) == 1
    assert "mean over 3 windows" in json.dumps([c.message for c in data.caveats])


def test_logs_of_single_operations_give_percentiles(tmp_path):
    lines = [f"{i}, {1000 + i}, 0, 4096, {4096 * i}, 0\n" for i in range(1, 1001)]
    (tmp_path / "x_clat.1.log").write_text("".join(lines))
    data, _ = study(tmp_path, tmp_path / "x_clat.1.log")
    found = measured(data)
    assert found["read", "latency_ns_p50"] == 1500
    assert found["read", "latency_ns_p99"] == 1990
    assert found["read", "throughput_ops_per_s"] == 1000
    assert found["read", "throughput_bytes_per_s"] == 4096 * 1000
    assert sum(data.series[0].bytes) == 4096 * 1000


def test_threads_of_one_run_are_added_up(tmp_path):
    for thread in (1, 2):
        (tmp_path / f"x_bw.{thread}.log").write_text("500, 100, 1, 0\n1000, 300, 1, 0\n")
    found = amounts(tmp_path / "x_bw.1.log")
    assert found["write", "throughput_bytes_per_s", 1] == 200 * 1024
    both, _ = study(tmp_path, tmp_path / "x_bw.1.log", tmp_path / "x_bw.2.log")
    assert measured(both)["write", "throughput_bytes_per_s"] == 400 * 1024
    assert len(both.trials) == 1


def test_histogram_logs_give_percentiles(tmp_path):
    bins = [0] * 1856
    bins[100], bins[128] = 50, 50
    text = "500, 0, 4096, " + ", ".join(map(str, bins)) + "\n"
    (tmp_path / "x_clat_hist.1.log").write_text(text * 2)
    found = amounts(tmp_path / "x_clat_hist.1.log")
    assert found["read", "latency_ns_p50", 1] == 100
    assert found["read", "latency_ns_p99", 1] == bin_value(128)


def test_bins_stand_for_their_middle():
    assert [bin_value(i) for i in (0, 127, 128, 191, 192)] == [0, 127, 129, 255, 258]


def test_a_log_whose_name_does_not_say_what_it_counts(tmp_path):
    (tmp_path / "mine.txt").write_text("500, 100, 0, 0\n1000, 300, 0, 0\n")
    with pytest.raises(TableError, match="nothing says what it counts") as told:
        understood(tmp_path / "mine.txt")
    assert "--unit" in told.value.hint
    found = amounts(tmp_path / "mine.txt", unit="IOPS")
    assert found["read", "throughput_ops_per_s", 1] == 200
    assert amounts(tmp_path / "mine.txt", unit="us")["read", "latency_ns_mean", 1] == 200_000


def test_a_log_of_times_under_the_name_of_histograms(tmp_path):
    """Such a name says nothing of lines that are no histogram; found by fuzzing."""
    (tmp_path / "x_clat_hist.1.log").write_text("500, 100, 0, 0\n1000, 300, 0, 0\n")
    with pytest.raises(TableError, match="nothing says what it counts"):
        understood(tmp_path / "x_clat_hist.1.log")
    found = amounts(tmp_path / "x_clat_hist.1.log", unit="ns")
    assert found["read", "latency_ns_mean", 1] == 200


@pytest.mark.parametrize("line", ["1000, 3", "x", "1000, 300, 7, 0", "1000, -3, 0, 0"])
def test_a_log_with_another_line_is_refused(tmp_path, line):
    (tmp_path / "x_bw.1.log").write_text(f"500, 100, 0, 0\n{line}\n700, 1, 0, 0\n")
    with pytest.raises(TableError, match=r"x_bw\.1\.log, line 2: not a line of the log"):
        understood(tmp_path / "x_bw.1.log")


def test_options_in_one_spelling():
    assert about_options({"bs": "4096", "buffered": "0", "name": "x", "readwrite": "rw"}) == {
        "bs": "4k",
        "direct": "1",
        "rw": "rw",
    }
    assert about_options({"bs": "4k,8k"}) == {"block_sizes": "4k,8k"}
    assert (size_of("1M"), size_of("4k-8k"), size_of("0")) == (1 << 20, None, None)
    assert [size_text(n) for n in (512, 4096, 3 << 20)] == ["512", "4k", "3m"]


def test_what_a_file_is_its_content_tells(tmp_path):
    for path in (JSON[0], NORMAL[0], TERSE[0]):
        copy = tmp_path / "results.csv"
        shutil.copy(path, copy)
        assert read_foreign(copy, copy.read_bytes()) is not None


def test_what_cannot_be_printed_is_no_part_of_a_study(tmp_path):
    """Half of a surrogate pair in a pattern, an option, a name: `UnicodeEncodeError`, exit 70."""
    half = "\ud800\x1b[31m"
    options = {"rw": f"x{half}", "bs": "4k", f"io{half}": "1"}
    path = write(
        tmp_path / "a.json",
        document([job(f"a{half}", **{"job options": options})]),
        document([job(f"a{half}", **{"job options": options | {f"io{half}": "2"}})], timestamp=9),
        document([job(f"b{half}", error=5, **{"job options": options})], timestamp=99),
    )
    data, _ = study(tmp_path, path)
    assert {m.operation for m in data.measurements} == {"x??[31m read"}
    assert set(data.study.factors["io??[31m"]) == {"1", "2"}
    assert all(text.isprintable() for t in data.trials for text in (t.error or "", *t.levels))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job_runtime": "1e60"}, "job_runtime: '1e60' is no number that fio prints"),
        ({"job_runtime": "1e20"}, "run time: '1e+17 s' is no number that fio prints"),
        ({"usr_cpu": "1e60"}, "usr_cpu: '1e60' is no number that fio prints"),
        ({"usr_cpu": "1e20"}, "processor time: '2.00e+18 s' is no number that fio prints"),
        ({"error": "99999999999999999999"}, "error: '99999999999999999999' is no number"),
        ({"groupid": "99999999999999999999"}, "groupid: '99999999999999999999' is no number"),
        ({"read": direction(bw_bytes="1e99")}, "read.bw_bytes: '1e99' is no number that fio"),
        ({"read": direction(total_ios="1e22")}, "read.total_ios: '1e22' is no number that fio"),
    ],
)
def test_numbers_beyond_all_machines_are_refused_with_their_place(tmp_path, changes, message):
    """The study was called damaged, or an error of 20 digits was taken for none."""
    path = write(tmp_path / "a.json", document([job(**changes)]))
    with pytest.raises(TableError) as caught:
        understood(path)
    assert message in str(caught.value)
    assert "a.json, line 6" in str(caught.value)


def test_an_error_of_a_terse_line_that_is_none_is_refused(tmp_path):
    line = TERSE[-1].read_text().splitlines()[-1].split(";")
    line[4] = "99999999999999999999"
    (tmp_path / "a").write_text(";".join(line) + "\n")
    with pytest.raises(TableError, match="line 1: the error: '99999999999999999999' is no number"):
        understood(tmp_path / "a")


def test_objects_within_objects_are_read_once(tmp_path, monkeypatch):
    """Each of n nested objects on lines of their own was decoded again: n squared."""
    calls = []
    decode = json.JSONDecoder.raw_decode

    def counted(self, text, start=0):
        calls.append(start)
        return decode(self, text, start)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    nested = '{"timestamp":\n' * 200 + "1" + "}" * 200 + "\n"
    path = write(tmp_path / "a.json", document([job()]), before=nested)
    assert amounts(path)["randread", "throughput_bytes_per_s", 1] == 2_048_000
    assert len(calls) == 2
    # A result in another object is found as before, and so is the line of what is wrong.
    path.write_text(f'{{"results": [\n{json.dumps(document([job()]))},\n{{"a": 1}}]}}\n')
    assert amounts(path)["randread", "throughput_bytes_per_s", 1] == 2_048_000
    path.write_text(nested + '{"fio version": "fio-3.33",\n"jobs": [{')
    with pytest.raises(TableError, match=r"a\.json, line 203: the JSON is broken off"):
        understood(path)
