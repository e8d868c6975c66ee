"""The simulator's open books from the command line."""

import gzip
import io
import re
from collections import Counter
from pathlib import Path

import pytest

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
    assert "kyber: its choices cannot be forced one by one" in out
    assert "Real under mq-deadline, simulated under kyber." in out
    real, simulated = _row(out, "ascending share")
    assert real > 0.85
    assert simulated < 0.6


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
    code, _, err = iolab("sim", "trace", "study.toml", "--out", "one.csv.gz")
    assert (code, "one.csv.gz is there already" in err) == (1, True)
    code, _, err = iolab("sim", "trace", "study.toml", "--trial", "t7", "--out", "two.csv.gz")
    assert (code, "the last is t0002" in err) == (1, True)
