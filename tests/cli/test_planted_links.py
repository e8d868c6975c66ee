"""Issue 14, point 3: root and links that somebody else has planted.

`iolab report DIR`, typed by root, wrote `DIR/.verdict.json.partial` and `DIR/study.db.lock`:
whoever owned DIR had put links of these names there, and root overwrote what they pointed at. Lock
files and drafts had names that everybody could know, and SQLite's side files still have. Now root
writes only in directories of its own and of who called sudo, drafts have random names and are made
with O_EXCL, locks are opened without following links, and what belongs to others is read from a
private copy.
"""

from __future__ import annotations

import grp
import io
import os
import pwd
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import RefusedError
from iolab.store import owner
from iolab.store.db import Store
from iolab.store.lock import WriterLock
from iolab.store.owner import distrusted, give_to_user

STRANGER = 65534
"""A user who is neither root nor behind sudo."""
Iolab = Callable[..., tuple[int, str, str]]
TABLE = "scheduler,mbps\n" + "".join(
    f"{name},{value}\n"
    for name, low in (("none", 100), ("bfq", 200))
    for value in range(low, low + 3)
)
PLANTED = (
    ".report.html.partial",
    ".report.xlsx.partial",
    ".verdict.json.partial",
    "study.db.lock",
    "study.db.new",
    "study.db-wal",
    "study.db-shm",
    "study.db-journal",
    ".iolab-made",
)


