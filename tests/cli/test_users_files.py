"""Issue 14, point 2: the user's own files, whatever is typed (safety R6).

`iolab iozone -f notes.txt` removed notes.txt, `-F` removed all it named, mkfile cut off, `-b`
replaced a spreadsheet, `-Q` appended to files of the same name, `report --out DIR` and `import
--out DIR` replaced report.html and verdict.json that somebody else had written: nobody asked whose
they were. Now everything that is there is refused with exit code 2, unless iolab made it and it is
unchanged since, or `--overwrite FILE` names it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import RefusedError, TestbedError
from iolab.store import created_files, users_files
from iolab.store.folder import Folder
from iolab.testbed.command import find_agent

TABLE = "scheduler,mbps\n" + "".join(
    f"{name},{value}\n"
    for name, values in {"none": (100, 101, 102), "bfq": (200, 201, 202)}.items()
    for value in values
)
Iolab = Callable[..., tuple[int, str, str]]


def agent_reason() -> str | None:
    try:
        find_agent()
    except TestbedError as error:
        return str(error)
    return None


needs_agent = pytest.mark.skipif(agent_reason() is not None, reason=str(agent_reason()))


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


def state(*names: str) -> dict[str, tuple[str, int, int]]:
    """Content and times of files, as far as they are there."""
    return {
        name: (
            hashlib.sha256(Path(name).read_bytes()).hexdigest(),
            Path(name).stat().st_ino,
            Path(name).stat().st_mtime_ns,
        )
        for name in names
        if Path(name).exists()
    }


def write_mine(*names: str, size: int = 300_000) -> dict[str, tuple[str, int, int]]:
    for name in names:
        Path(name).write_bytes(bytes(range(256)) * (size // 256))
    return state(*names)


@needs_agent
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("iozone -i 0 -s 64k -f mine", "mine"),
        ("iozone -i 0 -i 1 -s 64k -w -f mine", "mine"),
        ("iozone -i 0 -+N -s 64k -f mine", "mine"),
        ("iozone -i 2 -s 64k -f mine", "mine"),
        ("iozone -i 4 -s 64k -f mine", "mine"),
        ("iozone -i 6 -s 64k -f mine", "mine"),
        ("iozone -a -g 128k -f mine", "mine"),
        ("iozone -i 0 -s 64k", "iozone.tmp"),
        ("iozone -t 3 -i 0 -s 64k -F a mine c", "mine"),
        ("iozone --compat -t 3 -i 0 -s 64k -F a mine c", "mine"),
        ("iozone -t 2 -i 0 -s 64k", "iozone.DUMMY.1"),
        ("iozone -T -t 2 -i 0 -s 64k -+V -F mine x", "mine"),
        ("mkfile 64k mine", "mine"),
        ("mkfile -n 64k new mine", "mine"),
        ("iozone -i 0 -s 64k -b mine", "mine"),
        ("iozone -i 0 -s 64k -b mine.xlsx", "mine.xlsx"),
        ("iozone -i 0 -s 64k -Q", "rwol.dat"),
        ("iozone -t 1 -i 0 -s 64k -+T", "Child_0.log"),
        *(
            (f"fio --name=x --rw={rw} --size=64k --filename=mine{more}", "mine")
            for rw in ("write", "randrw", "trim", "randtrim", "trimwrite")
            for more in ("", " --unlink=1", " --name=y --rw=read --size=64k --filename=mine")
        ),
    ],
)
def test_a_file_of_the_users_own_is_refused_and_nothing_is_measured(
    iolab: Iolab, line: str, name: str
) -> None:
    if name == "Child_0.log":
        iolab(line)
        name = next(path.name for path in Path().glob("*.log"))
        shutil.copy(name, "copy")
        Path("copy").replace(name)
        shutil.rmtree("iolab-out")
        before = state(name)
    else:
        before = write_mine(name)
    code, out, err = iolab(line)
    assert (code, out) == (2, ""), err
    assert f"--overwrite {Path(name).absolute()}" in err or f"--overwrite {name}" in err
    assert state(name) == before
    assert [path.name for path in Path().iterdir()] == [name], "others were made, or results"


@needs_agent
@pytest.mark.parametrize(
    "line",
    [
        "iozone -i 1 -s 64k -f mine",
        "iozone -i 1 -i 3 -i 5 -s 128k -r 4k -f mine",
        "iozone -i 1 -+E -s 64k -f mine",
        "iozone -t 2 -i 1 -s 64k -F mine other",
        "iozone -i 1 -s 100m -f mine",
        "iozone --repeat 2 -i 1 -s 64k -f mine",
    ],
)
def test_what_is_only_read_stays(iolab: Iolab, line: str) -> None:
    before = write_mine("mine", "other")
    code, _, err = iolab(line)
    assert code == (1 if "100m" in line else 0), err
    assert state("mine", "other") == before
    assert "mine was not made by iolab: it is only read, and it stays" in err


@needs_agent
def test_the_users_word_is_enough_for_that_file_only(iolab: Iolab) -> None:
    write_mine("mine", "other")
    assert iolab("iozone --overwrite mine -i 0 -s 64k -w -f mine")[0] == 0
    assert Path("mine").stat().st_size == 64 << 10
    code, _, _ = iolab("iozone -t 2 -i 0 -s 64k --overwrite ./mine -F mine other")
    assert code == 2
    assert Path("other").stat().st_size > 64 << 10
    code, _, err = iolab("mkfile 64k --overwrite mine --overwrite=other mine other")
    assert code == 0, err
    assert Path("other").read_bytes() == bytes(64 << 10)


@needs_agent
@pytest.mark.timeout(120)
def test_what_iolab_made_is_used_again_without_a_word(iolab: Iolab) -> None:
    for line in (
        "iozone -i 0 -w -s 64k -f F",
        "iozone -i 1 -w -s 64k -f F",
        "iozone -i 0 -w -s 64k -f F",
        "iozone -i 2 -w -s 64k -f F",
        "iozone -a -w -n 64k -g 128k -i 0 -i 1 -f F",
        "iozone -i 1 -s 64k -f F",
        "mkfile 64k F",
        "mkfile 128k F",
        "iozone -t 2 -i 0 -w -s 64k -F F G",
        "iozone -t 2 -i 1 -s 64k -F F G",
        "iozone -i 0 -s 64k -b out.xls",
        "iozone -i 0 -s 64k -b out.xls -Q",
        "iozone -i 0 -s 64k -Q",
    ):
        code, _, err = iolab(line)
        assert code == 0, (line, err)
        assert "not made by iolab" not in err
    assert not Path("F").exists(), "the original removes what it has read"


@needs_agent
@pytest.mark.parametrize("how", ["copied", "edited", "touched", "renamed over"])
def test_copied_or_changed_since_it_is_foreign_again(iolab: Iolab, how: str) -> None:
    assert iolab("iozone -i 0 -w -s 64k -f F")[0] == 0
    if how == "copied":
        shutil.copy2("F", "copy")
        Path("F").unlink()
        Path("copy").rename("F")
    elif how == "edited":
        with Path("F").open("r+b") as file:
            file.write(b"mine")
    elif how == "touched":
        Path("F").touch()
    else:
        Path("new").write_bytes(Path("F").read_bytes())
        Path("new").replace("F")
    before = state("F")
    assert iolab("iozone -i 0 -w -s 64k -f F")[0] == 2
    assert state("F") == before


@needs_agent
def test_links_directories_and_special_files_are_refused_even_if_named(iolab: Iolab) -> None:
    before = write_mine("target")
    Path("link").symlink_to("target")
    Path("folder").mkdir()
    os.mkfifo("fifo")
    for name, what in (
        ("link", "a symbolic link"),
        ("folder", "a directory"),
        ("fifo", "not a regular file"),
    ):
        for line in ("iozone -i 0 -s 64k -f", "iozone -i 1 -s 64k -f", "mkfile 64k"):
            program, _, rest = line.partition(" ")
            code, _, err = iolab(f"{program} --overwrite {name} {rest} {name}")
            assert code == 2, (line, err)
            assert f"is {what}" in err
    assert iolab("iozone -i 0 -s 64k -f /dev/null")[0] != 0
    assert state("target") == before


def test_a_report_that_somebody_changed_is_kept_and_the_answer_is_printed(iolab: Iolab) -> None:
    Path("t.csv").write_text(TABLE)
    assert iolab("import t.csv --map value=mbps --unit MB/s --out study")[0] == 0
    assert iolab("report study")[0] == 0
    page = Path("study/report.html")
    page.write_text(page.read_text() + "<!-- my notes -->")
    before = state("study/report.html", "study/report.xlsx", "study/verdict.json")
    code, out, err = iolab("report study --units si")
    assert code == 2
    assert "bfq" in out
    assert "--overwrite study/report.html" in err
    assert state("study/report.html", "study/report.xlsx", "study/verdict.json") == before
    assert iolab("report study --overwrite study/report.html")[0] == 0
    assert "my notes" not in page.read_text()


def test_results_may_be_copied_given_away_and_drawn_again(iolab: Iolab) -> None:
    Path("t.csv").write_text(TABLE)
    assert iolab("import t.csv --map value=mbps --unit MB/s --out study")[0] == 0
    shutil.copytree("study", "copy")
    assert iolab("report copy --units si")[0] == 0
    assert iolab("archive study --out a.iolab")[0] == 0
    assert iolab("archive --extract a.iolab --out x")[0] == 0
    assert iolab("report x --units si")[0] == 0
    for _ in range(2):
        code, _, err = iolab("report a.iolab --out r")
        assert code == 0, err


@pytest.mark.parametrize(
    "line", ["import t.csv --map value=mbps --unit MB/s --out full", "report study --out full"]
)
@pytest.mark.parametrize("name", ["report.html", "verdict.json", "thesis.tex"])
def test_out_must_be_new_empty_or_the_studys_own(iolab: Iolab, line: str, name: str) -> None:
    Path("t.csv").write_text(TABLE)
    assert iolab("import t.csv --map value=mbps --unit MB/s --out study")[0] == 0
    Path("full").mkdir()
    before = write_mine(f"full/{name}")
    code, _, err = iolab(line)
    assert code == 2
    assert f"full holds {name} already" in err
    assert state(f"full/{name}") == before
    assert [path.name for path in Path("full").iterdir()] == [name]
    Path("full", name).unlink()
    assert iolab(line)[0] == 0


@needs_agent
def test_results_of_a_run_go_into_no_directory_of_somebody_elses(iolab: Iolab) -> None:
    write_mine("mine")
    code, _, err = iolab("iozone -i 0 -s 64k -f F --out .")
    assert code == 2
    assert ". holds mine already" in err
    code, _, _ = iolab("compare --on dir:. --file-size 1m --rounds 1 --out .")
    assert code == 2
    assert [path.name for path in Path().iterdir()] == ["mine"]


def test_a_damaged_list_makes_files_foreign_and_nothing_worse(iolab: Iolab) -> None:
    Path("a").write_text("a")
    created_files.remember({Path("a"): created_files.Mark.of(Path("a").stat())})
    assert created_files.is_made(Path("a").stat())
    place = created_files.state_directory()
    assert place is not None
    content = (place / created_files.LIST_NAME).read_bytes()
    (place / created_files.LIST_NAME).write_bytes(b"\xff[1,2\n{}\nnull\n[1,2,3,4,5,6]\n" + content)
    assert created_files.is_made(Path("a").stat())
    (place / created_files.LIST_NAME).write_bytes(b"\0" * 100)
    assert not created_files.is_made(Path("a").stat())
    (place / created_files.LIST_NAME).unlink()
    (place / created_files.LIST_NAME).symlink_to(Path("a").absolute())
    created_files.remember({Path("a"): created_files.Mark.of(Path("a").stat())})
    assert Path("a").read_text() == "a"
    assert created_files.is_made(Path("a").stat())


def test_the_list_forgets_what_is_gone(iolab: Iolab) -> None:
    for name in "abc":
        Path(name).write_text(name)
    created_files.remember({Path(name): created_files.Mark.of(Path(name).stat()) for name in "ab"})
    Path("a").unlink()
    created_files.remember({Path("c"): created_files.Mark.of(Path("c").stat())})
    place = created_files.state_directory()
    assert place is not None
    lines = (place / created_files.LIST_NAME).read_text().splitlines()
    assert [line.rpartition("/")[2] for line in lines] == ['b"]', 'c"]']
    assert [path.name for path in place.iterdir()] == [created_files.LIST_NAME]


# Between the look and the write, modes, and what a killed run leaves.

KILLED = """
import sys
from pathlib import Path
from iolab.store import created_files
created_files.state_directory = lambda: Path(sys.argv[1])
from iolab.cli.main import main
main(["iozone", "-s", "1g", "-r", "4k", "-i", "0", "-o"])
"""


@needs_agent
def test_issue_14_point_2_what_a_killed_iozone_leaves_is_iolabs_and_a_copy_is_not(
    iolab: Iolab, tmp_path: Path
) -> None:
    """After ``kill -9`` of iolab its own iozone.tmp stopped each later start, until it was removed.

    A mark was noted only when all of a run was over. Now the birth of a file is noted as soon as it
    is there; a copy has another one.
    """
    place, notes = Path("iozone.tmp"), tmp_path / "state" / created_files.LIST_NAME
    words = [sys.executable, "-c", KILLED, str(tmp_path / "state")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, **quiet) as process:
        until = time.monotonic() + 60
        while not (notes.exists() and place.exists() and place.stat().st_size):
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < until, "the birth of the file was not noted"
            time.sleep(0.05)
        process.kill()
    copied = Path("copied.tmp")
    shutil.copy2(place, copied)
    code, _, err = iolab("iozone -s 64k -r 4k -i 0 -f copied.tmp --out b")
    assert (code, "copied.tmp exists" in err) == (2, True), err
    while True:  # The agent's child has noticed by then that nobody is left.
        size = place.stat().st_size
        time.sleep(0.5)
        if place.stat().st_size == size:
            break
    code, _, err = iolab("iozone -s 64k -r 4k -i 0 --out a")
    assert code == 0, err
    assert not place.exists()
    shutil.move(copied, place)
    code, _, err = iolab("iozone -s 64k -r 4k -i 0 --out c")
    assert (code, place.exists()) == (2, True), err


def test_issue_14_point_2_a_file_that_appeared_later_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that came between the look and the write was replaced by the rename; link(2)
    refuses.
    """
    monkeypatch.setattr(created_files, "state_directory", lambda: tmp_path / "state")
    path = tmp_path / "a.iolab"
    drafted = Folder.draft

    def draft(self: Folder, name: str) -> AbstractContextManager[tuple[int, str]]:
        path.write_text("somebody's")
        return drafted(self, name)

    monkeypatch.setattr(Folder, "draft", draft)
    for write in (
        lambda: users_files.write_new({path: b"ours"}, users_files.NOTHING),
        lambda: users_files.write_file(path, b"ours", users_files.NOTHING),
    ):
        with pytest.raises(RefusedError, match="t was left as it is"):
            write()
        assert path.read_text() == "somebody's"
        assert [it.name for it in tmp_path.iterdir()] == ["a.iolab"]
        path.unlink()


