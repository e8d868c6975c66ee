"""Programs whose patterns are known, followed while they run, and workloads made from them.

Every program says by its own text what it does: its row in the table is the truth. A workload that
`iolab pattern --emit` makes from it is run under strace, too, and must have the same pattern. The
kernel's trace points must see what strace sees.
"""

import ctypes
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .test_trace_record import instances

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")

MAP_CREATE, RING, SYS_BPF = 0, 27, 321
"""Numbers of include/uapi/linux/bpf.h, and of the call on x86-64."""


def has_rings_of_programs():
    """Tell whether the kernel has what names of files are taken by: rings of BPF programs."""
    wanted = (ctypes.c_uint32 * 6)(RING, 0, 0, 1 << 16, 0, 0)
    found = ctypes.CDLL(None).syscall(SYS_BPF, MAP_CREATE, wanted, ctypes.sizeof(wanted))
    if found >= 0:
        os.close(found)
    return found >= 0


HEAD = """
import os, random, sys, threading, time
random.seed(7)
size, name = 4096, sys.argv[1]
make = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(make, 64 << 20)
os.close(make)
f = os.open(name, os.O_RDWR)
block = bytes(size)
"""
PROGRAMS = {
    "sequential-read": "for i in range(200): os.read(f, size)",
    "sequential-write": "for i in range(200): os.write(f, block)",
    "log": "for i in range(160):\n    os.write(f, block)\n    if i % 8 == 7: os.fdatasync(f)",
    "backward": "for i in range(200, 0, -1): os.pread(f, size, i * size)",
    "strided": "for i in range(200): os.pread(f, size, i * 65536)",
    "strided-vectors": (
        "for i in range(200): os.preadv(f, [bytearray(1024), bytearray(3072)], i * 262144)"
    ),
    "random-read": "for i in range(300): os.pread(f, size, random.randrange(16384) * size)",
    "random-mix": (
        "for i in range(400):\n"
        "    at = random.randrange(16384) * size\n"
        "    os.pread(f, size, at) if random.random() < 0.7 else os.pwrite(f, block, at)"
    ),
    "four-cursors": (
        # Long enough that four processes with one cursor each run beside one another, not in turn.
        "for i in range(4000): os.pread(f, size, (i % 4) * (16 << 20) + i // 4 * size)"
    ),
    "two-phases": (
        "for i in range(200): os.write(f, block)\n"
        "for i in range(200): os.pread(f, size, random.randrange(16384) * size)"
    ),
    "data-sync": (
        "f = os.open(name, os.O_WRONLY | os.O_DSYNC)\nfor i in range(100): os.write(f, block)"
    ),
    "full-sync": (
        "f = os.open(name, os.O_WRONLY | os.O_SYNC)\nfor i in range(100): os.write(f, block)"
    ),
    "pages-and-headers": (
        "sizes = [4096] * 706 + [24] * 250 + [65536] * 44\n"
        "random.shuffle(sizes)\n"
        "for one in sizes: os.write(f, bytes(one))"
    ),
    "sizes-by-direction": (
        "for i in range(1000):\n"
        "    at = random.randrange(1000) * 65536\n"
        "    read = random.random() < 0.6\n"
        "    os.pread(f, 8192, at) if read else os.pwrite(f, bytes(32768), at)"
    ),
    "orders-by-direction": (
        "for i in range(400):\n"
        "    os.pread(f, size, i * size)\n"
        "    os.pwrite(f, block, random.randrange(16384) * size)"
    ),
    "appended-lines": (
        "f = os.open(name, os.O_WRONLY | os.O_APPEND)\n"
        "os.ftruncate(f, 0)\n"
        "for i in range(400):\n"
        "    os.write(f, bytes(random.randrange(60, 300)))\n"
        "    os.fsync(f)"
    ),
    "one-block": "for i in range(200): os.pwrite(f, block, 8192)",
    "allocated-log": (
        "os.ftruncate(f, 0)\n"
        "os.posix_fallocate(f, 0, 4 << 20)\n"
        "for i in range(200): os.write(f, block)"
    ),
}
WAYS = ["strace", pytest.param("tracepoints", marks=pytest.mark.needs_root)]
PATTERNS = {
    "sequential-read": "sequential",
    "sequential-write": "sequential",
    "log": "sequential",
    "backward": "backward",
    "strided": "strided",
    "strided-vectors": "strided",
    "random-read": "random",
    "random-mix": "random",
    "four-cursors": "interleaved",
    "two-phases": "mixed",
    "data-sync": "sequential",
    "full-sync": "sequential",
    "pages-and-headers": "sequential",
    "sizes-by-direction": "random",
    "orders-by-direction": "mixed",
    "appended-lines": "sequential",
    "one-block": "same-place",
    "allocated-log": "sequential",
}
WAITS = {
    "log": {"fdatasync": 20},
    "data-sync": {"dsync_writes": 100},
    "full-sync": {"sync_writes": 100},
    "appended-lines": {"fsync": 400},
}
ALLOCATED = {"allocated-log": "native"}
"""The way in which room is allocated before it is written, of those that do so."""
RUNNERS = [
    "iolab",
    pytest.param("fio", marks=pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")),
]
SYNCS_OF_A_RUN = 4
"""Times that a measured run waits for stable storage by itself, at its beginning and end."""
STRIDES = {"strided": 65536, "strided-vectors": 262144}


def run(*words, cwd):
    """`iolab pattern`, whatever becomes of it."""
    command = [sys.executable, "-m", "iolab", "pattern", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def pattern(*words, cwd):
    """Figures of the only file that is asked for."""
    done = run("--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    files = json.loads(done.stdout[done.stdout.index('{\n "calls"') :])["files"]
    assert len(files) == 1, done.stdout + done.stderr
    return files[0]


SHARE_APART = 0.06
"""Difference of two shares by chance: three standard deviations of 600 draws."""
MOVED_APART = 0.25
"""Relative difference of two sums or counts of as many draws of sizes."""


def differences(one, other):
    """Name all in which two files differ: order, directions, sizes, alignment, waits, amount."""

    def share(row):
        return row["reads"]["count"] / (row["reads"]["count"] + row["writes"]["count"])

    def sizes(row, direction):
        return {size["bytes"]: size["share"] for size in row[f"{direction}_sizes"]["drawn"]}

    def sizes_apart(direction):
        mine, yours = sizes(one, direction), sizes(other, direction)
        apart = (abs(mine.get(size, 0) - yours.get(size, 0)) for size in mine.keys() | yours.keys())
        return max(apart, default=0)

    def waits(row, way):
        """Writes for each wait, up to a tenth; a run waits a few times by itself."""
        count = row["waits"][way]
        writes = row["writes"]["count"]
        return round(writes / count, 1) if writes and count > SYNCS_OF_A_RUN else None

    def waits_apart(way):
        mine, yours = waits(one, way), waits(other, way)
        return mine != yours if None in (mine, yours) else abs(mine - yours) > 0.1 * mine

    def phases(row):
        return [phase["pattern"] for phase in row["phases"]]

    def moved(row):
        return row["reads"]["bytes"] + row["writes"]["bytes"]

    def accesses(row):
        return row["reads"]["count"] + row["writes"]["count"]

    def drawn_apart(row):
        """Three standard deviations of the mean of sizes that are drawn, in parts of it."""
        found = [
            (size["bytes"], size["share"] * row[f"{way}s"]["count"])
            for way in ("read", "write")
            for size in row[f"{way}_sizes"]["drawn"]
        ]
        total = sum(count for _, count in found)
        mean = sum(size * count for size, count in found) / total
        spread = math.sqrt(sum(count * (size - mean) ** 2 for size, count in found) / total)
        return 3 * spread / mean / math.sqrt(total)

    def is_apart(mine, yours):
        return abs(mine - yours) > MOVED_APART * mine

    differ = {
        "pattern": one["pattern"] != other["pattern"],
        "stride": one["stride"] != other["stride"],
        "mix": abs(share(one) - share(other)) > SHARE_APART,
        "orders": one["directions"] != other["directions"],
        "sizes of reads": sizes_apart("read") > SHARE_APART,
        "sizes of writes": sizes_apart("write") > SHARE_APART,
        # One place is a multiple of whatever it is a multiple of.
        "alignment": one["alignment"] != other["alignment"]
        and one["span"] is not None
        and one["pattern"] != "same-place",
        "waits": any(map(waits_apart, one["waits"])),
        # Which of several processes comes first is nobody's choice.
        "phases": one["pattern"] != "interleaved" and phases(one) != phases(other),
        "bytes": is_apart(moved(one), moved(other)),
        # So many bytes are moved: how many accesses that takes depends on the sizes drawn.
        "accesses": abs(accesses(one) - accesses(other))
        > (MOVED_APART + drawn_apart(one)) * accesses(one),
    }
    return [name for name, is_other in differ.items() if is_other]


def run_again(runner, job, names, cwd):
    """Follow a program that runs a job file; the figures of its files."""
    for name in names:
        # A file that is long enough already is not written before the job.
        with (cwd / name).open("wb") as file:
            file.truncate(128 << 20)
    allowed = " ".join(f"--overwrite {name}" for name in names)
    command = {
        "iolab": f"{sys.executable} -m iolab fio {allowed} {job}",
        "fio": f"fio {job}",
    }[runner]
    done = run("--json", "--with", "strace", "--only", ".pattern", "--for", command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout[done.stdout.index('{\n "calls"') :])["files"]
    return {Path(row["name"]).name: row for row in files}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_recognised_and_so_is_the_workload_made_from_it(name, runner, tmp_path):
    program, job = tmp_path / "followed.py", tmp_path / "job.fio"
    program.write_text(HEAD + PROGRAMS[name] + "\n")
    row = pattern(
        *("--with", "strace", "--for", f"{sys.executable} {tmp_path}/followed.py data.bin"),
        *("--only", "data.bin", "--emit", "fio", "--out", job),
        cwd=tmp_path,
    )
    assert row["pattern"] == PATTERNS[name], row["sentence"]
    assert row["stride"] == STRIDES.get(name)
    assert {way: count for way, count in row["waits"].items() if count} == WAITS.get(name, {})
    if name == "random-mix":
        assert abs(row["reads"]["count"] / 400 - 0.7) < 0.06
    if name == "four-cursors":
        assert row["streams"] == 4
    if name == "two-phases":
        assert [phase["pattern"] for phase in row["phases"]] == ["sequential", "random"]

    if row["writes"]["count"]:
        assert f"fallocate={ALLOCATED.get(name, 'none')}\n" in job.read_text()

    again = run_again(runner, job, ["data.bin.pattern"], tmp_path)["data.bin.pattern"]
    assert differences(row, again) == [], (row["sentence"], again["sentence"])


@pytest.mark.needs_root
@pytest.mark.parametrize("name", PROGRAMS)
def test_trace_points_see_what_strace_sees(name, tmp_path):
    """Both follow a run of the same program with the same seed: all counts are the same."""
    (tmp_path / "followed.py").write_text(HEAD + PROGRAMS[name] + "\n")
    words = ("--for", f"{sys.executable} {tmp_path}/followed.py data.bin", "--only", "data.bin")
    by_strace, by_points = (
        pattern("--with", way, *words, cwd=tmp_path) for way in ("strace", "tracepoints")
    )
    assert by_points["pattern"] == PATTERNS[name], by_points["sentence"]
    kept = ("reads", "writes", "classes", "sizes", "span", "waits", "stride", "streams", "phases")
    # Pauses are times: each of the two sees those of its own run.
    for followed in (by_points, by_strace):
        for phase in followed["phases"]:
            del phase["pauses"]
    for key in (*kept, "allocations"):
        assert by_points[key] == by_strace[key], key
    assert by_strace["allocations"]["extending"] == (name == "allocated-log")


@pytest.mark.needs_root
@pytest.mark.skipif(not has_rings_of_programs(), reason="the kernel takes no programs with rings")
def test_files_that_are_closed_at_once_have_names(tmp_path):
    """A descriptor that is open for a few us cannot be looked up; the kernel tells its path."""
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    (tmp_path / "followed.py").write_text(
        "import os\n"
        "def use(name, **at):\n"
        "    f = os.open(name, os.O_RDWR | os.O_CREAT, 0o600, **at)\n"
        "    os.write(f, bytes(4096)); os.close(f)\n"
        "for i in range(100): use(f'data {i}')\n"
        "os.chdir('inner')\n"
        "for i in range(100): use(f'./data{i}')\n"
        "deep = os.open('deep', os.O_RDONLY | os.O_DIRECTORY)\n"
        "for i in range(100): use(f'data{i}', dir_fd=deep)\n"
        f"for i in range(100): use('{tmp_path}//data{{i}}'.format(i=i))\n"
        "os.fork() or [use('data.child'), os._exit(0)]\n"
        "os.wait()\n"
    )
    followed = f"{sys.executable} {tmp_path}/followed.py"
    words = ("--json", "--all", "--with", "tracepoints", "--for", followed, "--only", "data")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    inner = tmp_path / "inner"
    expected = {f"{tmp_path}/data {i}" for i in range(100)} | {
        f"{place}/data{i}" for place in (tmp_path, inner, inner / "deep") for i in range(100)
    }
    found = {row["name"] for row in report["files"] if row["writes"]["count"]}
    assert found == {*expected, f"{inner}/data.child"}
    assert not [note for note in report["notes"] if "not known" in note]


@pytest.mark.needs_root
@pytest.mark.skipif(not has_rings_of_programs(), reason="the kernel takes no programs with rings")
def test_a_child_begins_in_the_directory_that_its_parent_has_open(tmp_path):
    """Each directory has files of the same names: whoever guesses takes several for one."""
    expected = set[str]()
    for place in ("a", "b/c", "b/d"):
        (tmp_path / "src" / place).mkdir(parents=True)
        for name in ("data1", "data2"):
            (tmp_path / "src" / place / name).write_text(name)
            expected.add(f"{tmp_path}/src/{place}/{name}")
    words = ("--json", "--all", "--with", "tracepoints", "--only", "data")
    done = run(*words, "--for", "find src -type f -execdir cat {} +", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout[done.stdout.index('{\n "calls"') :])
    assert {row["name"] for row in report["files"]} == expected, done.stderr


@pytest.mark.needs_root
def test_threads_and_children_are_followed(tmp_path):
    """A child reads on where its parent stopped; a thread has its parent's descriptors."""
    (tmp_path / "followed.py").write_text(
        HEAD
        + "read = lambda: [os.read(f, size) for _ in range(50)]\n"
        + "read()\n"
        + "thread = threading.Thread(target=read); thread.start(); thread.join()\n"
        + "child = os.fork()\n"
        + "if not child: read(); time.sleep(0.05); os._exit(0)\n"
        + "os.waitpid(child, 0)\n"
        + "import subprocess\n"
        + "subprocess.run([sys.executable, '-c', 'import os, sys, time; "
        + "[os.read(int(sys.argv[1]), 4096) for _ in range(50)]; time.sleep(0.05)', str(f)], "
        + "pass_fds=[f])\n"
    )
    words = ("--for", f"{sys.executable} {tmp_path}/followed.py data.bin", "--only", "data.bin")
    row = pattern("--with", "tracepoints", *words, cwd=tmp_path)
    assert (row["pattern"], row["streams"]) == ("sequential", 1), row["sentence"]
    assert row["reads"] == {"count": 200, "bytes": 200 * 4096}


@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_runs_is_followed_and_left_alone(way, tmp_path):
    """The time ends before the process; what it had opened is known by its path."""
    text = HEAD + (
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.pread(f, size, random.randrange(16384) * size)\n"
        "    time.sleep(0.002)\n"
    )
    program = tmp_path / "followed.py"
    program.write_text(text)
    with subprocess.Popen(
        [sys.executable, program, "data.bin"], cwd=tmp_path, stdout=subprocess.PIPE
    ) as running:
        try:
            running.stdout.readline()
            row = pattern(
                *("--with", way, "--pid", running.pid, "--seconds", 2, "--only", "data.bin"),
                cwd=tmp_path,
            )
            assert row["pattern"] == "random"
            assert row["is_opened_before"]
            assert row["reads"]["count"] > 20
            assert running.poll() is None
        finally:
            running.kill()


@pytest.mark.parametrize("way", WAYS)
def test_a_command_ends_when_its_time_is_over(way, tmp_path):
    (tmp_path / "followed.py").write_text(
        HEAD + "while True:\n    os.read(f, size)\n    time.sleep(0.001)"
    )
    row = pattern(
        *("--with", way, "--for", f"{sys.executable} {tmp_path}/followed.py data.bin"),
        *("--seconds", 2, "--only", "data.bin"),
        cwd=tmp_path,
    )
    assert row["pattern"] == "sequential"
    left = subprocess.run(
        ["pgrep", "-f", f"{tmp_path}/followed.py"], capture_output=True, check=False
    )
    assert left.stdout == b"", "the program still runs"


@pytest.mark.parametrize("way", WAYS)
def test_what_was_recorded_is_kept_where_it_is_asked_for(way, tmp_path):
    kept = tmp_path / "calls"
    (tmp_path / "followed.py").write_text(HEAD + PROGRAMS["backward"])
    command = f"{sys.executable} {tmp_path}/followed.py data.bin"
    words = ("--with", way, "--for", command, "--only", "data.bin")
    live = pattern(*words, "--keep", kept, cwd=tmp_path)
    assert pattern(kept, "--only", "data.bin", cwd=tmp_path) == live
    done = run(*words, "--keep", kept, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert Path(kept).stat().st_size > 0


@pytest.mark.parametrize("way", WAYS)
def test_a_command_that_fails_is_told(way, tmp_path):
    (tmp_path / "some").write_bytes(bytes(1000))
    # The shell has the file open until it ends: whoever looks later sees it, too.
    command = "exec 5<some; head -c 1000 <&5; sleep 0.2; exit 3"
    done = run("--with", way, "--for", command, "--only", "some", cwd=tmp_path)
    assert done.returncode == 1
    assert "the command ended with exit code 3" in done.stderr
    assert "1 read of 1000 B" in done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_names_may_have_any_bytes(way, tmp_path):
    """Both ways tell the same name."""
    name = b'a\nb\xff <c>"\\ (deleted)'
    (tmp_path / os.fsdecode(name)).write_bytes(bytes(1000))
    (tmp_path / "followed.py").write_text(
        f"import os, time\nf = os.open({name!r}, os.O_RDONLY)\nos.read(f, 1000)\ntime.sleep(0.1)\n"
    )
    row = pattern(
        "--with",
        way,
        "--for",
        f"{sys.executable} {tmp_path}/followed.py",
        "--only",
        "<c>",
        cwd=tmp_path,
    )
    assert row["name"] == f"{tmp_path}/" + name.removesuffix(b" (deleted)").decode(errors="replace")


@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_ends_at_once_is_told(way, tmp_path):
    """A command that does nothing has no files; one that was named ends what follows it."""
    done = run("--with", way, "--for", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n") < 3) == (0, True), done.stderr
    with subprocess.Popen(["sleep", "1"]) as process:
        done = run("--with", way, "--pid", process.pid, "--seconds", "60", cwd=tmp_path)
        assert process.poll() is not None
    assert done.returncode in (0, 1)
    assert len(done.stderr.splitlines()) <= 2, done.stderr
    done = run("--with", way, "--pid", process.pid, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no process {process.pid}" in done.stderr


@pytest.mark.needs_root
def test_a_process_that_is_traced_already_is_for_trace_points_alone(tmp_path):
    """A process has one tracer at most."""
    (tmp_path / "followed.py").write_text(
        HEAD + "while True:\n    os.read(f, size)\n    time.sleep(0.001)"
    )
    traced = [sys.executable, "followed.py", "data.bin"]
    with subprocess.Popen(
        ["strace", "-D", "-o", "/dev/null", *traced], cwd=tmp_path, start_new_session=True
    ) as process:
        try:
            words = ("--pid", process.pid, "--seconds", 1, "--only", "data.bin")
            time.sleep(1)
            refused = run("--with", "strace", *words, cwd=tmp_path)
            assert refused.returncode == 1
            assert "strace recorded no call" in refused.stderr
            assert pattern("--with", "tracepoints", *words, cwd=tmp_path)["reads"]["count"] > 0
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.needs_root
def test_a_process_is_followed_by_trace_points_and_a_command_by_strace(tmp_path):
    """Without `--with`: what runs already is slowed little, of a command all names are seen."""
    with subprocess.Popen(["sleep", "60"]) as process:
        done = run("--pid", process.pid, "--seconds", "0.3", cwd=tmp_path)
        process.kill()
    assert "followed by the kernel's trace points, which" in done.stderr
    (tmp_path / "some").write_text("x")
    done = run("--for", "cat some", cwd=tmp_path)
    assert done.returncode == 0
    assert "trace points" not in done.stderr
    assert f"{tmp_path}/some" in done.stdout


@pytest.mark.needs_root
def test_killed_it_leaves_a_readable_recording_and_nothing_else(tmp_path):
    kept, before = tmp_path / "calls", instances()
    (tmp_path / "followed.py").write_text(
        HEAD + "while True:\n    os.read(f, size)\n    time.sleep(0.001)"
    )
    command = f"exec {sys.executable} {tmp_path}/followed.py data.bin"
    words = [sys.executable, "-m", "iolab", "pattern", "--with", "tracepoints", "--keep", kept]
    with subprocess.Popen([*words, "--for", command], cwd=tmp_path) as running:
        limit = time.monotonic() + 60
        while not (kept.exists() and kept.stat().st_size > 4000) and time.monotonic() < limit:
            time.sleep(0.1)
        time.sleep(2)
        running.kill()
    found = subprocess.run(
        ["pgrep", "-f", f"{tmp_path}/followed.py"], capture_output=True, text=True, check=False
    )
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    limit = time.monotonic() + 60
    while not instances() <= before and time.monotonic() < limit:
        time.sleep(0.5)
    assert instances() <= before
    row = pattern(kept, "--only", "data.bin", cwd=tmp_path)
    assert row["pattern"] == "sequential"
