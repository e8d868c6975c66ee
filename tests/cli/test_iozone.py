"""IOzone's command line against every recording of the original.

Each recorded command runs here in a directory of its own, with `--compat`, through the real agent.
It must touch the recorded files, print the recorded layout with numbers masked (the blocks of
throughput mode and the filled columns of a table are its phases), and end as the original ended.
What differs on purpose is in `DEVIATIONS`; a deviation that no longer deviates fails, too. The
reasons are those of `docs/reference/dialects/iozone.md`.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import time
from pathlib import Path
from typing import Any, Final

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import StoppedError, TestbedError
from iolab.library.dialect import run as run_of_dialect
from iolab.report.charts import by_record_size
from iolab.stats.judge import judge
from iolab.store.db import Store
from iolab.testbed.command import find_agent

GOLDEN = Path(__file__).parents[1] / "golden" / "iozone"
DEVIATIONS: Final = {
    "async_H": ("layout", "the original prints a debugging line per read"),
    "async_k": ("layout", "the original prints a debugging line per read"),
    "err_plus_m_missing": ("", "refused by name: one command line runs on one machine"),
    "reclen_gt_file": ("files", "refused before anything is written"),
}
"""Recordings that differ: in what, and why; an empty text: only what the message says."""
OF_ANY_LENGTH: Final = {"t2_Q": "Child_"}
"""Files, by how they begin, with a line per record that was done before the first child ended:
names are those of the original, the number of lines is a matter of chance in both programs."""
TELEMETRY: Final = ("w.tel", "r.tel")
"""Files that a recorded command reads."""


def agent_reason() -> str | None:
    try:
        find_agent()
    except TestbedError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(agent_reason() is not None, reason=str(agent_reason()))


def cases() -> list[str]:
    return sorted(path.stem for path in GOLDEN.glob("*.cmd"))


def recorded_commands(name: str) -> list[list[str]]:
    """Words of each command of a recording; a few have two."""
    found = list[list[str]]()
    for command in (GOLDEN / f"{name}.cmd").read_text().split(";"):
        words = shlex.split(command.partition(">")[0])
        found.append(words[words.index("iozone") + 1 :])
    return found


def iozone(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["iozone", *words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def run(name: str, folder: Path) -> tuple[int, str, str]:
    """Runs a recording; the answer is that of its last command."""
    for file in TELEMETRY:
        own = GOLDEN / f"{name}.{file}"
        if file in recorded_files(name):
            source = own if own.exists() else GOLDEN / f"telemetry_X.{file}"
            shutil.copy(source, folder / "work" / file)
    answer = (0, "", "")
    for index, words in enumerate(recorded_commands(name)):
        ours = ["--compat", "--out", str(folder / f"stored{index}")] if words else []
        answer = iozone(*ours, *words)
    return answer


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
    """Places of nine characters after the sizes that are blank at their right end."""
    return "".join("." if line[at] == " " else "#" for at in range(32, len(line), 9))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return tmp_path


def recorded_files(name: str) -> dict[str, int]:
    """Names and sizes of what a recorded command left behind."""
    listed = GOLDEN / f"{name}.files"
    lines = listed.read_text().splitlines() if listed.exists() else []
    return {file: int(size) for size, file in map(str.split, lines)}


def without_length(files: dict[str, int], begin: str) -> dict[str, int]:
    return {file: 0 if file.startswith(begin) else size for file, size in files.items()}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", cases())
def test_a_recorded_command_does_what_the_original_did(name: str, folder: Path) -> None:
    has_failed = (GOLDEN / f"{name}.exit").exists()
    code, out, err = run(name, folder)
    found = {path.name: path.stat().st_size for path in (folder / "work").iterdir()}
    recorded_sizes = recorded_files(name)
    if (begin := OF_ANY_LENGTH.get(name)) is not None:
        assert any(file.startswith(begin) for file in recorded_sizes)
        found, recorded_sizes = without_length(found, begin), without_length(recorded_sizes, begin)
    differs = set[str]()
    if (code != 0) != has_failed:
        differs.add("exit")
    if found != recorded_sizes:
        differs.add("files")
    if not has_failed and code == 0:
        recorded = (GOLDEN / f"{name}.stdout").read_text()
        # Of two commands the last one.
        recorded = recorded[recorded.rindex("\tRun began") :]
        if masked(after_banner(out)) != masked(after_banner(recorded)):
            differs.add("layout")
    expected, reason = DEVIATIONS.get(name, ("", ""))
    assert differs == set(expected.split()), f"{reason}\n{found}\n{out}\n{err}"
    if has_failed:
        assert code == 1
        assert len(err.strip().splitlines()) >= 1
    else:
        assert "stored as run" in err


def test_the_files_of_single_operations_have_the_recorded_names_and_heads(folder: Path) -> None:
    code, _, err = run("t2_Q", folder)
    assert code == 0, err
    found = {path.name for path in (folder / "work").iterdir()}
    assert found == recorded_files("t2_Q").keys()
    for path in GOLDEN.glob("t2_Q.Child_*"):
        head, *rows = (folder / "work" / path.name[len("t2_Q.") :]).read_text().splitlines()
        assert head == path.read_text().splitlines()[0]
        recorded = [row.split()[0] for row in path.read_text().splitlines()[1:]]
        offsets = [row.split()[0] for row in rows]
        # The first child to end stops the others: one of two lists is a beginning of the other.
        length = min(len(recorded), len(offsets))
        assert offsets[:length] == recorded[:length]


@pytest.mark.parametrize("name", [name for name in cases() if name.startswith("err_")])
def test_what_is_refused_leaves_no_store(name: str, folder: Path) -> None:
    code, _, _ = run(name, folder)
    assert (code == 0) or not (folder / "stored0").exists()


def test_what_is_not_done_is_refused_by_name(folder: Path) -> None:
    code, out, err = iozone("--compat", "-+m", "nofile", "-t", "1", "-i", "0")
    assert (code, out) == (1, "")
    assert "-+m" in err.splitlines()[0]
    assert len(err.splitlines()) >= 4
    assert list((folder / "work").iterdir()) == []


MALFORMED: Final = (
    "-y2 -5",
    "-s 64k --json",
    "-+9 -s 64k",
    "-s",
    "-i 0 -F a b",
    "-t 2 -i 0 -s 64k -F only",
    "-t 2 -F -i 0",
    "-t 2 -F a a",
    "-f x -t 2 -F a b",
    "-a -t 2",
    "-N -t 2 -i 0",
    "-U /mnt -t 1",
    "-t 2000 -i 0",
    "-i 13",
    "-i foo",
    "-s 0.5m -i 0",
    "-s 128x -i 0",
    "-r 32m -s 64m -i 0",
    "-s 16k -r 64k",
    "-a -y 1m -q 64k -i 0",
    "-i 0 -l 8k -s 64k",
    "-B -H 2 -i 0",
    "-G -i 0",
    "-+m nofile -t 1",
    "-i 0 -f /dev/null",
    "-X nofile -i 0",
    "-Y bad.tel -i 1",
    "-t 2 -+R nofile",
    "-t 2 -F nowhere/a nowhere/b",
    "-t 2 -F a nowhere/b",
    "-+E -i 1 -f nofile",
    "-+E -i 0 -f bad.tel",
    "-+b 1m -i 0",
    "-+w 200 -i 0",
    "-d 5 -i 0",
    "-b nowhere/out.xls -i 0",
    "--repeat 0 -i 0",
    "--on nowhere:1g -i 0",
)


@pytest.mark.parametrize("words", MALFORMED)
def test_a_malformed_command_line_ends_with_a_reason_and_writes_nothing(
    words: str, folder: Path
) -> None:
    (folder / "work" / "bad.tel").write_text("0 4096\nabc def\n")
    code, out, err = iozone("--out", str(folder / "stored"), *words.split())
    assert (code, out) == (1, "")
    assert err.startswith("iolab: "), err
    assert [path.name for path in (folder / "work").iterdir()] == ["bad.tel"]
    assert not (folder / "stored").exists()


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
    assert {trial.workload for trial in data.trials} == {"iozone"}
    table = [("64k", "32k"), ("64k", "64k"), ("128k", "32k"), ("128k", "64k"), ("128k", "128k")]
    sizes = {"record_size": ["32k", "64k", "128k"], "file_size": ["64k", "128k"]}
    assert data.study.factors == sizes
    for number in (1, 2, 3):
        trials = sorted((t for t in data.trials if t.round == number), key=lambda t: t.position)
        assert [(t.levels["file_size"], t.levels["record_size"]) for t in trials] == table
        begun = [trial.started_at_unix_ns or 0 for trial in trials]
        assert begun == sorted(begun), "positions are those at which they ran"
    of_rounds = [c.code for c in data.caveats if c.code != "no_block_device"]  # On a tmpfs.
    assert of_rounds == ["few_rounds", "fixed_order"]
    (chart,) = by_record_size.build(data, judge(data))
    assert {panel.title for panel in chart.panels} == {
        f"{test} · {size}" for test in ("write", "rewrite") for size in ("64k", "128k")
    }, "a file as large as the record is a size, too"


def test_the_report_of_a_table_says_its_order_and_how_to_make_it_again(folder: Path) -> None:
    words = ["-a", "-i", "0", "-n", "64k", "-g", "256k", "-f", "t.tmp", "--repeat=2"]
    assert iozone(*words, "--out", str(folder / "stored"))[0] == 0
    out, err = io.StringIO(), io.StringIO()
    words = ["report", str(folder / "stored"), "--full"]
    assert main(words, console=Console(out, err)) == 0, err.getvalue()
    text = " ".join(out.getvalue().split())
    assert "Compared with 4k" in text
    assert "measured in the order of the table, not at random" in text
    page = (folder / "stored" / "report.html").read_text()
    for said in (
        "rounds, each in the order of the table",
        "in the order of the table that `iozone` prints",
        "iolab iozone -a -i 0 -n 64k -g 256k -f t.tmp --repeat=2",
        "As a surface, for nostalgia",
    ):
        assert said in page, said
    assert "random order" not in page.replace("measures them in random order", "")
    assert "iolab run DIR --resume" in page
    assert "study.toml" not in page, "a command line has no study file"


def test_a_table_that_was_stopped_says_what_is_missing_and_what_can_be_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[str]()
    spec_of = run_of_dialect.Line.spec

    def stopped(*arguments: Any) -> dict[str, Any]:
        begun.append("")
        if len(begun) == 3:
            raise StoppedError("stopped on request", "what was measured is stored")
        return spec_of(*arguments)

    monkeypatch.setattr(run_of_dialect.Line, "spec", stopped)
    words = ["-a", "-i", "0", "-n", "64k", "-g", "64k", "-f", "t.tmp", "--repeat", "2"]
    assert iozone(*words, "--out", str(folder / "stored"))[0] == 130
    out, err = io.StringIO(), io.StringIO()
    words = ["report", str(folder / "stored"), "--full"]
    assert main(words, console=Console(out, err)) == 0, err.getvalue()
    text = " ".join(out.getvalue().split())
    assert "8 of 10 planned trials were interrupted or not run yet" in text
    page = (folder / "stored" / "report.html").read_text()
    for shown in (text, page):
        assert "--resume`" in shown
        assert "--direct" not in shown
    assert "2 rounds were planned" in page


def test_rows_whose_tests_have_other_children_are_measured(folder: Path) -> None:
    words = ["-i", "0", "-i", "8", "-t", "1", "-t", "2", "-s", "64k", "-r", "4k"]
    code, out, err = iozone(*words, "--out", str(folder / "stored"))
    assert code == 0, err
    assert out.count("mixed workload") >= 2


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


def test_files_beside_the_report_are_written_in_simulation_too(folder: Path) -> None:
    words = ["-t", "2", "-Q", "-+z", "-+T", "-I", "-i", "0", "-+n", "-x", "-s", "256k", "-r", "8k"]
    began_s = int(time.time())
    assert iozone("--on", SIMULATED, "--out", str(folder / "stored"), *words)[0] == 0
    place = folder / "work"
    for child in range(2):
        rows = (place / f"Child_{child}_wol.dat").read_text().splitlines()[1:]
        assert [int(row.split()[0]) for row in rows] == list(range(0, 256, 8))
        assert {row.split()[2] for row in rows} == {"8192"}
        band = (place / f"Iozone_histogram_child_{child}.txt").read_text()
        counts = re.findall(r":(\d+) ", band.partition("\n")[2])
        assert sum(map(int, counts)) == 32
        start = (place / f"Child_{child}.log").read_text().splitlines()[0]
        when = time.mktime(time.strptime(start.partition(":")[2].strip()))
        assert began_s <= when <= time.time()


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


def exported(folder: Path, program: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    words = ["archive", str(folder / "stored"), "--export", program]
    code = main(words, console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def test_a_stored_command_is_exported_as_it_was_typed(folder: Path) -> None:
    words = ["-t", "2", "-i", "0", "-i", "1", "-I", "-s", "256k", "-r", "64k", "-F", "a", "b c"]
    ours = ["--out", str(folder / "stored"), "--repeat=2"]
    assert iozone(*ours, *words)[0] == 0
    code, script, err = exported(folder, "iozone")
    assert code == 0, err
    assert shlex.split(script.splitlines()[-1]) == ["iozone", *words]
    assert "# no equivalent: --repeat" in script


def test_a_stored_command_is_exported_as_jobs_of_fio(folder: Path) -> None:
    words = ["-i", "0", "-i", "2", "-K", "-i", "1", "-s", "256k", "-r", "64k", "-f", "t.tmp"]
    assert iozone("--out", str(folder / "stored"), *words)[0] == 0
    code, job, err = exported(folder, "fio")
    assert code == 0, err
    assert job.count("filename=t.tmp") == 6
    assert "[random-read]" in job
    assert "# no equivalent: jumps_every" in job


HOSTILE_NAMES: Final = (
    *(
        "x\nexec_prerun=touch pwned",
        "x;touch pwned",
        "x#y",
        "a:b",
        "a'b",
        'a"b',
        "$jobname",
        "`id`",
    ),
    *("a|b", "a&b", "a b", "a\tb", "a\x1b[2J", "a\\b", "a*", "(a)", "~a", "a>b"),
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_that_mean_something_to_fio_or_a_shell_are_not_exported(
    folder: Path, name: str
) -> None:
    words = ["-i", "0", "-s", "64k", "-r", "64k", "-f", name]
    assert iozone("--out", str(folder / "stored"), *words)[0] == 0
    code, job, err = exported(folder, "fio")
    assert (code, job) == (2, ""), job
    assert "cannot be exported" in err
    code, script, err = exported(folder, "iozone")
    if name.isprintable():  # The shell is told which word is a name.
        assert shlex.split(script.splitlines()[-1])[-1] == name
    else:
        assert (code, script) == (2, ""), script


def test_names_of_other_scripts_and_usual_signs_are_exported(folder: Path) -> None:
    words = ["-i", "0", "-s", "64k", "-r", "64k", "-f", "größe_1.2-3,4+5@6=7%"]
    assert iozone("--out", str(folder / "stored"), *words)[0] == 0
    code, job, err = exported(folder, "fio")
    assert code == 0, err
    assert "filename=größe_1.2-3,4+5@6=7%" in job


def test_an_export_that_needs_a_file_says_which_is_missing(folder: Path) -> None:
    (folder / "work" / "w.tel").write_text("0 4096\n8192 4096\n")
    assert iozone("--out", str(folder / "stored"), "-X", "w.tel", "-f", "t.tmp")[0] == 0
    (folder / "work" / "w.tel").unlink()
    code, out, err = exported(folder, "fio")
    assert (code, out) == (1, "")
    assert "-X w.tel: No such file" in err


def test_a_report_of_a_row_with_a_replay_can_be_shown(folder: Path) -> None:
    (folder / "work" / "w.tel").write_text("0 4096 1\n8192 512\n")
    assert iozone("--out", str(folder / "stored"), "-X", "w.tel", "-f", "t.tmp")[0] == 0
    out, err = io.StringIO(), io.StringIO()
    assert main(["report", str(folder / "stored")], console=Console(out, err)) == 0, err.getvalue()
    assert "rewrite" in out.getvalue()


def test_numbers_of_the_page_cache_are_noted(folder: Path) -> None:
    """13 GB/s were printed without a word, and the report then advised more rounds."""
    words = ("-a", "-s", "1m", "-r", "64k", "-i", "0", "-i", "1")
    code, out, err = iozone(*words)
    assert code == 0, err
    said = "these numbers are those of the page cache: most bytes never reached the device; -I (dir"
    place = re.search(r"stored as run \S+ in (\S+):", err)
    assert place is not None
    with Store.open_reader(Path(place[1]) / "study.db") as store:
        knows_devices = bool(store.cache_shares())
    assert (said in err) == knows_devices
    assert "page cache" not in out
