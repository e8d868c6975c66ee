"""IOzone's command line against 90 recordings of the original.

Each recorded command runs here in a directory of its own, with `--compat`, through the real agent.
Its standard output must have the recorded layout (numbers masked), its files must be the recorded
ones, and it must fail where the original failed. What differs on purpose is in `DEVIATIONS`, with
the reason that `docs/reference/dialects/iozone.md` gives.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import TestbedError
from iolab.store.db import Store
from iolab.testbed.command import find_agent

GOLDEN = Path(__file__).parents[1] / "golden" / "iozone"
REFUSED: Final = {
    "dedup_w": "-+w",
    "jitter_K": "-K",
    "mmap_mix_Z": "-Z",
    "offset_latency_Q": "-Q",
    "offset_latency_Q_all": "-Q",
    "t2_Q": "-Q",
    "t2_z_T": "-+z",
    "telemetry_X": "-X",
    "telemetry_XY": "-X",
}
"""Recordings that succeeded and are refused here, with the option that is named."""
SEVERAL_COMMANDS: Final = ("reuse_w", "verify_V_mismatch")
"""Recordings of two commands, which have tests of their own."""
DEBUG_LINES: Final = ("async_H", "async_k")
"""The original prints debugging lines among its results."""


def agent_reason() -> str | None:
    try:
        find_agent()
    except TestbedError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(agent_reason() is not None, reason=str(agent_reason()))


def cases(*, is_failing: bool) -> list[str]:
    names = sorted(path.stem for path in GOLDEN.glob("*.cmd"))
    return [
        name
        for name in names
        if (GOLDEN / f"{name}.exit").exists() == is_failing
        and name not in (*REFUSED, *SEVERAL_COMMANDS)
    ]


FILES: Final = [
    name
    for name in cases(is_failing=False)
    if (GOLDEN / f"{name}.files").exists() or name in ("single_default", "t4_F", "multi_t")
]
"""Recordings that left files, and three that left nothing."""


def recorded_words(name: str) -> list[str]:
    words = shlex.split((GOLDEN / f"{name}.cmd").read_text())
    return words[words.index("iozone") + 1 :]


def iozone(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["iozone", *words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def run(name: str, folder: Path) -> tuple[int, str, str]:
    words = recorded_words(name)
    return iozone("--compat", "--out", str(folder / "stored"), *words) if words else iozone()


def after_banner(text: str) -> list[str]:
    assert "Run began" in text, text
    lines = text[text.index("Run began") :].splitlines()[2:]
    return [line for line in lines if not line.startswith("\tCommand line used")]


def masked(lines: list[str]) -> list[str]:
    """Lines with every number masked; of a table's row its length, for its columns may touch."""
    shown = list[str]()
    for line in lines:
        if line.startswith(("Timer resolution", "reported inaccurate")):
            continue
        row = re.fullmatch(r" +(\d+) +(\d+)[ \d]*", line)
        if row and len(line) >= 24:
            shown.append(f"row {line[:24]} of {len(line)}, {blank_columns(line)}")
        else:
            shown.append(re.sub(r" *\d+\.?\d*(?= |$|,)", " #", re.sub(r"= +", "= ", line)))
    return shown


def blank_columns(line: str) -> str:
    """Which places of nine characters after the sizes are blank at their right end."""
    return "".join("." if line[at] == " " else "#" for at in range(32, len(line), 9))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return tmp_path


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", cases(is_failing=False))
def test_a_recorded_command_prints_the_recorded_layout(name: str, folder: Path) -> None:
    code, out, err = run(name, folder)
    assert code == 0, err
    recorded = (GOLDEN / f"{name}.stdout").read_text()
    if name in DEBUG_LINES:
        found = after_banner(out)
        assert any(line.startswith("             256      16") for line in found)
        assert masked(found)[:9] == masked(after_banner(recorded))[:9]
        return
    assert masked(after_banner(out)) == masked(after_banner(recorded))
    assert "stored as run" in err


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", FILES)
def test_a_recorded_command_leaves_the_recorded_files(name: str, folder: Path) -> None:
    listed = GOLDEN / f"{name}.files"
    recorded = dict[str, int]()
    for line in listed.read_text().splitlines() if listed.exists() else []:
        size, file = line.split()
        recorded[file] = int(size)
    code, _, err = run(name, folder)
    assert code == 0, err
    found = {path.name: path.stat().st_size for path in (folder / "work").iterdir()}
    assert found == recorded


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", cases(is_failing=True))
def test_what_failed_fails_with_a_reason_and_leaves_nothing(name: str, folder: Path) -> None:
    code, _, err = run(name, folder)
    assert code == 1
    assert len(err.strip().splitlines()) >= 1
    assert list((folder / "work").iterdir()) == []
    assert not (folder / "stored").exists()


