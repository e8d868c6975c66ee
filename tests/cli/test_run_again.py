"""Stored studies run again: command lines as studies, killed ones to their end; issue 15, point 2.

A command line was stored as a study of IOzone that could not be run (a bonnie++ run as
`kind = "iozone", tests = ["put_block", ...]`), and neither had resume nor rounds of several levels.
"""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store
from iolab.study.load import parse_study
from iolab.study.plan import make_plan

LINES = {
    "iozone": "iozone -s 256k -r 64k -i 0 -i 1",
    "table": "iozone -a -n 64k -g 128k -y 32k -i 0 -i 1",
    "unlike": "iozone -i 0 -t 1 -t 2 -t 2 -s 64k -r 4k",
    "bonnie++": "bonnie++ -d . -s 16 -r 8 -f -n 1",
    "simulated": "iozone --on sim:fixed-100us -I -s 256k -r 64k -i 0 -i 1",
    "direct bonnie++": "bonnie++ --on sim:fixed-100us -D -f -n 0 -s 16 -r 8",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return tmp_path


def iolab(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def loaded(path: Path):
    with Store.open_reader(path / "study.db") as store:
        return store.load_data()


def measured(path: Path) -> dict[tuple[object, ...], int]:
    """Number of bytes-per-second values of each operation of each configuration."""
    found: dict[tuple[object, ...], int] = {}
    for one in loaded(path).measurements:
        if one.metric == "throughput_ops_per_s":
            key = (one.workload, *sorted(one.levels.items()), one.operation)
            found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize("name", LINES)
def test_a_stored_command_line_runs_again_as_a_study(folder: Path, name: str) -> None:
    first, again = folder / "first", folder / "again"
    code, _, err = iolab(*LINES[name].split(), "--out", str(first))
    assert code == 0, err
    stored = loaded(first).study
    study = parse_study(stored.spec_toml)
    assert stored.plan_digest == make_plan(study).digest, "the plan is that of the text"
    text = folder / "stored.toml"
    text.write_text(stored.spec_toml)
    code, out, err = iolab("run", str(text), "--out", str(again))
    assert code == 0, err
    assert "report:" in out
    assert measured(again) == measured(first)
    assert measured(first), "something was measured"
    assert loaded(again).study.plan_digest == stored.plan_digest
    assert not [path for path in Path().iterdir() if path.name.startswith("iozone.tmp")]


@pytest.mark.parametrize("name", ["table", "bonnie++"])
def test_a_command_line_gets_more_rounds(folder: Path, name: str) -> None:
    words = [*LINES[name].split(), "--out", str(folder / "stored")]
    assert iolab(*words)[0] == 0
    before = measured(folder / "stored")
    code, out, err = iolab(*words, "--rounds", "3", "--resume")
    assert code == 0, err
    assert {key: 3 * count for key, count in before.items()} == measured(folder / "stored")
    if name == "table":
        rows = [line for line in out.splitlines() if line.strip().startswith(("64 ", "128 "))]
        assert len(rows) == 3 * len({key[1:3] for key in before}), "rows of before are shown, too"
    code, _, err = iolab(*words, "-i", "2", "--rounds", "3", "--resume")
    assert code == 1
    assert "another plan" in err or "-i" in err


def killed_after_a_record(words: list[str], database: Path) -> None:
    """Start it in a process of its own and kill that when a trial is stored but not all are."""
    code = "import sys; from iolab.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if database.exists() and n_finished(database) > 0:
            break
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def n_finished(database: Path) -> int:
    with Store.open_reader(database) as store:
        return len(store.finished_trials())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["the line", "the stored study"])
@pytest.mark.parametrize(
    "line",
    [
        "iozone -a -n 1m -g 2m -y 64k -i 0 -i 1 --rounds 2",
        "bonnie++ -d . -s 16 -r 8 -f -n 1 -x 4",
    ],
)
def test_what_was_killed_is_continued(folder: Path, line: str, way: str) -> None:
    stored = folder / "stored"
    words = line.split()
    if way == "the stored study":
        assert iolab(*words, "--out", str(folder / "first"))[0] == 0
        (folder / "stored.toml").write_text(loaded(folder / "first").study.spec_toml)
        words = ["run", str(folder / "stored.toml")]
    words += ["--out", str(stored)]
    killed_after_a_record(words, stored / "study.db")
    with Store.open_reader(stored / "study.db") as store:
        before = {key: store.record(key) for key in store.finished_trials()}
        n_planned = store.contents.n_trials()
    assert 0 < len(before) < n_planned
    code, _, err = iolab(*words, "--resume")
    if code == 2 and "iozone.tmp exists and was not made by iolab" in err:
        # It was killed in the milliseconds between the birth of a file and the note of it.
        Path("iozone.tmp").unlink()
        code, _, err = iolab(*words, "--resume")
    assert code == 0, err
    with Store.open_reader(stored / "study.db") as store:
        after = store.finished_trials()
        assert {key: store.record(key) for key in before} == before, "none was run twice"
    assert len(after) == n_planned
    assert set(after.values()) == {"ok"}


def test_a_line_that_is_not_there_cannot_be_continued(folder: Path) -> None:
    words = [*LINES["iozone"].split(), "--resume"]
    code, out, err = iolab(*words)
    assert (code, out) == (1, "")
    assert "nothing to resume" in err


def test_files_of_the_users_own_are_as_safe_in_the_study_as_in_the_line(folder: Path) -> None:
    assert iolab(*LINES["iozone"].split(), "-f", "mine", "--out", str(folder / "first"))[0] == 0
    text = folder / "stored.toml"
    text.write_text(loaded(folder / "first").study.spec_toml)
    Path("mine").write_text("dear")
    code, _, err = iolab("run", str(text), "--out", str(folder / "again"))
    assert code == 2, err
    assert "mine" in err
    assert Path("mine").read_text() == "dear"
    again = folder / "again"
    code, _, err = iolab(
        "run", str(text), "--out", str(again), "--overwrite", str(Path("mine").resolve())
    )
    assert code == 0, err
