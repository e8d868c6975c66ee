"""Commands of other programs as workloads of studies: whatever a study can do works with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.store.db import Store
from iolab.store.rows import StudyData

from .conftest import Run

pytestmark = pytest.mark.usefixtures("untouched_machine")
ON_LOOP = [pytest.mark.needs_loop]
IOZONE = "iozone -s 4m -r 64k -i 0 -i 1"
BONNIE = "bonnie++ -s 16 -r 8 -f -n 1"
TESTS = {
    IOZONE: {"write", "rewrite", "read", "reread"},
    BONNIE: {
        *("put_block", "rewrite", "get_block", "seeks"),
        *("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del"),
    },
}


def stored(out: Path) -> StudyData:
    with Store.open_reader(out / "study.db") as store:
        return store.load_data()


@pytest.mark.parametrize("workload", TESTS)
@pytest.mark.parametrize(
    ("factor", "levels"),
    [
        pytest.param("scheduler", ["none", "bfq"], marks=ON_LOOP),
        pytest.param("fs", ["ext4", "ext2"], marks=ON_LOOP),
        pytest.param("mount-options", ["noatime", "relatime"], marks=ON_LOOP),
        ("cache", ["cold", "as_is"]),
    ],
)
def test_a_command_meets_each_level(
    iolab: Run, tmp_path: Path, workload: str, factor: str, levels: list[str]
) -> None:
    out, place = tmp_path / "out", tmp_path / "place"
    place.mkdir()
    on = f"dir:{place}" if factor == "cache" else "loop:64m"
    named = [f"--{factor}={level}" for level in levels]
    done = iolab("compare", "--on", on, "--workload", workload, *named, "--rounds=2", "--out", out)
    assert done.returncode == 0, done.stderr
    data = stored(out)
    name = factor.replace("-", "_")
    found = {(one.levels[name], one.operation) for one in data.measurements}
    assert found == {(level, test) for level in levels for test in TESTS[workload]}
    assert all(trial.status == "ok" for trial in data.trials)
    assert list(place.iterdir()) == []
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["compared_factor"] == name


def test_a_varied_word_is_what_the_agent_was_told(iolab: Run, tmp_path: Path) -> None:
    out, place = tmp_path / "out", tmp_path / "place"
    place.mkdir()
    vary = ["--vary", "iozone:-r=16k,64k"]
    words = ["--workload", "iozone -s 1m -i 0", *vary, "--rounds", "1", "--out", str(out)]
    done = iolab("compare", "--on", f"dir:{place}", *words)
    assert done.returncode == 0, done.stderr
    with Store.open_reader(out / "study.db") as store:
        trials = store.load_data().trials
        sizes = {
            trial.levels["iozone:-r"]: {
                phase["io_size_bytes"] for phase in store.record(trial.trial_id)["phases"]
            }
            for trial in trials
        }
    assert sizes == {"16k": {16 << 10}, "64k": {64 << 10}}


def test_plan_rehearsal_archive_diff_and_gate_take_it(iolab: Run, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    study = tmp_path / "study.toml"
    study.write_text(
        f'name = "s"\ntestbed = "dir:{place}"\nrounds = 3\n[factors]\ncache = ["cold", "as_is"]\n'
        f'[[workloads]]\ndialect = "iozone"\ncommand = "{IOZONE.removeprefix("iozone ")}"\n'
    )
    assert "rounds" in iolab("plan", study).stdout
    rehearsed = iolab("run", study, "--dry-run")
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert "Nothing is changed" in rehearsed.stdout
    for name in ("one", "two"):
        done = iolab("run", study, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    packed = iolab("archive", tmp_path / "one", "--out", tmp_path / "one.iolab")
    assert packed.returncode == 0, packed.stderr
    exported = iolab("archive", "--export", "fio", "--out", tmp_path / "fio", tmp_path / "one")
    assert exported.returncode == 0, exported.stderr
    as_typed = iolab("archive", "--export", "iozone", "--out", tmp_path / "sh", tmp_path / "one")
    assert as_typed.returncode == 0, as_typed.stderr
    scripts = [path.read_text() for path in (tmp_path / "sh").rglob("*") if path.is_file()]
    assert any(IOZONE in text for text in scripts), "as it was typed"
    compared = iolab("diff", tmp_path / "one", tmp_path / "two")
    assert compared.returncode == 0, compared.stderr
    assert iolab("gate", tmp_path / "one", tmp_path / "two").returncode in (0, 4, 5)
