"""The simulator's open books from the command line."""

import argparse
import gzip
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from iolab.cli import sim
from iolab.cli.console import Console
from iolab.cli.main import main

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def iolab():
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        assert max(map(len, out.getvalue().splitlines()), default=0) <= 80
        return code, out.getvalue(), err.getvalue()

    return run


def _row(out, name):
    (line,) = (line for line in out.splitlines() if line.startswith(name))
    return [
        float(number) for number in re.findall(r"(?<=\s)\d+(?:\.\d+)?(?=\s)", line[34:60] + " ")
    ]


def test_dispatch_predicts_and_shows_real_beside_simulated(iolab):
    recording = GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz"
    code, out, _ = iolab("sim", "dispatch", str(recording), "--scheduler", "mq-deadline")
    assert code == 0
    assert "mq-deadline: predicted 2651 of 2653 = 99.92 %" in out
    real, simulated = _row(out, "requests served")
    assert real == 2653
    assert simulated == pytest.approx(real, rel=0.05)
    real, simulated = _row(out, "ascending share")
    assert simulated == pytest.approx(real, abs=0.03)


def test_dispatch_shows_another_scheduler_on_the_same_processes(iolab):
    recording = GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz"
    code, out, _ = iolab("sim", "dispatch", str(recording), "--scheduler", "kyber")
    assert code == 0
    assert "kyber was not recorded, and its choices cannot be forced one by one:" in out
    assert "Real under mq-deadline, simulated under kyber." in out
    real, simulated = _row(out, "ascending share")
    assert real > 0.85
    assert simulated < 0.6


def test_dispatch_follows_a_scheduler_that_cannot_be_forced(iolab):
    code, out, _ = iolab("sim", "dispatch", str(GOLDEN / "dispatch" / "mixed-kyber.csv.gz"))
    assert code == 0
    assert "kyber: predicted 1992 of 1995 = 99.85 %\n" in out
    assert "100.00 % where two neighbours may be exchanged" in out
    assert "Each miss is a race" in out


def test_dispatch_explains_an_issue(iolab):
    recording = str(GOLDEN / "dispatch" / "sync-bfq.csv.gz")
    code, out, _ = iolab("sim", "dispatch", recording, "--explain", "340")
    assert code == 0
    assert "the first is issue 340: add --explain 340." in out
    assert "Issue 340, at 647.507 ms: the kernel issued sector 131832, the model 500904." in out
    assert "No other order of events that was tried makes the kernel's choice." in out
    assert "  in service: queue 3 of process 17342" in out