def test_a_new_file_is_written_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "FAT has no second names")

    monkeypatch.setattr(os, "link", link)
    with Folder.opened(tmp_path) as folder:
        folder.create("a", b"ours")
        with pytest.raises(FileExistsError):
            folder.create("a", b"others")
    assert [(it.name, it.read_bytes()) for it in tmp_path.iterdir()] == [("a", b"ours")]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_issue_14_point_2_what_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """``--overwrite`` of a file of mode 0600 left one that everybody could read."""
    path = tmp_path / "a"
    path.write_text("secret")
    path.chmod(mode)
    users_files.write_new({path: b"ours"}, users_files.Allowed.of([str(path)]))
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"ours", mode)


@pytest.mark.needs_root
def test_what_is_replaced_keeps_its_owner_or_opens_to_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for owner, group, expected in ((0, 7, (0, 7, 0o660)), (65534, 7, (0, 0, 0o600))):
        path.write_text("secret")
        os.chown(path, owner, group)
        path.chmod(0o660)
        with Folder.opened(tmp_path) as folder:
            folder.replace("a", b"ours")
        found = path.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == expected
        path.unlink()


@needs_agent
def test_issue_14_point_2_a_measured_file_is_no_more_open_than_the_one_before(
    iolab: Iolab,
) -> None:
    """The measured file was made anew with mode 0640 in place of the user's of 0600."""
    Path("mine").write_text("secret")
    Path("mine").chmod(0o600)
    assert iolab("iozone -s 64k -r 4k -i 0 -w -f mine --overwrite mine --out a")[0] == 0
    assert stat.S_IMODE(Path("mine").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["link", "dangling", "file"])
