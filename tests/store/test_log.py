"""No record is lost without a word with SQLite's write-ahead log.

Issue 14, point 7, found by an attacker: a bit flipped in the log of a study whose run had been
killed made SQLite leave out every record behind it; `iolab report` exited 0, and copied the rest
into the database and removed the log when it closed, so that the loss was for good. An emptied or
removed log was not noticed at all. Now the log is judged before SQLite opens it, readers leave it
as it is, and the file of the writer's lock says how much was stored.
"""

import io
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import soak
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import DamageError
from iolab.store.db import Store
from iolab.store.lock import is_held, noted
from iolab.store.log import lost_in, read_log
from iolab.store.schema import SCHEMA_VERSION

FRAME = 24 + 4096
HEADER = 32


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory):
    return soak.make_killed_study(tmp_path_factory.mktemp("killed"))


@pytest.fixture
def killed(killed_once, tmp_path):
    shutil.copytree(killed_once.parent, tmp_path / "o")
    return tmp_path / "o" / "study.db"


def log_of(path):
    return path.with_name("study.db-wal")


def listing(path):
    """Every file but SQLite's index of the log; of the lock's file what was noted."""
    found = {item.name: item.read_bytes() for item in path.parent.iterdir()}
    found.pop("study.db-shm", None)
    return found | {"study.db.lock": found.get("study.db.lock", b"").partition(b"\n")[2]}


def frames(content):
    return (len(content) - HEADER) // FRAME


def commits(content):
    """Numbers of the frames that end a write, from 0."""
    return [
        number
        for number in range(frames(content))
        if struct.unpack_from(">6I", content, HEADER + number * FRAME)[1]
    ]


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def test_a_reader_leaves_the_log_of_a_killed_study_as_it_is(killed):
    before = listing(killed)
    assert len(before["study.db-wal"]) > 10 * FRAME
    for _ in range(2):
        code, _, err = run("report", killed.parent, "--json")
        assert code == 0, err
        assert listing(killed) == before
    log_of(killed).with_name("study.db-shm").unlink()
    assert run("report", killed.parent, "--json")[0] == 0
    assert listing(killed) == before


@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_bit_before_the_last_write_is_named_and_nothing_changed(killed, seed):
    content = log_of(killed).read_bytes()
    # Of the frame that ends a write SQLite lacks that write only: the note decides about it.
    last = HEADER + commits(content)[-2] * FRAME
    at = random.Random(seed).randrange(last)
    log_of(killed).write_bytes(flip(content, at))
    before = listing(killed)
    for words in (["report", killed.parent], ["archive", killed.parent, "--out", "/none/x.iolab"]):
        code, out, err = run(*words)
        assert (code, out) == (5, ""), err
        assert "study.db-wal is damaged: " in err
        assert "put back a copy" in err
    with pytest.raises(DamageError, match=r"study\.db-wal is damaged"):
        Store.open_writer(killed)
    assert listing(killed) == before
    assert not is_held(killed)


@pytest.mark.parametrize("how", ["removed", "emptied", "cut", "cut in a frame", "end flipped"])
def test_what_the_note_says_and_the_study_lacks_is_named(killed, how):
    content = log_of(killed).read_bytes()
    changed = {
        "emptied": b"",
        "cut": content[: HEADER + (commits(content)[-2] + 1) * FRAME],
        "cut in a frame": content[:-100],
        "end flipped": flip(content, len(content) - 100),
    }
    if how == "removed":
        log_of(killed).unlink()
    else:
        log_of(killed).write_bytes(changed[how])
    before = listing(killed)
    code, out, err = run("report", killed.parent)
    assert (code, out) == (5, ""), err
    assert "study.db.lock says that more was stored: " in err
    assert "remove study.db.lock" in err
    with pytest.raises(DamageError, match="more was stored"):
        Store.open_writer(killed)
    after = listing(killed)
    assert after.pop("study.db-wal", b"") == before.pop("study.db-wal", b"")
    assert after == before
    # As advised.
    killed.with_name("study.db.lock").unlink()
    if how == "cut":
        Store.open_writer(killed).close()


