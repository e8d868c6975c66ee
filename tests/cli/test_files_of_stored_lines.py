"""Issue 14, point 2: a stored command line writes only what its user allows today (safety R6).

`iolab run DIR` and `iolab run FILE.iolab` obeyed the `--overwrite` among the stored words, their
own of last week or a stranger's: they replaced a file of the user's own with exit code 0, anywhere
on the machine, and `--dry-run` did not name it.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import StudyError
from iolab.run.prepare import Prepared
from iolab.store import created_files
from iolab.store.db import Store

LINE = "fio --on sim:fixed-100us --name=x --direct=1 --rw=write --size=64k --filename=data"
Iolab = Callable[..., tuple[int, str, str]]


@pytest.fixture
def iolab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iolab:
    """Run a command in an empty directory, with a list of marks of the test's own."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(created_files, "state_directory", lambda: tmp_path / "state")

    def run(line: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        code = main(line.split(), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def stored(iolab: Iolab, output: Path | str) -> Path:
    """Results of a line that replaced a file of the user's own, as it was allowed then."""
    Path(output).write_text("old\n")
    code, _, err = iolab(f"{LINE} --output={output} --overwrite {output}")
    assert code == 0, err
    return Path("iolab-out/fio-1")


def gift(iolab: Iolab, output: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An archive of such a line, to be run where nobody knows it."""
    code, _, err = iolab(f"archive {stored(iolab, output)} --out gift.iolab")
    assert code == 0, err
    output.unlink()
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return "../gift.iolab"


def test_a_stored_line_replaces_nothing_that_was_not_named_today(iolab: Iolab) -> None:
    directory = stored(iolab, "res.txt")
    with Store.open_reader(directory / "study.db") as store:
        assert "--overwrite" not in store.study.command
    Path("res.txt").write_text("my thesis\n")
    for line in (f"run {directory}", f"run {directory} --dry-run"):
        code, _, err = iolab(line)
        assert (code, Path("res.txt").read_text()) == (2, "my thesis\n"), line
        assert "--overwrite res.txt" in err
    code, _, err = iolab(f"run {directory} --overwrite res.txt")
    assert code == 0, err
    assert "x: (groupid=0" in Path("res.txt").read_text()


def test_what_an_older_version_stored_allows_nothing_either(
    iolab: Iolab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iolab.study.dialects._OF_ONE_RUN", ("--out",))
    directory = stored(iolab, "res.txt")
    with Store.open_reader(directory / "study.db") as store:
        assert "--overwrite" in store.study.command, "as it was stored"
    Path("res.txt").write_text("my thesis\n")
    assert iolab(f"run {directory}")[0] == 2
    assert Path("res.txt").read_text() == "my thesis\n"


@pytest.mark.parametrize("is_there", [True, False])
def test_an_archive_writes_nowhere_else_unless_the_file_is_named(
    iolab: Iolab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    thesis = tmp_path / "thesis"
    archive = gift(iolab, thesis, monkeypatch)
    if is_there:
        thesis.write_text("my thesis\n")
    code, _, err = iolab(f"run {archive}")
    assert code == 2
    assert str(thesis) in err
    assert thesis.exists() == is_there
    code, _, err = iolab(f"run {archive} --overwrite {thesis}")
    assert code == 0, err
    assert "x: (groupid=0" in thesis.read_text()


def test_an_archive_writes_nowhere_else_even_over_what_iolab_made(
    iolab: Iolab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = gift(iolab, tmp_path / "mine", monkeypatch)
    assert iolab(f"{LINE} --output={tmp_path / 'mine'}")[0] == 0
    before = (tmp_path / "mine").read_bytes()
    code, _, err = iolab(f"run {archive}")
    assert (code, (tmp_path / "mine").read_bytes()) == (2, before), err
    assert f"--overwrite {tmp_path / 'mine'}" in err


@pytest.mark.parametrize("name", [".profile", "res.txt"])
def test_an_archive_makes_no_file_that_was_not_named(
    iolab: Iolab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Symptom: run in a home, a stranger's archive made new files there, such as `.profile`.

    Fix: the maker of an archive chooses no file, wherever it lies; today's user names it.
    """
    archive = gift(iolab, Path(name), monkeypatch)
    for more in ("", " --dry-run"):
        code, _, err = iolab(f"run {archive}{more}")
        assert code == 2, err
        assert f"the command line in {archive} writes {Path(name).absolute()}" in err
        assert f"--overwrite {Path(name).absolute()}" in err
        assert list(Path().iterdir()) == []
    code, _, err = iolab(f"run {archive} --overwrite {name}")
    assert code == 0, err
    assert "x: (groupid=0" in Path(name).read_text()


def test_an_archive_makes_no_test_file_that_was_not_named(iolab: Iolab) -> None:
    code, _, err = iolab("iozone -s 64k -i 0 -w -f made.tmp")
    assert code == 0, err
    made = Path("made.tmp").absolute()
    directory = next(Path("iolab-out").iterdir())
    assert iolab(f"archive {directory} --out gift.iolab")[0] == 0
    made.unlink()
    for more in ("", " --dry-run"):
        code, _, err = iolab(f"run gift.iolab{more}")
        assert code == 2, err
        assert f"--overwrite {made}" in err
        assert not made.exists()
    code, _, err = iolab(f"run gift.iolab --overwrite {made}")
    assert code == 0, err
    assert made.exists()


def test_one_s_own_file_elsewhere_is_written_again(iolab: Iolab, tmp_path: Path) -> None:
    directory = stored(iolab, tmp_path / "mine")
    code, _, err = iolab(f"run {directory}")
    assert code == 0, err
    (tmp_path / "mine").unlink()
    code, _, err = iolab(f"run {directory}")
    assert code == 2, "nothing tells any more that it was the user's choice"
    assert f"--overwrite {tmp_path / 'mine'}" in err


def test_the_printed_way_on_names_them_again(
    iolab: Iolab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[str]()

    def look(prepared: Prepared, *_: object) -> None:
        shown.append(prepared.way_on)
        raise StudyError("looked at", "")

    monkeypatch.setattr("iolab.library.dialect.run._run", look)
    Path("mine").write_text("old\n")
    iolab(f"{LINE} --output=mine --overwrite mine")
    iolab(f"{LINE} --output={tmp_path / 'new'}")
    assert shown == [
        "`iolab run iolab-out/fio-1 --resume --overwrite mine`",
        f"`iolab run iolab-out/fio-1 --resume --overwrite {tmp_path / 'new'}`",
    ]


@pytest.mark.parametrize("place", ["there.tmp", "elsewhere/there.tmp"])
def test_a_study_that_somebody_else_began_chooses_no_file(iolab: Iolab, place: str) -> None:
    """Symptom: continued by root, a planted study made a file of its own choice and content.

    Fix: a results directory that this user did not begin where it lies is treated as an archive.
    """
    Path("elsewhere").mkdir()
    made = Path(place).absolute()
    code, _, err = iolab(f"iozone -s 64k -i 0 -w -f {made} --repeat 2 --out own")
    assert code == 0, err
    shutil.copytree("own", "planted")
    made.unlink()
    for words in ("--resume --rounds 3", "--resume --rounds 3 --dry-run", "", "--dry-run"):
        code, _, err = iolab(f"run planted {words}")
        assert code == 2, (words, err)
        assert f"the command line in planted writes {made}" in err
        assert f"--overwrite {made}" in err
        assert not made.exists()
    code, out, err = iolab("run own --resume --rounds 3 --dry-run")
    assert code == 0, err
    assert f"Trials make or write {made}." in out
    code, _, err = iolab("run own --resume --rounds 3")
    assert code == 0, err
    assert made.exists()
    made.unlink()
    code, _, err = iolab(f"run planted --resume --rounds 3 --overwrite {made}")
    assert code == 0, err


def test_a_rehearsal_names_the_files_that_are_written(iolab: Iolab) -> None:
    directory = stored(iolab, "res.txt")
    code, out, err = iolab(f"run {directory} --dry-run")
    assert code == 0, err
    assert str(Path("res.txt").absolute()) in out
    code, out, err = iolab(f"run {directory} --dry-run --overwrite res.txt")
    assert code == 0, err
