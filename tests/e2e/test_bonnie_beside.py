"""Requests of bonnie++ beside measuring: copies that wait, other users, numbers of a file, a
kill.
"""

import os
import pwd
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .strace import sessions
from .test_kill_loop import agents_of, kill_all

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: other users, everybody's semaphores"),
]
QUICK = ["-r", "0", "-s", "4", "-n", "0", "-f", "-q", "-u", "root"]
ORIGINAL = shutil.which("bonnie++", path="/usr/sbin:/usr/bin")


def command(tmp_path, *words):
    out = tmp_path / f"out-{random.randrange(1 << 40):x}"
    return [sys.executable, "-m", "iolab.cli", "--out", str(out), "bonnie++", *map(str, words)]


def start(arguments, tmp_path, **options):
    return subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **options,
    )


def finish(process, limit=60):
    out, err = process.communicate(timeout=limit)
    return process.returncode, out, err


def done(arguments, tmp_path):
    return finish(start(arguments, tmp_path))


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def semaphores(tmp_path):
    """No set before and after; others on this machine must not use it meanwhile."""
    subprocess.run(["ipcrm", "-S", "4711"], capture_output=True, check=False)
    yield
    subprocess.run(["ipcrm", "-S", "4711"], capture_output=True, check=False)


def files_in(place: Path) -> list[Path]:
    """Return everything below `place` but iolab's own directory and the token that proves it."""
    # Unlike rglob, walk goes on where a directory is gone before it is read.
    walked = os.walk(place)
    found = [Path(at) / name for at, folders, files in walked for name in (*folders, *files)]
    return [path for path in found if not path.name.startswith(".iolab-")]


# --- copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", ["ours", "original"])
@pytest.mark.parametrize("other", ["ours", "original"])
def test_copies_wait_for_each_other_before_each_phase(tmp_path, place, semaphores, maker, other):
    if ORIGINAL is None and "original" in (maker, other):
        pytest.skip("bonnie++ is not installed")
    make = command(tmp_path, "-p", 2) if maker == "ours" else [ORIGINAL, "-p", "2", "-u", "root"]
    code, out, err = done(make, tmp_path)
    assert (code, out) == (0, "Creating semaphore for 2 procs.\n"), err
    words = ["-d", place, *QUICK, "-y", "s"]
    first = start(command(tmp_path, *words), tmp_path)
    time.sleep(2.5)
    assert first.poll() is None, "alone it waits"
    assert files_in(place) == [], "before its first phase"
    second = command(tmp_path, *words) if other == "ours" else [ORIGINAL, *map(str, words)]
    results = [finish(start(second, tmp_path)), finish(first)]
    assert [code for code, _, _ in results] == [0, 0], results
    assert all(out.startswith("1.98,") for _, out, _ in results)
    code, out, err = done(command(tmp_path, "-p", -1), tmp_path)
    assert (code, out) == (0, "Semaphore removed.\n"), err


def test_without_semaphores_nothing_is_waited_for(tmp_path, place, semaphores):
    code, out, err = done(command(tmp_path, "-d", place, *QUICK, "-ys"), tmp_path)
    assert (code, out) == (1, "")
    assert "there are no semaphores: make them first" in err
    assert list(place.iterdir()) == []
    assert not list(tmp_path.glob("out-*")), "nothing is stored of nothing"
    code, _, err = done(command(tmp_path, "-p", "-1"), tmp_path)
    assert code == 1
    assert "there are no semaphores" in err


def test_a_copy_too_many_and_a_removed_set_are_told(tmp_path, place, semaphores):
    assert done(command(tmp_path, "-p", 2), tmp_path)[0] == 0
    waiting = start(command(tmp_path, "-d", place, *QUICK, "-y", "s"), tmp_path)
    time.sleep(2.5)
    assert done(command(tmp_path, "-p", -1), tmp_path)[0] == 0
    code, _, err = finish(waiting)
    assert (code, "the semaphores were removed" in err) == (1, True), err
    assert done(command(tmp_path, "-p", 1), tmp_path)[0] == 0
    assert done(command(tmp_path, "-d", place, *QUICK, "-y", "s"), tmp_path)[0] == 0
    code, _, err = done(command(tmp_path, "-d", place, *QUICK, "-y", "s"), tmp_path)
    assert (code, "semaphore 1 is at zero" in err) == (1, True), err
    assert list(place.iterdir()) == []


def test_a_copy_that_waits_can_be_stopped(tmp_path, place, semaphores):
    assert done(command(tmp_path, "-p", 2), tmp_path)[0] == 0
    waiting = start(command(tmp_path, "-d", place, *QUICK, "-y", "s"), tmp_path)
    time.sleep(2.5)
    waiting.send_signal(signal.SIGINT)
    assert finish(waiting, 20)[0] == 130