def test_what_a_power_cut_may_leave_of_the_last_write_is_no_damage(killed):
    """The last write, not finished: its frames were never synchronised, the note not written."""
    content = log_of(killed).read_bytes()
    ends = commits(content)
    begin = HEADER + (ends[-2] + 1) * FRAME
    lock = killed.with_name("study.db.lock")
    pid, note, *_ = lock.read_text().split("\n")
    *words, records = note.split(" ")
    lock.write_text(f"{pid}\n{' '.join([*words, str(int(records) - 1)])}\n")
    with Store.open_reader(killed) as store:
        whole = len(store.finished_trials())
    torn = {
        "a hole": content[:begin] + bytes(FRAME) + content[begin + FRAME :],
        "half a frame": content[: begin + 1000],
        "a frame of an older log": content[: begin + 8] + b"oldsalts" + content[begin + 16 :],
    }
    for name, left in torn.items():
        log_of(killed).write_bytes(left)
        with Store.open_reader(killed) as store:
            assert len(store.finished_trials()) == whole - 1, name
    with Store.open_writer(killed) as store:
        assert len(store.finished_trials()) == whole - 1


def test_frames_of_an_older_log_are_no_damage(tmp_path):
    """SQLite begins a log anew in place, with other salts, when all of it is in the database."""
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    for _ in range(20):
        connection.execute("INSERT INTO t VALUES (randomblob(3000))")
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    older = read_log(path)
    connection.execute("INSERT INTO t VALUES (randomblob(3000))")
    content = read_log(path)
    connection.close()
    assert (lost_in(older), lost_in(content)) == (None, None)
    assert len(content) == len(older)
    assert content[HEADER + 10 * FRAME :] == older[HEADER + 10 * FRAME :]
    # Cut anywhere, as a kill does, nothing that was finished follows.
    for size in range(0, len(older), 997):
        assert lost_in(older[:size]) is None
    assert lost_in(flip(older, HEADER + 30)).commits > 1
    assert lost_in(flip(older, 17)).commits > 1


def test_a_reader_that_outlives_a_killed_writer_does_not_empty_the_log(killed, tmp_path):
    shutil.rmtree(killed.parent)
    code, _, err = run(*soak.STUDY_ARGUMENTS, "--out", killed.parent)
    assert code == 0, err
    assert not log_of(killed).exists()
    reader = Store.open_reader(killed)
    program = (
        "import os, sys; from pathlib import Path; from iolab.store.db import Store;"
        "store = Store.open_writer(Path(sys.argv[1]));"
        "store.begin_session('r-9', iolab_version='0', testbed={}); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, killed], check=False)
    assert done.returncode == -signal.SIGKILL
    size = log_of(killed).stat().st_size
    assert size > 0
    reader.close()
    assert log_of(killed).stat().st_size == size
    with Store.open_reader(killed) as store:
        assert store.contents.sessions()[-1]["run_id"] == "r-9"


def test_a_log_that_is_being_written_is_not_judged(killed):
    with Store.open_writer(killed) as writer:
        writer.begin_session("r-2", iolab_version="0", testbed={})
        program = "import sys; from pathlib import Path; from iolab.store.lock import is_held;"
        program += "sys.exit(not is_held(Path(sys.argv[1])))"
        assert subprocess.run([sys.executable, "-c", program, killed], check=False).returncode == 0
        with Store.open_reader(killed) as reader:
            assert reader.contents.sessions()[-1]["run_id"] == "r-2"
        assert not is_held(killed), "by another process"
    assert noted(killed).sessions == 2
    assert not log_of(killed).exists()


def test_a_journal_that_iolab_never_leaves_is_not_applied(killed):
    journal = killed.with_name("study.db-journal")
    journal.write_bytes(os.urandom(1000))
    before = listing(killed)
    code, out, err = run("report", killed.parent)
    assert (code, out) == (5, "")
    assert "study.db-journal is there, which iolab never leaves" in err
    assert listing(killed) == before


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("emptied", "it is empty"),
        ("cut to 100", "damaged"),
        ("cut to 3000", "damaged"),
        ("cut in half", "damaged"),
        ("application_id", "the tables of a study, and not the mark of one"),
        ("user_version", f"but the tables of schema {SCHEMA_VERSION}"),
    ],
)
def test_a_damaged_header_is_damage_and_not_a_foreign_file(killed, how, named):
    """Found by an attacker: these exited with 1, as if the user had named the wrong file."""
    Store.open_writer(killed).close()
    content = killed.read_bytes()
    sizes = {"emptied": 0, "cut to 100": 100, "cut to 3000": 3000, "cut in half": len(content) // 2}
    at = {"application_id": 70, "user_version": 63}.get(how)
    changed = content[: sizes.get(how)] if at is None else bytearray(content)
    if at is not None:
        changed[at] ^= 64
    Path(killed).write_bytes(changed)
    code, out, err = run("report", killed.parent)
    assert (code, out) == (5, ""), err
    assert named in err


def test_a_file_that_never_was_a_study_is_told_so(tmp_path):
    path = tmp_path / "notes.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (x)")
    connection.close()
    code, _, err = run("report", path)
    assert code == 1
    assert "notes.db is not a study of iolab" in err
