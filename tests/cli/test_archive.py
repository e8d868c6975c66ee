"""`iolab archive` on a real (simulated) study: packed, checked, drawn again, resumed, exported."""

import io
import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import AnalysisError
from iolab.library.services import Services
from iolab.store.db import Store
from iolab.store.lock import WriterLock

COMPARE = [
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline"),
    *("--test", "read,random-read", "--record-size", "4k", "--file-size", "1m"),
    *("--rounds", "2", "--seed", "7"),
]


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """One finished study, made once."""
    folder = tmp_path_factory.mktemp("study")
    out, err = io.StringIO(), io.StringIO()
    code = main([*COMPARE, "--out", str(folder / "o")], console=Console(out, err))
    assert code == 0, err.getvalue()
    return folder / "o"


@pytest.fixture
def iolab(monkeypatch, tmp_path, studied):
    """Run one command in a directory that holds the study as `o`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IOLAB_DEBUG", raising=False)
    shutil.copytree(studied, "o")

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        assert "bug in iolab" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def test_a_study_becomes_one_file_and_is_whole(iolab):
    code, out, err = iolab("archive", "o")
    assert (code, err) == (0, "")
    assert out.startswith("o.iolab: study 'scheduler'")
    code, checked, _ = iolab("archive", "--check", "o.iolab")
    assert code == 0
    assert "o.iolab is whole: study 'scheduler', measured on no machine: simulated" in checked
    assert out.splitlines()[-1] in checked.splitlines()[-1] or "content SHA-256" in checked


def test_the_same_study_gives_the_same_bytes(iolab):
    assert iolab("archive", "o", "--out", "a.iolab")[0] == 0
    shutil.copytree("o", "p")
    Path("p/report.html").unlink()  # Older, newer or no reports: they are drawn afresh.
    assert iolab("archive", "p", "--out", "b.iolab")[0] == 0
    assert Path("a.iolab").read_bytes() == Path("b.iolab").read_bytes()


def test_what_is_still_in_the_write_ahead_log_is_packed_too(iolab):
    before = iolab("archive", "o", "--out", "a.iolab")[1]
    reader = sqlite3.connect("o/study.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM trial").fetchone()  # Keeps the log from being emptied.
    code, _, err = iolab(*COMPARE, "--rounds", "3", "--out", "o", "--resume")
    assert code == 0, err
    assert Path("o/study.db-wal").stat().st_size > 0
    after = iolab("archive", "o", "--out", "b.iolab")[1]
    reader.close()
    assert before.splitlines()[-1] != after.splitlines()[-1]
    assert iolab("archive", "--extract", "b.iolab", "--out", "x")[0] == 0
    with Store.open_reader(Path("x/study.db")) as store:
        assert len(store.finished_trials()) == 6


def test_a_report_from_the_archive_is_that_from_the_directory(iolab):
    _, expected, _ = iolab("report", "o", "--out", "there", "--full")
    iolab("archive", "o")
    code, out, err = iolab("report", "o.iolab", "--out", "here", "--full")
    assert code == 0
    assert "measured on no machine: simulated; archived by iolab" in err
    assert out.split("\nreport: ")[0] == expected.split("\nreport: ")[0]
    assert out.rstrip().endswith("data:     o.iolab")
    for name in ("report.html", "report.xlsx", "verdict.json"):
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes(), name
    short = iolab("report", "o.iolab", "--out", "here")[1]
    assert len(short.splitlines()) <= 25
    command = "All of it: iolab report o.iolab --out here --full"
    assert (command in short) == ("Not shown here: " in short), short
    assert "Measured on no machine: simulated." in Path("here/report.html").read_text()


def test_the_directory_comes_back_and_goes_on(iolab):
    iolab("archive", "o")
    shutil.rmtree("o")
    assert iolab("archive", "--extract", "o.iolab", "--out", "x")[0] == 0
    assert iolab("archive", "x", "--out", "again.iolab")[0] == 0
    assert Path("again.iolab").read_bytes() == Path("o.iolab").read_bytes()
    assert iolab("report", "x")[0] == 0
    code, _, err = iolab("run", "x/study.toml", "--rounds", "3", "--out", "x", "--resume")
    assert code == 0, err
    assert "6 trials finished, 3 complete rounds" in err


def test_damage_has_an_exit_code_and_a_name(iolab):
    iolab("archive", "o")
    body = bytearray(Path("o.iolab").read_bytes())
    body[body.index(b"study.db") + 4000] ^= 1
    Path("o.iolab").write_bytes(body)
    code, out, _ = iolab("archive", "--check", "o.iolab")
    assert code == 5
    assert "study.db cannot be unpacked" in out
    for arguments in (
        ["report", "o.iolab", "--out", "r"],
        ["archive", "--extract", "o.iolab", "--out", "x"],
        ["archive", "--export", "iozone", "o.iolab"],
    ):
        code, _, err = iolab(*arguments)
        assert code == 5
        assert "o.iolab is damaged: " in err
    assert sorted(path.name for path in Path().iterdir()) == ["o", "o.iolab"]


def test_a_running_study_is_not_packed(iolab):
    lock = WriterLock(Path("o/study.db")).acquire()
    try:
        code, _, err = iolab("archive", "o")
    finally:
        lock.release()
    assert code == 1
    assert "is being written by another iolab" in err
    assert not Path("o.iolab").exists()


def test_a_damaged_store_is_not_packed(iolab):
    body = bytearray(Path("o/study.db").read_bytes())
    page = int.from_bytes(body[16:18], "big")
    for number in range(3, len(body) // page - 1, 3):
        body[number * page : number * page + 64] = bytes(64)
    Path("o/study.db").write_bytes(body)
    code, _, err = iolab("archive", "o")
    assert code == 5
    assert "damaged" in err
    assert not Path("o.iolab").exists()


def test_packing_changes_nothing_in_the_directory(iolab):
    before = {path: path.read_bytes() for path in Path("o").iterdir() if path.suffix != ".lock"}
    iolab("archive", "o")
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in Path("o").iterdir()} == {p.name for p in before} | {
        "study.db.lock"
    }


def test_nothing_is_overwritten(iolab):
    iolab("archive", "o")
    body = Path("o.iolab").read_bytes()
    code, _, err = iolab("archive", "o")
    assert code == 2
    assert "o.iolab exists already: name another, or allow it with --overwrite o.iolab" in err
    assert Path("o.iolab").read_bytes() == body
    assert iolab("archive", "o", "--overwrite", "o.iolab")[0] == 0
    code, _, err = iolab("archive", "--extract", "o.iolab", "--out", "o")
    assert code == 1
    assert "o holds something already" in err
    code, _, err = iolab("report", "o.iolab", "--out", "o")
    assert code == 2
    assert "o holds a study: the report of another does not belong there" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "none"], "none does not exist"),
        (["archive", "o/study.toml.none"], "o/study.toml.none does not exist"),
        (["archive", "--check", "o/report.html"], "is not an archive of iolab"),
        (["archive", "--check", "o"], "is not a file"),
        (["archive", "o/report.html"], "is neither a study nor an archive"),
        (["archive", "--extract", "o.iolab"], "--extract needs a directory"),
        (
            ["archive", "--check", "--extract", "o.iolab"],
            "--extract and --check exclude each other",
        ),
        (
            ["archive", "--export", "bonnie", "o"],
            "--export: 'bonnie' is none of its values: values are fio, iozone",
        ),
        (["archive", "--export", "fio", "o"], "name a directory for them with --out"),
        (["report", "o/verdict.json", "--out", "r"], "is neither a study nor an archive"),
        (["report", "o.iolab"], "o.iolab is an archive, in which no report can be put"),
    ],
)
def test_mistakes_are_named(iolab, arguments, message):
    iolab("archive", "o")
    code, out, err = iolab(*arguments)
    assert (code, out) == (1, "")
    assert message in err


def test_trials_are_exported_from_the_directory_and_from_the_archive(iolab):
    iolab("archive", "o")
    for source, folder in (("o", "a"), ("o.iolab", "b")):
        assert iolab("archive", "--export", "fio", source, "--out", folder)[0] == 0
        code, out, _ = iolab("archive", "--export", "iozone", source)
        assert code == 0
        Path(folder, "iozone.sh").write_text(out)
    files = sorted(path.name for path in Path("a").iterdir())
    assert files == ["iozone.sh", "trial-t0001.fio", "trial-t0002.fio"]
    iolab("archive", "--extract", "o.iolab", "--out", "x")
    for name in files:
        texts = [Path(place, name).read_text() for place in ("a", "b", "x/commands")]
        # Each says where it lies; an archive does not know where it will be unpacked.
        texts[0] = texts[0].replace(str(Path("a", name).absolute()), "FULL-PATH-OF-THIS-FILE")
        texts[1] = texts[1].replace(str(Path("b", name).absolute()), "FULL-PATH-OF-THIS-FILE")
        assert len(set(texts)) == 1, name
    code, _, err = iolab("archive", "--export", "fio", "o", "--out", "a")
    assert code == 2
    assert "a/trial-t0001.fio exists already" in err


@pytest.mark.needs_fio
def test_the_advice_of_an_exported_job_works_in_another_directory(iolab, tmp_path):
    assert iolab("archive", "--export", "fio", "o", "--out", "jobs of mine")[0] == 0
    job = Path("jobs of mine", "trial-t0001.fio").read_text()
    (advice,) = [line for line in job.splitlines() if "cd DIRECTORY" in line]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = advice.lstrip("# ").replace("DIRECTORY", str(scratch), 1)
    done = subprocess.run(
        ["sh", "-c", f"{command} --parse-only"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trial-t0001.fio" in command


def test_the_report_shows_the_same_by_hand(iolab):
    page = Path("o/report.html").read_text()
    assert "<h2>The same by hand</h2>" in page
    assert "rw=randread" in page
    assert "iozone -i 0 -i 1 -i 2 -r 4k -s 1024k" in page


def test_facts_and_manifest_say_where_it_comes_from(iolab):
    iolab("archive", "o")
    iolab("archive", "--extract", "o.iolab", "--out", "x")
    facts = json.loads(Path("x/facts.json").read_text())
    assert facts["machine"] == "no machine: simulated"
    assert facts["sessions"][0]["testbed"]
    assert "The study 'scheduler'" in Path("x/README.txt").read_text()
    assert Path("x/study.toml").read_text().startswith('name = "scheduler"')


def test_a_study_without_any_record_is_packed(iolab, digests_anew):
    with sqlite3.connect("o/study.db") as connection:
        for table in ("measurement", "series", "phase", "record_facts", "record"):
            connection.execute(f"DROP TRIGGER IF EXISTS {table}_no_delete")
            connection.execute(f"DELETE FROM {table}")
        digests_anew(connection)
    connection.close()
    Path("o/study.db.lock").unlink()  # It says how much was stored.
    assert iolab("archive", "o")[0] == 0
    assert iolab("archive", "--check", "o.iolab")[0] == 0
    iolab("archive", "--extract", "o.iolab", "--out", "x")
    assert Path("x/commands/trial-t0001.fio").is_file()


def test_a_study_that_cannot_be_judged_is_packed_without_report(iolab):
    def judge(data):
        raise AnalysisError("no verdict")

    out, err = io.StringIO(), io.StringIO()
    services = Services(judge=judge)
    assert main(["archive", "o"], services=services, console=Console(out, err)) == 0
    assert "the archive has no report, only data: no verdict" in err.getvalue()
    assert iolab("archive", "--check", "o.iolab")[0] == 0
    iolab("archive", "--extract", "o.iolab", "--out", "x")
    assert not Path("x/report.html").exists()
    assert Path("x/study.db").is_file()


def test_a_study_planned_in_another_way_is_packed_without_commands(iolab, digests_anew):
    with sqlite3.connect("o/study.db") as connection:
        connection.execute("DROP TRIGGER study_no_update")
        connection.execute("UPDATE study SET plan_digest = 'other'")
        digests_anew(connection)
    connection.close()
    code, _, err = iolab("archive", "o")
    assert code == 0
    assert "no commands of other programs" in err
    code, _, err = iolab("archive", "--export", "fio", "o", "--out", "a")
    assert code == 1
    assert "planned it in another way" in err
    assert iolab("report", "o", "--out", "r")[0] == 0