def test_prompts_are_the_originals(tmp_path, place):
    words = ["-d", place, *QUICK, "-m", "t", "-z", "1", "-y", "p"]
    ours = start(command(tmp_path, *words), tmp_path, stdin=subprocess.PIPE)
    out, err = ours.communicate("\n" * 4, timeout=60)
    assert ours.returncode == 0, err
    prompts, line = out.rsplit("\n1.98,", 1)
    assert prompts == "\n1:\n\n2:\n\n4:\n\n5:"
    assert line.startswith("2.00a,t,1,1,4M,")
    # A third phase that nobody lets begin.
    waiting = start(command(tmp_path, *words), tmp_path, stdin=subprocess.PIPE)
    waiting.stdin.write("\n\n")
    waiting.stdin.flush()
    time.sleep(4)
    assert waiting.poll() is None
    assert [path.parent.parent for path in place.glob(".iolab-*/Bonnie.*")] == [place]
    assert len(list(place.iterdir())) == 1
    waiting.send_signal(signal.SIGINT)
    assert finish(waiting, 20)[0] == 130
    assert list(place.iterdir()) == []


# --- users --------------------------------------------------------------------------------------


def owners(process, place):
    """Owners of the files there while it runs."""
    seen = set()
    while process.poll() is None:
        for path in files_in(place):
            try:
                status = path.stat()
            except OSError:
                continue
            seen.add((status.st_uid, status.st_gid))
        time.sleep(0.01)
    return seen


@pytest.mark.parametrize("words", [["-u", "nobody:daemon"], ["-u", "nobody", "-g", "daemon"]])
def test_another_user_measures(tmp_path, place, words):
    nobody, daemon = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
    os.chown(place, nobody.pw_uid, daemon.pw_gid)
    running = start(
        command(tmp_path, "-d", place, "-s", "64", "-r", "0", "-n", "1:3000", "-f", *words),
        tmp_path,
    )
    seen = owners(running, place)
    code, _, err = finish(running)
    assert code == 0, err
    assert f"Using uid:{nobody.pw_uid}, gid:{daemon.pw_gid}." in err
    assert seen == {(nobody.pw_uid, daemon.pw_gid)}
    assert list(place.iterdir()) == []


@pytest.mark.needs_loop
@pytest.mark.parametrize("on", ["loop:300m", "dir"])
def test_another_user_measures_on_a_testbed(tmp_path, place, on):
    place.chmod(0o755)
    tmp_path.chmod(0o755)
    on = f"dir:{place}" if on == "dir" else on
    words = ["--on", on, "-s", 8, "-r", 0, "-n", 1, "-f", "-q", "-u", "nobody"]
    code, out, err = done(command(tmp_path, *words), tmp_path)
    assert (code, out[:4]) == (0, "1.98"), err
    assert list(place.iterdir()) == []


def test_a_simulation_has_no_users_and_waits_for_nobody(tmp_path):
    words = ["--on", "sim:sata7200-4tb", "-D", "-f", "-n", 0, "-s", 8, "-r", 0, "-q"]
    code, out, err = done(command(tmp_path, *words, "-u", "root"), tmp_path)
    assert (code, out[:4]) == (0, "1.98"), err
    assert "-u and -g mean nothing in a simulation" in err
    code, _, err = done(command(tmp_path, *words, "-y", "s"), tmp_path)
    assert (code, "a simulation waits for nobody" in err) == (1, True)


def test_another_user_measures_where_he_may_not_write(tmp_path, place):
    """The original fails there; ours makes a directory as root and hands it over."""
    place.chmod(0o755)
    words = ["-d", place, "-s", "4", "-r", "0", "-n", "0", "-f", "-q", "-u", "nobody"]
    code, out, err = done(command(tmp_path, *words), tmp_path)
    assert (code, out[:5]) == (0, "1.98,"), err
    assert list(place.iterdir()) == []


def test_root_is_told_or_with_compat_refused(tmp_path, place):
    words = ["-d", place, "-s", "4", "-r", "0", "-n", "0", "-f", "-q"]
    code, _, err = done(command(tmp_path, *words), tmp_path)
    assert (code, "note: it runs as root" in err) == (0, True), err
    code, out, err = done(command(tmp_path, "--compat", *words), tmp_path)
    assert (code, out) == (1, "")
    assert 'You must use the "-u" switch when running as root.' in err


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("source", ["-Z", "-z"])
@pytest.mark.parametrize("seekers", [1, 3])
def test_tickets_are_those_of_the_original(tmp_path, place, source, seekers):
    if ORIGINAL is None:
        pytest.skip("bonnie++ is not installed")
    numbers = tmp_path / "numbers"
    drawn = [random.Random(3).randrange(-(1 << 31) + 1, 1 << 31) for _ in range(97)]
    numbers.write_bytes(struct.pack(">97i", *drawn))
    value = numbers if source == "-Z" else 42
    words = [
        "-s",
        f"1:16k:120:{seekers}",
        "-r",
        0,
        "-n",
        0,
        "-f",
        "-q",
        "-u",
        "root",
        source,
        value,
    ]
    seen = []
    for number, program in enumerate((command(tmp_path), [ORIGINAL])):
        log = tmp_path / f"log-{number}"
        calls = "trace=open,openat,creat,close,read,write,lseek"
        argv = ["strace", "-ff", "-s", "0", "-e", calls, "-o", log, *program, *words]
        assert done([*map(str, argv), "-d", str(place)], tmp_path)[0] == 0
        # One log for each thread.
        logs = [path.read_text() for path in tmp_path.glob(f"log-{number}.*")]
        found = [transfer for text in logs for transfer in seeks(text)]
        seen.append([sorted(at for call, at, _ in found if call == wanted) for wanted in CALLS])
    assert [len(offsets) for offsets in seen[0]] == [120, len(seen[1][1])]
    assert seen[0] == seen[1]