@pytest.mark.parametrize(("name", "option"), REFUSED.items())
def test_what_is_not_done_is_refused_by_name(name: str, option: str, folder: Path) -> None:
    code, out, err = run(name, folder)
    assert (code, out) == (1, "")
    assert option in err.splitlines()[0]
    assert len(err.splitlines()) >= 4
    assert list((folder / "work").iterdir()) == []


def test_a_kept_file_is_read_by_the_next_command(folder: Path) -> None:
    write = ["-i", "0", "-s", "64k", "-r", "16k", "-f", "t.tmp", "-w"]
    assert iozone(*write, "--out", str(folder / "1"))[0] == 0
    assert (folder / "work" / "t.tmp").stat().st_size == 65536
    read = ["-i", "1", "-s", "64k", "-r", "16k", "-f", "t.tmp"]
    code, out, err = iozone(*read, "--out", str(folder / "2"))
    assert code == 0, err
    assert out.splitlines()[-3].split()[:2] == ["64", "16"]
    assert not (folder / "work" / "t.tmp").exists()


def test_a_missing_file_ends_the_row_and_nobody_waits(folder: Path) -> None:
    code, out, err = iozone("-t", "2", "-i", "1", "-s", "64k", "--out", str(folder / "stored"))
    assert code == 1
    assert "iozone.DUMMY.0" in err or "iozone.DUMMY.1" in err
    assert "Children see" not in out
    assert not (folder / "stored").exists()


def test_foreign_files_beside_the_test_file_are_left_alone(folder: Path) -> None:
    precious = folder / "work" / "thesis.txt"
    precious.write_text("years")
    code, _, err = iozone("-i", "0", "-s", "64k", "--out", str(folder / "stored"))
    assert code == 0, err
    assert precious.read_text() == "years"
    assert [path.name for path in (folder / "work").iterdir()] == ["thesis.txt"]


def test_rounds_are_stored_as_trials_and_the_table_is_printed_for_each(folder: Path) -> None:
    words = ["-a", "-i", "0", "-n", "64k", "-g", "128k", "-y", "32k"]
    code, out, err = iozone(*words, "--repeat", "3", "--out", str(folder / "stored"))
    assert code == 0, err
    assert sum(line.startswith("              64      32") for line in out.splitlines()) == 3
    with Store.open_reader(folder / "stored" / "study.db") as store:
        data = store.load_data()
    assert len(data.trials) == 3 * 5
    assert {trial.status for trial in data.trials} == {"ok"}
    assert {trial.workload for trial in data.trials} == {
        "64k/32k", "64k/64k", "128k/32k", "128k/64k", "128k/128k",
    }  # fmt: skip


def test_the_report_of_a_run_can_be_shown(folder: Path) -> None:
    words = ["-i", "0", "-i", "1", "-s", "256k", "--repeat", "3", "--out", str(folder / "stored")]
    assert iozone(*words)[0] == 0
    out, err = io.StringIO(), io.StringIO()
    assert main(["report", str(folder / "stored")], console=Console(out, err)) == 0, err.getvalue()
    assert "rewrite" in out.getvalue()


SIMULATED: Final = "sim:sata-860pro-256"