@pytest.fixture
def iolab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iolab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUDO_UID", raising=False)

    def run(line: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        code = main(line.split(), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    Path("t.csv").write_text(TABLE)
    assert run("import t.csv --map value=mbps --unit MB/s --out study")[0] == 0
    return run


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """File that a planted link points at."""
    path = tmp_path / "guarded"
    path.write_text("root's own")
    return path


def plant(folder: Path, target: Path) -> None:
    for name in PLANTED:
        path = folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def give(folder: Path, uid: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (at.st_ino, at.st_uid, at.st_size) for name, at in found.items()}


@pytest.mark.needs_root
@pytest.mark.parametrize(
    "line",
    [
        "report study",
        "report study --out study",
        "report study --out study/new",
        "archive study --out study/a.iolab",
        "archive --extract a.iolab --out study/x",
        "import t.csv --map value=mbps --unit MB/s --out study/new",
        "sim trace s.toml --out study/t.csv.gz",
        "compare --on sim:sata7200-4tb --file-size 1m --rounds 1 --out study/new",
        "compare --on sim:sata7200-4tb --file-size 1m --rounds 1 --resume --out study",
        "aa --on sim:sata7200-4tb --rounds 4 --out study/new",
        "iozone --on sim:sata7200-4tb -I -i 0 -s 64k --out study/new",
    ],
)
def test_root_writes_nothing_in_a_strangers_directory(
    iolab: Iolab, guarded: Path, line: str
) -> None:
    folder = Path("study")
    assert iolab("archive study --out a.iolab")[0] == 0
    Path("s.toml").write_text(
        'name = "s"\ntestbed = "sim:sata7200-4tb"\nrounds = 1\n[factors]\nrecord_size = ["4k"]\n'
        '[[workloads]]\nname = "i"\nkind = "iozone"\ntests = ["write"]\n'
    )
    plant(folder, guarded)
    if "new" not in line:
        Path("study/study.db-wal").unlink()  # It is not followed: see below.
    give(folder, STRANGER)
    before = listing(folder)
    code, _, err = iolab(line)
    assert code == 2, err
    assert "root writes nothing there" in err or "cannot be read" in err
    assert listing(folder) == before
    assert guarded.read_text() == "root's own"


@pytest.mark.needs_root
def test_the_answer_is_printed_all_the_same(iolab: Iolab, guarded: Path) -> None:
    folder = Path("study")
    give(folder, STRANGER)
    before = listing(folder)
    code, out, err = iolab("report study")
    assert code == 2
    assert "bfq" in out
    assert "belongs to" in err
    for line in ("report study --md", "report study --json", "report study --out mine"):
        code, _, err = iolab(line)
        assert code == 0, err
    assert listing(folder) == before
    plant(folder, guarded)
    code, out, err = iolab("report study --json")
    assert (code, out) == (2, "")
    assert "study.db-wal cannot be read" in err, "what may lack records is not judged"
    Path("study/study.db-wal").unlink()
    assert iolab("report study --json")[0] == 0
    assert guarded.read_text() == "root's own"


@pytest.mark.needs_root
def test_planted_links_in_a_directory_of_ones_own_are_replaced_not_followed(
    iolab: Iolab, guarded: Path
) -> None:
    for name in (".verdict.json.partial", ".report.html.partial", "study.db.new"):
        Path("study", name).symlink_to(guarded)
    assert iolab("report study --units si")[0] == 0
    assert guarded.read_text() == "root's own"
    Path("study/verdict.json").unlink()
    Path("study/verdict.json").symlink_to(guarded)
    code, _, err = iolab("report study")
    assert code == 2
    assert "verdict.json is a symbolic link" in err
    assert guarded.read_text() == "root's own"


def test_a_lock_that_is_a_link_or_has_two_names_is_not_opened(iolab: Iolab, guarded: Path) -> None:
    lock = Path("study/study.db.lock")
    lock.unlink(missing_ok=True)
    lock.symlink_to(guarded)
    with pytest.raises(RefusedError, match="is a link"):
        WriterLock(Path("study/study.db")).acquire()
    lock.unlink()
    os.link(guarded, lock)
    with pytest.raises(RefusedError, match="is a link"):
        WriterLock(Path("study/study.db")).acquire()
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(RefusedError, match="is a link"):
        WriterLock(Path("study/study.db")).acquire()
    assert guarded.read_text() == "root's own"


def test_a_database_that_is_a_link_is_not_written(iolab: Iolab) -> None:
    Path("other").mkdir()
    Path("other/study.db").symlink_to(Path("study/study.db").absolute())
    with pytest.raises(RefusedError, match="symbolic link"):
        Store.open_writer(Path("other/study.db"))


@pytest.mark.needs_root
def test_a_running_study_of_a_stranger_is_read_whole(iolab: Iolab) -> None:
    """Records that are in the write-ahead file only must not be missed by the private copy."""
    writer = Store.open_writer(Path("study/study.db"))
    writer.begin_session("r-1", iolab_version="0", testbed={})
    give(Path("study"), STRANGER)
    assert Path("study/study.db-wal").stat().st_size > 0
    with Store.open_reader(Path("study/study.db")) as reader:
        assert any(session["run_id"] == "r-1" for session in reader.contents.sessions())
    writer._connection.close()


@pytest.mark.needs_root
def test_a_log_in_a_directory_of_others_is_refused_before_anything_is_measured(
    iolab: Iolab, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    line = "fio --name=j --rw=write --size=64k --directory=work --write_bw_log=open/log"
    code, out, err = iolab(line)
    assert (code, out) == (2, ""), err
    assert "may be written by others" in err
    assert "write_*_log" in err
    assert "--out" not in err
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.needs_root
def test_whom_root_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert distrusted(folder) is None
    assert distrusted(folder / "new" / "below") is None
    folder.chmod(0o777)
    assert "may be written by others" in str(distrusted(folder))
    folder.chmod(0o1777)
    assert "may be written by others" in str(distrusted(folder))
    assert distrusted(folder / "new") is None, "as in /tmp, what is made there stays ours"
    folder.chmod(0o755)
    os.chown(folder, STRANGER, STRANGER)
    assert "belongs to" in str(distrusted(folder / "new"))
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    assert distrusted(folder) is None
    folder.chmod(0o775)
    assert "may be written by others" in str(distrusted(folder)), "this group is not its own"
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.delenv("SUDO_UID")
    assert "belongs to" in str(distrusted(tmp_path / "link"))


@pytest.mark.needs_root
def test_only_what_root_made_is_given_away(
    tmp_path: Path, guarded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    (tmp_path / "link").symlink_to(guarded)
    os.link(guarded, tmp_path / "second")
    (tmp_path / "own").write_text("")
    give_to_user(tmp_path / "link", tmp_path / "second", tmp_path / "own", tmp_path / "none")
    assert guarded.stat().st_uid == 0
    assert (tmp_path / "link").lstat().st_uid == 0
    assert (tmp_path / "own").stat().st_uid == STRANGER


@pytest.mark.needs_root
def test_results_under_sudo_are_the_users(iolab: Iolab, monkeypatch: pytest.MonkeyPatch) -> None:
    give(Path("study"), STRANGER)
    Path.cwd().chmod(0o755)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    assert iolab("report study --units si")[0] == 0
    assert iolab("report study --out study/new")[0] == 0
    assert {path.stat().st_uid for path in Path("study").rglob("*")} == {STRANGER}
    assert stat.S_IMODE(Path("study/report.html").stat().st_mode) & 0o022 == 0
    assert owner.invoking_user() == (STRANGER, STRANGER)
    shutil.rmtree("study")


@pytest.mark.parametrize(
    ("name", "members", "is_safe"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "you"], False), ("users", [], False)],
)
def test_issue_14_point_3_a_group_that_others_share_makes_a_directory_theirs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    members: list[str],
    is_safe: bool,
) -> None:
    """A directory that the user's group may write counted as the user's own, and where all users
    share one group (`users`), each of them could plant links there. Only a private group is.
    """
    shared = os.stat_result((0o40775, 0, 0, 1, 1000, 1000, 0, 0, 0, 0))
    group = grp.struct_group((name, "x", 1000, members))
    user = pwd.struct_passwd(("me", "x", 1000, 1000, "", "/nowhere", "/bin/sh"))
    monkeypatch.setattr(owner, "invoking_user", lambda: (1000, 1000))
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(Path, "stat", lambda _: shared)
    reason = distrusted(tmp_path)
    assert (reason is None) == is_safe
    assert is_safe or "may be written by others" in str(reason)