CALLS = ("read", "write")


def seeks(log):
    """Transfers of the last phase: those before it go through the file from its front."""
    chunk, chunks = 16384, 64
    in_order = [chunk * number for number in range(chunks)]
    found = []
    for session in sessions(log, ""):
        is_chunked = {size for _, _, size in session.transfers} == {chunk}
        offsets = list(dict.fromkeys(at for _, at, _ in session.transfers))
        if is_chunked and offsets != in_order:
            found.extend(session.transfers)
    return found


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (b"", "no number"), (b"x" * 262148, "more")]
)
def test_a_file_without_numbers_is_refused(tmp_path, place, content, message):
    numbers = tmp_path / "numbers"
    if content is not None:
        numbers.write_bytes(content)
    code, out, err = done(command(tmp_path, "-d", place, *QUICK, "-Z", numbers), tmp_path)
    assert (code, out) == (1, "")
    assert message in err
    assert list(place.iterdir()) == []


# --- kills --------------------------------------------------------------------------------------


def running_in(tmp_path, place):
    """A run that has made its file."""
    words = ["-d", place, "-s", "256", "-r", "0", "-n", "4", "-f", "-q", "-u", "root"]
    running = start(command(tmp_path, *words), tmp_path)
    deadline = time.monotonic() + 30
    while not list(place.glob(".iolab-*/Bonnie.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    why = running.stderr.read() if running.poll() is not None else ""
    assert list(place.glob(".iolab-*/Bonnie.*")), why
    return running


def wait_until_empty(place, seconds):
    deadline = time.monotonic() + seconds
    while list(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [path.name for path in place.iterdir()]


@pytest.mark.parametrize("victims", ["front end", "agent", "front end and agent"])
def test_a_kill_leaves_nothing(tmp_path, place, victims):
    (place / "mine").write_text("stays")
    (tmp_path / "sub").mkdir()
    folder = place / "in"
    folder.mkdir()
    running = running_in(tmp_path, folder)
    agents = [pid for pid, text in agents_of(running).items() if "measure" not in text.split()]
    agents = [pid for pid in agents if b"watchdog" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    time.sleep(random.uniform(0, 1.5))
    if "front end" in victims:
        running.kill()
    for pid in agents if "agent" in victims else []:
        os.kill(pid, signal.SIGKILL)
    finish(running)
    assert wait_until_empty(folder, 20) == []
    assert (place / "mine").read_text() == "stays"


def test_after_all_were_killed_the_next_start_says_what_to_do(tmp_path, place, monkeypatch):
    running = running_in(tmp_path, place)
    victims = [running.pid, *agents_of(running)]
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    kill_all(victims)  # One takes others with it.
    finish(running)
    [left] = place.iterdir()
    assert left.name.startswith(".iolab-"), "what we made, and no more"
    try:
        code, out, err = done(command(tmp_path, "-d", place, *QUICK), tmp_path)
        assert (code, out) == (2, "")
        assert "run `iolab restore` first" in err
    finally:
        restored = [sys.executable, "-m", "iolab.cli", "restore"]
        code, out, err = done(restored, tmp_path)
    assert code == 0, err
    assert f"{left.name} removed" in out
    assert list(place.iterdir()) == []
    assert done(command(tmp_path, "-d", place, *QUICK), tmp_path)[0] == 0


def test_what_others_call_bonnie_is_never_touched(tmp_path, place):
    """Issue 14, point 9.

    Symptom: somebody's directory `Bonnie.PID` that appeared during a run was removed with all that
    was in it. Cause: scratch was known by its name. Fix: it lies in a directory of iolab's own,
    known by its token; that name in the user's directory means nothing any more.
    """
    # The shell's own number becomes that of the program.
    script = 'mkdir "$1/Bonnie.$$"; echo mine > "$1/Bonnie.$$/file"; shift; exec "$@"'
    words = command(tmp_path, "-d", place, *QUICK)
    code, _, err = done(["sh", "-c", script, "sh", str(place), *words], tmp_path)
    assert code == 0, err
    [left] = place.iterdir()
    assert (left / "file").read_text() == "mine\n"


def test_what_others_call_bonnie_outlives_a_kill(tmp_path, place):
    running = running_in(tmp_path, place)
    foreign = place / f"Bonnie.{running.pid}"
    foreign.mkdir()
    (foreign / "file").write_text("mine")
    agents = [pid for pid, text in agents_of(running).items() if "watchdog" not in text]
    kill_all([running.pid, *agents])
    finish(running)
    deadline = time.monotonic() + 20
    while len(list(place.iterdir())) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(place.iterdir()) == [foreign]
    assert (foreign / "file").read_text() == "mine"