def test_options_of_iolab_may_stand_before_the_name(folder: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    words = ["--on", SIMULATED, "--out", str(folder / "stored"), "iozone"]
    tests = ["-R", "-i", "0", "-i", "1", "-i", "2", "-I", "-r", "8k", "-s", "1m", "-t", "1"]
    code = main([*words, *tests, "-F", "f", "-b", "out.xls"], console=Console(out, err))
    assert code == 0, err.getvalue()
    assert "Children see throughput for  1 initial writers" in out.getvalue()
    assert (folder / "work" / "out.xls").read_bytes()[:4] == b"\x09\x00\x04\x00"


def test_buffered_io_in_simulation_is_refused_with_what_to_do(folder: Path) -> None:
    code, out, err = iozone("--on", SIMULATED, "-i", "0", "-s", "64k")
    assert (code, out) == (1, "")
    assert "add -I" in err


def test_a_workbook_by_its_name_has_a_sheet_and_a_chart_per_report(folder: Path) -> None:
    import openpyxl

    words = ["-a", "-i", "0", "-n", "64k", "-g", "128k", "-y", "32k", "-b", "out.xlsx"]
    assert iozone(*words, "--out", str(folder / "stored"))[0] == 0
    book = openpyxl.load_workbook(folder / "work" / "out.xlsx")
    assert book.sheetnames == ["Writer", "Re-writer"]
    assert [cell.value for cell in book["Writer"][4]][1:] == [32, 64, 128]


def passes(path: Path, record: int) -> list[list[int]]:
    """Records that were transferred, for each time that the test file was opened."""
    found, position = list[list[int]](), 0
    for line in path.read_text().splitlines():
        if "iozone.tmp" in line and "openat" in line:
            found.append([])
            position = 0
        call = re.match(r"(lseek|read|write)\((\d+), .*= (-?\d+)", line)
        if call is None or not found or int(call[2]) < 3:
            continue
        if call[1] == "lseek":
            position = max(int(call[3]), 0)
        elif int(call[3]) == record:
            found[-1].append(position // record)
            position += record
    return found


def random_order() -> list[int]:
    """Records in the order in which the original's children touched them."""
    lines = (GOLDEN / "trace_random_t2.txt").read_text().splitlines()
    orders = {tuple(map(int, line.split()[3:])) for line in lines if line.startswith(("r", "w"))}
    assert len(orders) == 1
    return list(orders.pop())


def traced(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[list[int]]:
    """Passes over the file of a command, as strace sees them."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    agent = folder / "agent"
    calls = f"{strace} -ff -e trace=lseek,read,write,openat -o {folder / 'log'}"
    agent.write_text(f'#!/bin/sh\nexec {calls} {find_agent()} "$@"\n')
    agent.chmod(0o755)
    monkeypatch.setenv("IOLAB_AGENT", str(agent))
    code, _, err = iozone(*words, "--out", str(folder / "stored"))
    assert code == 0, err
    record = int(words[words.index("-r") + 1].removesuffix("k")) << 10
    return [one for path in sorted(folder.glob("log.*")) for one in passes(path, record)]


@pytest.mark.timeout(60)
def test_random_and_backward_orders_are_those_of_the_recorded_traces(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["-i", "0", "-i", "2", "-i", "3", "-s", "256k", "-r", "16k"]
    found = [one for one in traced(folder, monkeypatch, *words) if one]
    forward, order = list(range(16)), random_order()
    assert found == [forward, forward, order, order, forward[::-1]]


@pytest.mark.timeout(60)
def test_the_stride_order_is_that_of_the_recorded_trace(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["-i", "0", "-i", "5", "-s", "256k", "-r", "4k"]
    found = [one for one in traced(folder, monkeypatch, *words) if one][-1]
    recorded = (GOLDEN / "trace_stride64.txt").read_text().splitlines()
    sought = [int(text) for text in recorded[-1].split()]
    assert found == [0, *sought][:64]


def test_a_link_with_the_programs_name_selects_the_dialect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.cli import main as module

    monkeypatch.setattr("sys.argv", ["/usr/bin/iozone", "-h"])
    out = io.StringIO()
    assert module.main(console=Console(out, io.StringIO())) == 0
    assert "-i N" in out.getvalue()
