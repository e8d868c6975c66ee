"""Scripts of Filebench from the command line to its report: real storage, null, simulation.

The golden scripts are those that the original ran; what is compared are counts that do not depend
on the machine, and the ratios that follow from the loops.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import Run

pytestmark = pytest.mark.usefixtures("untouched_machine")
GOLDEN = Path(__file__).parents[1] / "golden" / "filebench"
_ROW = re.compile(
    r"(?m)^(\S+) +(\d+)ops +(\d+)ops/s +([\d.]+)mb/s +([\d.]+)ms/op \[([\d.]+)ms - +([\d.]+)ms\]"
)
_SUMMARY = re.compile(r"(?m)^[\d.]+: IO Summary: +(\d+) ops ([\d.]+) ops/s (\d+)/(\d+) rd/wr ")


def counts(text: str) -> dict[str, int]:
    """Operations by flowop, in the order of the report."""
    return {match[1]: int(match[2]) for match in _ROW.finditer(text)}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """The golden scripts, with a place of their own and short runs."""
    place = tmp_path / "place"
    place.mkdir()
    for path in GOLDEN.rglob("*.f"):
        text = path.read_text().replace("@DIR@", str(place))
        text = re.sub(r"(?m)^run \d+", "run 1", text).replace("psrun -2 6", "psrun -1 2")
        (tmp_path / path.name).write_text(text)
    return tmp_path


def ran(iolab: Run, scripts: Path, name: str, *words: str) -> str:
    out = scripts / f"out-{name}"
    done = iolab("filebench", "-f", scripts / f"{name}.f", "--out", out, *words)
    assert done.returncode == 0, done.stderr
    assert list((scripts / "place").iterdir()) == [], "nothing is left"
    return done.stdout


def test_counts_follow_from_the_loop(iolab: Run, scripts: Path) -> None:
    told = ran(iolab, scripts, "createfiles-quit")
    made = counts(told)
    assert made["mkfile"] == 300, "as many as there are names"
    assert list(made) == ["cl", "wr", "mkfile"], "the last one first"
    assert _SUMMARY.search(told) is not None
    assert counts(ran(iolab, scripts, "dirs")) == {"ls": 200, "mk": 200}
    composite = counts(ran(iolab, scripts, "composite-fixed"))
    assert composite["tone"] == 0
    assert abs(composite["tone.mk1"] - 2 * composite["rm1"]) <= 4
    # The other thread may be stopped between its 20th file and its step behind it.
    assert composite["fin"] in range(19, 41)


@pytest.mark.parametrize(("name", "threads"), [("varmail-small", 4), ("webserver-small", 4)])
def test_ratios_are_those_of_the_loop(iolab: Run, scripts: Path, name: str, threads: int) -> None:
    found = counts(ran(iolab, scripts, name))
    found.pop("lim", None)
    log = found.pop("logappend", None)
    # Each thread opens the log once, as an operation of its own.
    assert log is None or max(found.values()) <= log <= max(found.values()) + 2 * threads
    assert max(found.values()) - min(found.values()) <= threads
    assert min(found.values()) > threads


def test_events_limit_operations(iolab: Run, scripts: Path) -> None:
    text = (scripts / "fileserver-small.f").read_text().replace("run 1", "run 3")
    (scripts / "fileserver-small.f").write_text(text)
    told = ran(iolab, scripts, "fileserver-small", "--output-format", "json")
    rate = json.loads(told)["summary"]["ops_per_s"]
    # The budget is handed out once a second: three seconds see three or four of it.
    assert 360 < rate < 480, rate


def test_semaphores_and_asynchronous_writes(iolab: Run, scripts: Path) -> None:
    told = ran(iolab, scripts, "oltp-small", "--engine", "posixaio")
    found = counts(told)
    assert found["db-write"] > 0
    assert found["lg-wait"] > 0
    # Each instance of the data writers takes what is posted: two for one.
    assert found["db-block"] * 100 == pytest.approx(2 * found["sh-postdb"], rel=0.25)
    assert found["sh-hog"] >= found["sh-postlg"] - 4


def test_reports_during_a_run(iolab: Run, scripts: Path) -> None:
    told = ran(iolab, scripts, "randomread-small")
    summaries = _SUMMARY.findall(told)
    assert len(summaries) == 2
    for row in summaries:
        assert float(row[1]) == pytest.approx(1000, rel=0.15), "set back after each"
    assert told.count("\t[ ") == 4


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("run-out", "WARNING! Run stopped early:"),
        ("unclosed-fd", "NO VALID RESULTS! Filebench run terminated prematurely"),
    ],
)
def test_a_run_that_ends_too_early_has_failed(
    iolab: Run, scripts: Path, name: str, part: str
) -> None:
    done = iolab("filebench", "-f", scripts / f"{name}.f", "--out", scripts / "out")
    assert done.returncode == 1
    assert part in done.stdout
    assert "IO Summary" not in done.stdout
    assert "the operation x" in done.stderr


def test_errors_name_file_line_and_column(iolab: Run, scripts: Path) -> None:
    path = scripts / "unknown-flowop.f"
    done = iolab("filebench", "-f", path)
    assert done.returncode == 1
    assert f"{path}:2:" in done.stderr
    assert "frobnicate not found" in done.stderr


def test_commands_run_only_if_they_are_allowed(iolab: Run, scripts: Path) -> None:
    path = scripts / "dirs.f"
    path.write_text('system "echo from-shell"\n' + path.read_text())
    refused = iolab("filebench", "-f", path)
    assert refused.returncode == 1
    assert "--allow-exec" in refused.stderr
    done = iolab("filebench", "-f", path, "--allow-exec", "--out", scripts / "out")
    assert done.returncode == 0
    assert "\nfrom-shell\n" in done.stdout
    again = iolab("run", scripts / "out", "--out", scripts / "again")
    assert again.returncode == 2
    assert "from-shell" in again.stderr


def test_a_personality_runs_where_nothing_is_stored(iolab: Run, tmp_path: Path) -> None:
    done = iolab(
        *("filebench", "--on", "null:", "--out", tmp_path / "out", "makedirs"),
        *("--set", "ndirs=50", "--run", "1"),
    )
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout)["makedir-one"] == 50


def test_a_study_varies_a_variable(iolab: Run, tmp_path: Path) -> None:
    script = tmp_path / "mine.f"
    script.write_text(
        "set $nthreads=1  # threads\ndefine fileset name=fs,path=/tmp,size=4k,entries=50,"
        "dirwidth=20,prealloc\ndefine process name=p { thread name=t,memsize=1m,"
        "instances=$nthreads { flowop statfile name=st,filesetname=fs } }\nrun 1\n"
    )
    out = tmp_path / "out"
    done = iolab(
        *("compare", "--on", "null:", "--workload", f"filebench -f {script}"),
        *("--vary", "filebench:nthreads=1,2", "--rounds=2", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    script.unlink()
    again = iolab("run", out, "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr


def test_a_simulated_stack_runs_what_it_can(iolab: Run, tmp_path: Path) -> None:
    done = iolab(
        *("filebench", "randomread", "--on", "sim:sata7200-4tb", "--set", "filesize=16m"),
        *("--set", "directio=1", "--run", "1", "--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout)["read-random"] > 20