@pytest.mark.parametrize("number", ["-1", "2653"])
def test_dispatch_explains_no_issue_that_is_not_there(iolab, number):
    recording = str(GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz")
    code, _, err = iolab("sim", "dispatch", recording, "--explain", number)
    assert code == 1
    assert f"--explain {number}: the recording has 2653 issues" in err
    assert "name one of 0 to 2652" in err


def test_dispatch_explains_nothing_of_a_scheduler_that_was_not_there(iolab):
    recording = str(GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz")
    code, _, err = iolab("sim", "dispatch", recording, "--scheduler", "bfq", "--explain", "3")
    assert code == 1
    assert "bfq was not recorded" in err


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"hz": 0}, "hz = 0 ticks/s: must be 100 to 1000 ticks/s"),
        ({"tunables": {"fifo_batch": "x"}}, "tunable fifo_batch = 'x' is no number"),
        ({"scheduler": None}, "does not name the scheduler"),
    ],
)
def test_dispatch_refuses_a_description_of_no_queue(iolab, tmp_path, changes, told):
    source = GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz"
    shutil.copy(source, tmp_path / "a.csv.gz")
    setup = json.loads(source.with_name("three-mq-deadline.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps({**setup, **changes}))
    code, _, err = iolab("sim", "dispatch", str(tmp_path / "a.csv.gz"))
    assert (code, told in err) == (1, True), err
    code, _, err = iolab("sim", "dispatch", str(tmp_path / "a.json"))
    assert (code, "is not a file of events" in err) == (1, True), err
    (tmp_path / "a.json").write_text("[" * 100_000)
    code, _, err = iolab("sim", "dispatch", str(tmp_path / "a.csv.gz"))
    assert (code, "is not JSON" in err) == (1, True), err


def test_dispatch_without_a_model_of_the_device_only_predicts(iolab, tmp_path):
    for ending in ("csv.gz", "json"):
        source = GOLDEN / "dispatch-own" / f"three-mq-deadline.{ending}"
        (tmp_path / f"x.{ending}").write_bytes(source.read_bytes().replace(b'"hdd"', b'"none"'))
    code, out, _ = iolab("sim", "dispatch", str(tmp_path / "x.csv.gz"))
    assert code == 0
    assert "predicted 2651 of 2653" in out
    assert "has no model" in out
    assert "simulated" not in out


def test_a_tunable_changes_the_twin(iolab):
    recording = str(GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz")
    _, small, _ = iolab("sim", "dispatch", recording, "--tunable", "fifo_batch=1")
    _, large, _ = iolab("sim", "dispatch", recording, "--tunable", "fifo_batch=64")
    assert _row(small, "ascending share")[1] + 0.1 < _row(large, "ascending share")[1]


def test_probe_of_a_device_without_mechanics(iolab):
    code, out, _ = iolab("sim", "probe", "fixed-100us")
    assert code == 0
    assert "R0 100.0 us, Xmax 320000.0/s, knee N* = Xmax * R0 = 32.00" in out
    assert "Seek sweep" not in out


def test_probe_of_a_disk_finds_its_seek_curve(iolab):
    code, out, _ = iolab("sim", "probe", "hp97560-1991")
    assert code == 0
    found = re.search(r"d < (\d+): ([\d.]+) \+ ([\d.]+) \* sqrt", out)
    assert found
    assert float(found[2]) == pytest.approx(3.24, abs=0.3)
    assert float(found[3]) == pytest.approx(0.4, rel=0.05)
    assert re.search(r"400\d\.\d turns per minute", out)


def test_tables_of_software_costs_are_listed_and_unknown_ones_refused(iolab):
    code, out, _ = iolab("sim", "software")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["guest", "hosted-guest", "native"]
    code, _, err = iolab("sim", "software", "nativ")
    assert code == 1
    assert "native" in err


def test_costs_are_split_as_counted_and_what_is_missing_is_derived(monkeypatch):
    from iolab.library import calibrate_cpu

    names = ("insert", "dispatch", "complete", "merge")
    native = {
        "mq-deadline": dict(zip(names, (300.0, 300.0, 100.0, 200.0), strict=True)),
        "cfq": dict(zip(names, (600.0, 500.0, 400.0, 200.0), strict=True)),
    }
    monkeypatch.setattr(calibrate_cpu, "_counted", lambda services: native)
    rows = calibrate_cpu._schedulers({"mq-deadline": 4_400.0}, 3_000.0, None)
    found = {row.name: (row.tag, row.hooks_ns["insert"]) for row in rows}
    # 1400 ns beside the worker, twice the table; cfq is priced alike.
    assert found == {"mq-deadline": ("meas", 600), "cfq": ("derived", 1_200)}


def test_an_unknown_profile_is_a_users_mistake(iolab):
    code, _, err = iolab("sim", "probe", "fixed-100")
    assert code == 1
    assert "fixed-100us" in err


STUDY = """
testbed = "sim:fixed-100us"
seed = 3
rounds = 1
[factors]
scheduler = ["mq-deadline", "bfq"]
[settings]
file_size = "1m"
[[workloads]]
kind = "iozone"
tests = ["write", "random-read"]
"""


POINTS = {
    "Q": "bio_queue",
    "G": "getrq",
    "I": "rq_insert",
    "D": "rq_issue",
    "C": "rq_complete",
    "P": "plug",
    "U": "unplug",
}
MIRROR = """
name = "mirror"
[volume]
members = 2
parameters = { layout = "raid1" }
member.device.profile = "fixed-100us"
member.queue = { scheduler = "mq-deadline" }
"""


def test_each_queue_of_software_raid_has_its_number_in_a_trace(iolab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mirror.toml").write_text(MIRROR)
    Path("study.toml").write_text(STUDY.replace("sim:fixed-100us", "sim:mirror.toml"))
    assert iolab("sim", "trace", "study.toml", "--out", "one.csv.gz")[0] == 0
    text = gzip.decompress(Path("one.csv.gz").read_bytes()).decode()
    header, *lines = text.splitlines()
    assert header.startswith("ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu,device,request,")
    issued = Counter((row[8], row[4]) for row in (x.split(",") for x in lines) if row[1] == "D")
    assert issued["0", "WS"] == issued["1", "WS"] == 256, "each copy is written"
    assert issued["0", "RS"] + issued["1", "RS"] == 256, "one is read"


def test_a_simulated_trial_leaves_the_events_of_the_block_layer(iolab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    code, out, _ = iolab("sim", "trace", "study.toml", "--out", "one.csv.gz")
    assert (code, "events in one.csv.gz" in out) == (0, True)
    text = gzip.decompress(Path("one.csv.gz").read_bytes()).decode()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    counts = Counter(row[1] for row in rows)
    # 1 MiB in records of 4 KiB, written and read: each bio is a request of its own.
    assert counts["Q"] == counts["I"] == counts["D"] == counts["C"] == 512
    assert Counter(row[4] for row in rows if row[1] == "D") == {"WS": 256, "RS": 256}
    for row in rows:
        device, request, point = row[8:]
        assert (device, point) == ("0", POINTS[row[1]]), row
        assert (request == "") == (row[1] == "Q"), "a bio is no request yet"
    # What is told of a plug is how many requests were in it.
    of_requests = [row for row in rows if row[1] != "U"]
    lives = [[row[1] for row in of_requests if row[9] == str(n)] for n in range(1, 513)]
    assert all(life[:1] == ["G"] and life[-2:] == ["D", "C"] for life in lives)
    code, _, err = iolab("sim", "trace", "study.toml", "--out", "one.csv.gz")
    assert (code, "one.csv.gz exists already" in err) == (2, True)
    code, _, err = iolab("sim", "trace", "study.toml", "--trial", "t7", "--out", "two.csv.gz")
    assert (code, "the last is t0002" in err) == (1, True)


def test_a_tunable_named_twice_is_refused(iolab):
    recording = str(GOLDEN / "dispatch-own" / "three-mq-deadline.csv.gz")
    twice = ["--tunable", "fifo_batch=1", "--tunable", "fifo_batch=64"]
    code, out, err = iolab("sim", "dispatch", recording, *twice)
    assert (code, out) == (1, "")
    assert "--tunable fifo_batch is given twice, as 1 and as 64" in err


OWN_DEVICE = """
name = "mine"
[device]
model = "fixed"
[device.parameters]
latency = { value = 50, unit = "us", tag = "meas", source = "our own" }
depth = { value = 2, unit = "commands" }
capacity = { value = 1048576, unit = "sectors" }
is_rotational = false
"""


def test_probe_takes_a_stack_file(iolab, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN_DEVICE)
    code, out, _ = iolab("sim", "probe", str(path))
    assert code == 0
    assert out.startswith("mine, simulated")
    assert "R0 50.0 us, Xmax 40000.0/s, knee N* = Xmax * R0 = 2.00" in out
    path.write_text(OWN_DEVICE.replace("latency", "latensy"))
    code, _, err = iolab("sim", "probe", str(path))
    assert code == 1
    assert "latency" in err
    assert "latensy" in err


def test_provenance_of_a_device_of_ones_own_stands_beside_the_results(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN_DEVICE)
    flags = ["--on", f"sim:{path}", "--record-size", "4k", "--file-size", "1m", "--rounds", "2"]
    out = io.StringIO()
    arguments = ["compare", *flags, "--test", "read", "--out", str(tmp_path / "out"), "--full"]
    assert main(arguments, console=Console(out, io.StringIO())) == 0
    told = " ".join(out.getvalue().split())
    assert "1 measured and published, 3 given by the user" in told
    assert "One configuration, nothing compared: direct: read 69.8 MiB/s" in told
    assert "Undecided" not in told


def test_a_strict_run_of_one_configuration_is_no_failure(iolab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(STUDY.replace(', "bfq"', ""))
    code, text, _ = iolab("run", "one.toml", "--strict", "--out", "out")
    assert code == 0
    assert "nothing compared: direct: write" in " ".join(text.split())
    assert Path("out", "report.html").exists()


def test_tunables_of_a_stack_are_checked_before_anything_starts(iolab, tmp_path):
    path = tmp_path / "stack.toml"
    queue = 'queue = { scheduler = "cfq", tunables = { quantum = 0 } }'
    path.write_text(f'name = "x"\n{queue}\ndevice.profile = "fixed-100us"\n')
    out = tmp_path / "out"
    flags = ["--on", f"sim:{path}", "--record-size", "4k,8k", "--out", str(out)]
    for more in ([], ["--dry-run"]):
        code, text, err = iolab("compare", *flags, *more)
        assert (code, text) == (1, "")
        assert "quantum = 0" in err
        assert "must be" in err
        assert not out.exists()


def test_many_scenarios_are_summarised_with_what_fails_first():
    source = GOLDEN / "scheduler" / "scheduler-scenarios.yaml"
    core = SimpleNamespace(sim_scenarios=lambda *_: json.dumps(_judgements(1000, 30)))
    text = io.StringIO()
    console = Console(text, io.StringIO())
    for flags, n_lines in (([], 30 * 3 + 4), (["--all"], 1000 + 60 + 1)):
        text.seek(0)
        text.truncate()
        arguments = argparse.Namespace(subject="scenarios", rest=[str(source), *flags])
        services = SimpleNamespace(load_core=lambda: core)
        assert sim.execute(arguments, services, console) == sim.EXIT_CHECK_FAILED
        lines = text.getvalue().splitlines()
        assert len(lines) == n_lines
        assert lines[-1] == "970 of 1000 as expected"
        assert lines[0].startswith("FAIL" if not flags else "ok  ")


def _judgements(count, wrong):
    """Cases of two schedulers; the last ones fail."""
    return [
        {
            "id": f"c-{index}",
            "scheduler": ("cfq", "bfq")[index % 2],
            "title": "a case",
            "is_ok": index < count - wrong,
            "expected": "1",
            "obtained": "2",
        }
        for index in range(count)
    ]