def test_a_report_for_what_is_no_directory_is_refused_by_its_kind(iolab: Iolab, name: str) -> None:
    """Symptom: it said "cannot be written to link: File exists" and ended with exit code 1."""
    Path("t.csv").write_text(TABLE)
    assert iolab("import t.csv --map value=mbps --unit MB/s --out study")[0] == 0
    Path("file").write_text("mine")
    Path("link").symlink_to("file")
    Path("dangling").symlink_to("nothing")
    code, out, err = iolab(f"report study --out {name}")
    assert code == 2, err
    assert "bfq" in out
    kind = "no directory" if name == "file" else "a symbolic link that leads to no directory"
    assert f"{name} is {kind}: it was left as it is" in err
    assert Path("file").read_text() == "mine"
    assert not Path("nothing").exists()


@needs_agent
@pytest.mark.parametrize("rw", ["write", "randwrite", "randrw"])
def test_a_file_with_another_name_is_not_written_in_place(iolab: Iolab, rw: str) -> None:
    Path("w.txt").write_bytes(b"w" * 65536)
    os.link("w.txt", "w2.txt")
    line = f"fio --name=x --rw={rw} --size=64k --filename=w.txt --overwrite w.txt"
    code, _, err = iolab(line)
    assert code == 2, err
    assert "w.txt has 2 names (hard links)" in err
    assert Path("w2.txt").read_bytes() == b"w" * 65536


SPECIAL_FILES = [
    ("iozone -i 0 -s 64k -f s.txt", "s.txt is a symbolic link"),
    ("iozone -i 0 -s 64k -f p", "p is not a regular file"),
    ("mkfile 64k s.txt", "s.txt is a symbolic link"),
    ("mkfile -n 64k d", "d is a directory"),
    ("fio --name=x --rw=write --size=64k --filename=s.txt", "s.txt is a symbolic link"),
    ("fio --name=x --rw=write --size=64k --filename=p", "p is not a regular file"),
    ("fio --name=x --rw=read --size=4k --filename=/dev/null", "/dev/null is a device"),
]


@needs_agent
@pytest.mark.parametrize(("line", "part"), SPECIAL_FILES)
def test_what_is_no_file_of_its_own_is_refused_by_every_dialect(
    iolab: Iolab, line: str, part: str
) -> None:
    Path("t.txt").write_text("mine")
    Path("s.txt").symlink_to("t.txt")
    Path("d").mkdir()
    os.mkfifo("p")
    code, _, err = iolab(line)
    assert code == 2, err
    assert part in err
    assert "overwrite" not in err
    assert "--erase-serial" not in err
    assert Path("t.txt").read_text() == "mine"
