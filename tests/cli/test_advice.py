"""Advice about a study that lies in the way can be followed; what was allowed in vain is told.

Issue 14, points 8 and 2, found by newcomers: `--resume` was advised for what has none (imported
tables, other programs' command lines), for studies that had ended, and without a word about why
trials had failed. `--overwrite FILE` for a file that the command never writes was ignored.
"""

import io
import sqlite3
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.continuing import way_on
from iolab.store.db import Store

TABLE = "level,value\na,1\na,2\nb,3\nb,4\n"
COMPARE = "compare --on sim:fixed-100us --scheduler noop,deadline --file-size 1m --seed 7"
IMPORT = "import t.csv --map value=value --unit MB/s"
IOZONE = "iozone --on sim:fixed-100us -I -i 0 -s 64k"


@pytest.fixture
def iolab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("t.csv").write_text(TABLE)

    def run(line):
        out, err = io.StringIO(), io.StringIO()
        code = main(line.split(), console=Console(out, err))
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.mark.parametrize(
    ("line", "again", "advised"),
    [
        (IMPORT, IMPORT, "`iolab report o` shows it; choose another --out"),
        (
            IOZONE.replace("iozone", "iozone --out o"),
            COMPARE,
            "as with `iolab run o --resume --rounds 2`",
        ),
        (f"{COMPARE} --rounds 1", IMPORT, "it is finished: `iolab report o` shows it"),
        (f"{COMPARE} --budget 0.01s --rounds 3", COMPARE, "and a larger --budget if that is spent"),
    ],
)
def test_advice_about_a_study_in_the_way_fits_its_kind(iolab, line, again, advised):
    begun = line if "--out" in line else f"{line} --out o"
    code, _, err = iolab(begun)
    assert Path("o/study.db").exists(), err
    code, _, err = iolab(f"{again} --out o")
    assert code == 1
    assert "already holds the study" in err
    assert advised in err
    assert ("--resume" in err) == ("import" not in line)
    before = Path("o/study.db").read_bytes()
    assert iolab("report o")[0] == 0 or "budget" in line
    assert Path("o/study.db").read_bytes() == before


def test_failed_trials_are_to_be_corrected_first(iolab):
    assert iolab(f"{COMPARE} --rounds 2 --out o")[0] == 0
    with Store.open_reader(Path("o/study.db")) as store:
        study, statuses = store.study, store.finished_trials()
    assert len(statuses) == 4
    failed = {**statuses, "t0002": "failed"}
    assert way_on(study, Path("o"), failed, 4).startswith("correct why 1 trial failed, then")
    assert way_on(study, Path("o"), {"t0001": "ok"}, 4).startswith(
        "continue it with `iolab run o --resume`"
    )


def test_an_extracted_archive_is_continued_only_if_it_can_be(iolab):
    for line, is_more in ((IMPORT, False), (f"{COMPARE} --rounds 1", True)):
        assert iolab(f"{line} --out s{is_more}")[0] == 0
        assert iolab(f"archive s{is_more} --out s{is_more}.iolab")[0] == 0
        code, out, _ = iolab(f"archive --extract s{is_more}.iolab --out x{is_more}")
        assert code == 0
        assert ("--resume" in out) == is_more


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (f"{COMPARE} --rounds 2 --out new", "new/report.html"),
        (f"{IMPORT} --out new", "new/report.html"),
        ("report o --out new", "new/verdict.json"),
        ("report o", "o/report.xlsx"),
        ("archive o --out new.iolab", "new.iolab"),
        ("archive o --export iozone --out new", "new/iozone.sh"),
        ("aa --on sim:fixed-100us --rounds 6 --out new", "new/aa.json"),
        ("iozone -i 0 -s 64k -b new -f f", "new"),
    ],
)
def test_a_permission_for_a_file_that_is_not_written_is_told(iolab, line, written):
    assert iolab(f"{COMPARE} --rounds 1 --out o")[0] == 0
    Path("mine").write_text("mine")
    before = sorted(Path().rglob("*"))
    for name in ("mine", "o/mine.html"):
        command, _, rest = line.partition(" ")
        code, out, err = iolab(f"{command} --overwrite {name} {rest}")
        assert (code, out) == (1, ""), err
        assert f"{name}: this command does not write that file" in err
        assert written in err
        assert sorted(Path().rglob("*")) == before
    code, _, err = iolab(f"{command} --overwrite {written} {rest}")
    assert code == 0, err
    assert Path("mine").read_text() == "mine"


def test_what_prints_writes_nothing_that_could_be_allowed(iolab):
    assert iolab(f"{IMPORT} --out o")[0] == 0
    code, _, err = iolab("report o --json --overwrite o/report.html")
    assert (code, "leave out --overwrite" in err) == (1, True)


def test_no_message_confuses_a_copy_with_what_iolab_restore_does(iolab):
    assert iolab(f"{IMPORT} --out o")[0] == 0
    with sqlite3.connect("o/study.db") as connection:
        connection.execute("DROP TRIGGER study_no_update")
        connection.execute("UPDATE study SET margin = 0.5")
    connection.close()
    code, _, err = iolab("report o")
    assert code == 5
    assert "restore" not in err
    assert "put back a copy of the file that was made before that" in err
