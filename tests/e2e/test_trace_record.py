"""`iolab trace record` on real loop devices: what is in the file, and what is left of it after all.

Conservation: a recorded workload's requests and bytes are those of the kernel's own counters.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run
from .machine_state import machine_state
from .test_kill_loop import agents_of, kill_all

pytestmark = pytest.mark.needs_loop

KILLS = 3
"""Kills of this test; ``python -m tests.e2e.test_trace_record 30`` runs the full bar."""
SECTORS = 4 << 11
READS, WRITES = 23, 41
"""Prime numbers: sums of anything else are not mistaken for them."""


class Loop:
    """A loop device of the test's own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.image = folder / f"{name}.img"
        with self.image.open("wb") as file:
            file.truncate(SECTORS * 512)
        argv = ["losetup", "--find", "--show", str(self.image)]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        self.path = done.stdout.strip()
        self.name = Path(self.path).name
        self.is_attached = True

    def counters(self) -> list[int]:
        """The kernel's own: reads, -, sectors read, -, writes, -, sectors written, ..."""
        return [int(word) for word in Path(f"/sys/block/{self.name}/stat").read_text().split()]

    def load(self) -> str:
        """A command with a known number of requests."""
        return (
            f"dd if=/dev/zero of={self.path} bs=8k count={WRITES} oflag=direct status=none; "
            f"dd if={self.path} of=/dev/null bs=4k count={READS} iflag=direct status=none"
        )

    def detach(self) -> None:
        """Give it back, once: afterwards its name may be that of somebody else's device."""
        if self.is_attached:
            self.is_attached = False
            for part in Path(f"/sys/block/{self.name}").glob(f"{self.name}p*"):
                number = (part / "partition").read_text().strip()
                subprocess.run(["delpart", self.path, number], check=True)
            subprocess.run(["losetup", "--detach", self.path], check=True)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    device = Loop(tmp_path, "one")
    yield device
    device.detach()


def instances() -> set[str]:
    """Tracing instances of iolab whose run is over, wherever tracefs is mounted, or is not."""
    there = "/sys/kernel/tracing"
    # A watchdog may end between the two looks, with the instance that it removes in the first.
    living = watched_runs()
    look = f"[ -d {there}/instances ] || mount -t tracefs t {there}; ls {there}/instances"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", look], capture_output=True, text=True, check=True
    )
    found = {name for name in done.stdout.split() if name.startswith("iolab-")}
    living |= watched_runs()
    return {name for name in found if name.removeprefix("iolab-").rpartition("-")[0] not in living}


def watched_runs() -> set[str]:
    """Runs that a watchdog watches over: others may record at the same time."""
    runs = set[str]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"watchdog" in words[1:2]:
            runs.add(words[3].decode())
    return runs


@pytest.fixture(autouse=True)
def no_instance_is_left() -> Iterator[None]:
    before = instances()
    yield
    assert instances() <= before


def events_of(iolab: Run, trace: Path) -> list[str]:
    """Actions and operations of the requests, as the default text has them."""
    shown = iolab("trace", "show", "-q", "-f", "%a %d %n\\n", trace)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()


def test_a_partition_is_chosen_when_the_trace_is_read(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    """Events tell the whole device and its sectors; where its parts lie is in the file."""
    for number, start in ((1, 2048), (2, 4096)):
        argv = ["addpart", loop.path, str(number), str(start), "2048"]
        subprocess.run(argv, check=True)
    first, second, trace = f"{loop.path}p1", f"{loop.path}p2", tmp_path / "t.iotrace"
    load = (
        f"dd if=/dev/zero of={first} bs=8k count={WRITES} oflag=direct status=none; "
        f"dd if={second} of=/dev/null bs=4k count={READS} iflag=direct status=none"
    )
    done = iolab("trace", "record", second, "-o", trace, "--for", load)
    assert done.returncode == 0, done.stderr
    assert f"--device {loop.name}p2 chooses the part when the trace is read" in done.stderr
    for parts, reads, writes in (
        ([first], 0, WRITES),
        ([f"{loop.name}p2"], READS, 0),
        ([first, second], READS, WRITES),
    ):
        words = [word for part in parts for word in ("--device", part)]
        shown = iolab("trace", "show", "-q", "-a", "complete", "-f", "%d\\n", trace, *words)
        assert shown.returncode == 0, shown.stderr
        done_in = [line[0] for line in shown.stdout.splitlines()]
        assert (done_in.count("R"), done_in.count("W")) == (reads, writes)
    told = iolab("trace", "summary", trace, "--device", first)
    assert f"device {loop.name}p1 of {loop.name} (7," in told.stdout, told.stdout
    other = iolab("trace", "show", trace, "--device", f"{loop.name}p3")
    assert other.returncode == 1
    assert f"no event is of {loop.name}p3" in other.stderr


def test_counts_and_bytes_are_those_of_the_kernel(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace, before = tmp_path / "t.iotrace", loop.counters()
    done = iolab("trace", "record", loop.path, "--for", loop.load(), "-o", trace)
    assert done.returncode == 0, done.stderr
    assert f"{loop.name}: " in done.stdout
    assert "none lost" in done.stdout
    grown = [now - then for now, then in zip(loop.counters(), before, strict=True)]
    assert (grown[0], grown[4]) == (READS, WRITES), "nobody else uses the device"
    events = [line.split() for line in events_of(iolab, trace)]
    for letter, count, sectors in (("R", READS, grown[2]), ("W", WRITES, grown[6])):
        for action in ("Q", "D", "C"):
            found = [int(n) for kind, rwbs, n in events if kind == action and letter in rwbs]
            assert (len(found), sum(found)) == (count, sectors), (action, letter)


def test_whoever_was_interrupted_by_a_completion_has_a_name(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "t.iotrace"
    done = iolab("trace", "record", loop.path, "--for", loop.load(), "-o", trace)
    assert done.returncode == 0, done.stderr
    shown = iolab("trace", "show", "-q", "-f", "%p %C\\n", trace)
    names = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    is_here = {pid: Path(f"/proc/{pid}").exists() for pid in names if pid != "0"}
    assert [pid for pid, here in is_here.items() if here and names[pid] in {"0", pid}] == []


def test_the_short_set_has_issues_and_completions_only(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "t.iotrace"
    words = ("--events", "issue-complete", "--for", loop.load())
    done = iolab("trace", "record", loop.name, *words, "-o", trace)
    assert done.returncode == 0, done.stderr
    actions = [line.split()[0] for line in events_of(iolab, trace)]
    assert set(actions) == {"D", "C"}
    assert actions.count("D") == actions.count("C") == READS + WRITES
    told = json.loads(iolab("trace", "stages", trace, "--json").stdout)
    (device,) = told["devices"]
    rows = {row["stage"]: row["count"] for row in device["stages"]}
    assert rows == {"D2C": READS + WRITES}
    assert device["in_flight"]["max"] >= 1
    assert device["idle_ns"] < told["span_ns"]


def test_flushes_of_the_device_are_those_of_the_kernel(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    trace, counters = tmp_path / "t.iotrace", Path(f"/sys/block/{loop.name}/stat")
    before = int(counters.read_text().split()[15])
    load = f"dd if=/dev/zero of={loop.path} bs=4k count=1 conv=fsync,notrunc status=none"
    done = iolab("trace", "record", loop.path, "--for", f"{load}; {load}", "-o", trace)
    assert done.returncode == 0, done.stderr
    flushed = int(counters.read_text().split()[15]) - before
    (device,) = json.loads(iolab("trace", "stages", trace, "--json").stdout)["devices"]
    counts = device["counts"]
    rows = {row["stage"]: row["count"] for row in device["stages"]}
    assert (counts["flushes_issued"], counts["flushes_completed"]) == (flushed, flushed)
    assert rows["flush"] == flushed >= 2
    assert counts["issued"]["count"] == counts["completed"]["count"]


@pytest.mark.parametrize("backend", ["tracefs", "perf"])
def test_every_way_of_recording_tells_the_same(
    iolab: Run, loop: Loop, tmp_path: Path, backend: str
) -> None:
    trace, before = tmp_path / "t.iotrace", loop.counters()
    words = ("--backend", backend, "--for", loop.load())
    done = iolab("trace", "record", loop.name, *words, "-o", trace)
    assert done.returncode == 0, done.stderr
    assert "none lost" in done.stdout
    grown = [now - then for now, then in zip(loop.counters(), before, strict=True)]
    events = [line.split() for line in events_of(iolab, trace)]
    for letter, count, sectors in (("R", READS, grown[2]), ("W", WRITES, grown[6])):
        for action in ("Q", "D", "C"):
            found = [int(n) for kind, rwbs, n in events if kind == action and letter in rwbs]
            assert (len(found), sum(found)) == (count, sectors), (action, letter)


def test_perf_events_are_recorded_where_tracefs_cannot_be_written(
    loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "t.iotrace"
    words = f"trace record {loop.name} -o {trace}"
    script = (
        "mount -t tracefs t /sys/kernel/tracing && "
        "mount -o remount,bind,ro /sys/kernel/tracing && "
        f"{sys.executable} -m iolab.cli {words}"
    )
    quoted = loop.load().replace("'", "")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{script} --for '{quoted}'"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "none lost" in done.stdout
    head = trace.read_bytes()[:8192]
    assert b"perf_event_open" in head
    assert b"Read-only file system" in head, "the file says why"
    calls = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{script}x --events syscalls --for '{quoted}'"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert calls.returncode == 0, calls.stderr
    argv = [sys.executable, "-m", "iolab.cli", "trace", "show", "-q", f"{trace}x"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert shown.stdout.count("syscalls:sys_enter_write") >= WRITES


def test_lost_events_of_perf_are_counted(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace = tmp_path / "t.iotrace"
    read = f"dd if={loop.path} of=/dev/null bs=512 iflag=direct status=none"
    words = ("--backend", "perf", "--buffer", "64 KiB", "--for", f"{read}; {read}; {read}")
    done = iolab("trace", "record", loop.name, *words, "-o", trace)
    assert done.returncode == 0, done.stderr
    lost = re.search(r"(\d+) lost", done.stdout)
    if lost is None:
        assert "none lost" in done.stdout
        pytest.skip("the recorder was fast enough: nothing was lost")
    assert "events were lost" in iolab("trace", "show", "-q", trace).stderr


def test_two_recordings_at_once_see_their_own_devices(tmp_path: Path, iolab: Run) -> None:
    loops = [Loop(tmp_path, name) for name in ("one", "two")]
    try:
        running = [
            start(loop, tmp_path / f"{loop.name}.iotrace", "--for", f"sleep 1; {loop.load()}")
            for loop in loops
        ]
        assert [process.wait(timeout=60) for process in running] == [0, 0]
        for loop in loops:
            lines = events_of(iolab, tmp_path / f"{loop.name}.iotrace")
            assert sum(line.startswith("D ") for line in lines) == READS + WRITES
    finally:
        for loop in loops:
            loop.detach()


def test_a_file_that_is_there_stays_unless_it_is_named(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "t.iotrace"
    trace.write_text("the user's own")
    words = ("trace", "record", loop.path, "--for", "true", "-o", trace)
    refused = iolab(*words)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert trace.read_text() == "the user's own"
    assert iolab(*words, "--overwrite", trace).returncode == 0
    assert iolab("trace", "show", trace).returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nosuch", "--seconds", "1"), "nosuch is no block device"),
        (("/etc/passwd", "--seconds", "1"), "/etc/passwd is no block device"),
        (("loop0", "--seconds", "soon"), "--seconds soon"),
        (("loop0", "--seconds", "-1"), "--seconds -1"),
        (("loop0", "--seconds", "1", "--buffer", "1 TiB"), "no size of a buffer"),
        (("loop0", "--seconds", "1", "--buffer", "lots"), "--buffer: 'lots' is not a size"),
    ],
)
def test_what_cannot_be_recorded_is_told_and_leaves_no_file(
    iolab: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = iolab("trace", "record", *words, "-o", tmp_path / "t.iotrace")
    assert done.returncode == 1, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "t.iotrace").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nosuch", "--seconds", "1"), "nosuch is no block device"),
        (("loop0", "--seconds", "1", "--buffer", "1k"), "no size of a buffer"),
    ],
)
def test_a_file_that_was_to_be_replaced_stays_if_nothing_is_recorded(
    iolab: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("the user's own")
    before = mine.stat()
    done = iolab("trace", "record", *words, "-o", mine, "--overwrite", mine)
    assert done.returncode == 1, done.stderr
    assert told in done.stderr
    assert (mine.read_text(), mine.stat().st_mtime_ns) == ("the user's own", before.st_mtime_ns)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "no draft is left"


def test_a_name_that_another_program_takes_meanwhile_is_told(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "new.iotrace"
    command = f"rm {trace}; echo mine-now > {trace}"
    done = iolab("trace", "record", loop.path, "--for", command, "-o", trace)
    assert done.returncode == 1
    assert "is not the file any more that was recorded into" in done.stderr
    assert "has" not in done.stdout
    assert trace.read_text() == "mine-now\n"


def test_a_recording_leaves_the_reserve_free(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=20m,mode=755", "t", str(place))
    subprocess.run(mount, check=True)
    try:
        # 5 % of 20 MiB stay free: rule R10 of safety.
        trace, ballast = place / "t.iotrace", place / "ballast"
        fill = f"head -c 19600k /dev/zero > {ballast}"
        words = ("trace", "record", loop.path, "-o", trace, "--for")
        done = iolab(*words, f"{loop.load()}; {fill}; sleep 5")
        assert done.returncode == 1
        assert "could not be written any more" in done.stderr, done.stderr
        assert "of which 1023 KiB stay free" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        assert len(events_of(iolab, trace)) > READS + WRITES, "it is a whole file"
        trace.unlink()
        done = iolab(*words, "true")
        assert done.returncode != 0
        assert re.search(r"nothing was recorded: 8\d\d KiB are free", done.stderr), done.stderr
        assert not trace.exists()
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_changes_of_a_dead_run_are_undone_first(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace = tmp_path / "t.iotrace"
    running = start(loop, trace)
    begun(trace)
    agents = agents_of(running)
    run = re.search(r"trace-[0-9a-f]{12}", " ".join(agents.values()))
    assert run is not None
    kill_all([*reversed(agents), running.pid])
    running.wait(timeout=60)
    try:
        other = tmp_path / "other.iotrace"
        done = iolab("trace", "record", loop.path, "--for", "true", "-o", other)
        assert done.returncode == 2, done.stderr
        assert "iolab restore" in done.stderr
        assert not other.exists()
    finally:
        assert iolab("restore", "--run", run[0]).returncode == 0
    done = iolab("trace", "record", loop.path, "--for", "true", "-o", other)
    assert done.returncode == 0, done.stderr


def test_a_command_that_fails_is_told(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace = tmp_path / "t.iotrace"
    done = iolab("trace", "record", loop.path, "--for", "exit 7", "-o", trace)
    assert done.returncode == 1
    assert f"exit code 7; {trace} has what it did" in done.stderr
    assert iolab("trace", "show", trace).returncode == 0


@pytest.mark.parametrize("change", [": > {0}", "echo hi > {0}", "echo hi >> {0}"])
def test_a_file_that_another_program_changes_meanwhile_is_told(
    iolab: Run, loop: Loop, tmp_path: Path, change: str
) -> None:
    trace = tmp_path / "t.iotrace"
    command = change.format(trace)
    done = iolab("trace", "record", loop.path, "--for", command, "-o", trace)
    assert done.returncode == 1, done.stdout
    assert "another program has changed it meanwhile" in done.stderr


def test_a_signal_to_iolab_alone_is_told_and_a_second_one_ends_the_command(
    loop: Loop, tmp_path: Path
) -> None:
    trace = tmp_path / "t.iotrace"
    process = start(loop, trace, "--for", "exec sleep 60", errors=subprocess.PIPE)
    begun(trace)
    process.terminate()
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any("before its time was over" in str(line) for line in lines)
    assert any("another signal ends it" in str(line) for line in lines)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 1


def test_a_full_disk_ends_the_recording_and_keeps_what_was_written(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=320k,mode=755", "t", str(place)], check=True
    )
    try:
        trace = place / "t.iotrace"
        # A block of 32768 events has some 100 KiB: there is room for two, and each reading of the
        # device has more than one.
        read = f"dd if={loop.path} of=/dev/null bs=512 iflag=direct status=none"
        load = f"for _ in $(seq 24); do {read}; done"
        done = iolab("trace", "record", loop.path, "--for", load, "-o", trace)
        assert done.returncode == 1
        assert "could not be written any more" in done.stderr, done.stderr
        assert "No space left" in done.stderr or "stay free" in done.stderr
        shown = iolab("trace", "show", "-q", trace)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.count("\n") > 100
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_device_that_goes_away_ends_the_recording(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace = tmp_path / "t.iotrace"
    running = start(loop, trace, "--seconds", "50", errors=subprocess.PIPE)
    begun(trace)
    loop.detach()
    _, told = running.communicate(timeout=40)
    assert running.returncode == 1
    assert f"{loop.name} went away" in told
    assert iolab("trace", "show", trace).returncode == 0


def test_ctrl_c_ends_with_a_whole_file(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    trace = tmp_path / "t.iotrace"
    running = start(loop, trace)
    begun(trace)
    subprocess.run(["sh", "-c", loop.load()], check=True)
    os.killpg(running.pid, 2)
    assert running.wait(timeout=40) == 0
    shown = iolab("trace", "show", "-q", trace)
    assert (shown.returncode, shown.stderr) == (0, ""), "the file was closed"
    assert "dd" in shown.stdout


def test_only_root_records(loop: Loop, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "iolab.cli", "trace", "record", loop.path, "-o", "/tmp/never"]
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    if "Permission denied" in done.stderr or "No module" in done.stderr:
        pytest.skip("nobody cannot reach the sources here")
    assert done.returncode != 0
    assert "root" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("/tmp/never").exists()


def start(loop: Loop, trace: Path, *words: str, errors: int | None = None) -> subprocess.Popen[str]:
    """A recording in the background."""
    argv = [sys.executable, "-m", "iolab.cli", "trace", "record", loop.path, *words, "-o", trace]
    return subprocess.Popen(list(map(str, argv)), text=True, stderr=errors, start_new_session=True)


def begun(trace: Path) -> None:
    """Waits until events are recorded: the head and the first note are written."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if trace.exists() and trace.stat().st_size > 0:
            time.sleep(0.2)
            return
        time.sleep(0.02)
    raise AssertionError("the recording did not begin")


def kill_once(loop: Loop, trace: Path, moment: float) -> tuple[str, str]:
    """Kills all of a recording `moment` s after its start; its run, and what is wrong then."""
    before = instances()
    # Some have an instance of processes, too, and some are rings of perf events.
    layers = ("--events", "block,syscalls,ext4", "--pid", str(os.getpid()))
    more = ((), layers, ("--backend", "perf", *layers))[int(moment * 1000) % 3]
    running = start(loop, trace, *more)
    load = subprocess.Popen(
        ["sh", "-c", f"while :; do {loop.load()}; done"], start_new_session=True
    )
    try:
        time.sleep(moment)
        agents = agents_of(running)
        words = " ".join(agents.values())
        kill_all([*reversed(agents), running.pid])
        running.wait(timeout=60)
        left = [pid for pid in agents if is_alive(pid)]
    finally:
        os.killpg(load.pid, 9)
        load.wait()
    run = re.search(r"trace-[0-9a-f]{12}", words)
    argv = [sys.executable, "-m", "iolab.cli", "restore", *(["--run", run[0]] if run else [])]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=100)
    problems = [f"process {pid} is left" for pid in left]
    if done.returncode:
        problems.append(done.stdout + done.stderr)
    problems += [f"instance {name} is left" for name in instances() - before]
    return (run[0] if run else ""), "; ".join(problems)


def settings_of(loop: Loop) -> dict[str, str]:
    """Settings of the device; of others other tests may change some meanwhile."""
    return {key: text for key, text in machine_state().items() if key.startswith(f"{loop.name}.")}


def is_alive(pid: int) -> bool:
    """Tell whether a process goes on."""
    for _ in range(100):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        if text.rpartition(")")[2].split()[0] in "ZX":
            return False
        time.sleep(0.02)
    return True


def test_a_killed_recording_leaves_nothing_but_a_readable_file(
    iolab: Run, loop: Loop, tmp_path: Path
) -> None:
    before = settings_of(loop)
    moments = random.Random(17)
    for number in range(KILLS):
        trace = tmp_path / f"{number}.iotrace"
        _, problem = kill_once(loop, trace, moments.uniform(0.2, 4.0))
        assert not problem, problem
        if trace.exists() and trace.stat().st_size > 0:
            assert iolab("trace", "show", "-q", trace).returncode == 0
    assert settings_of(loop) == before


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        device = Loop(Path(place), "kill")
        chosen = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 99)
        n_kills, n_bad = int(sys.argv[1]) if len(sys.argv) > 1 else 30, 0
        for count in range(n_kills):
            seconds = chosen.uniform(0.05, 4.0)
            left_behind = Path(place) / f"{count}.iotrace"
            _, wrong = kill_once(device, left_behind, seconds)
            if left_behind.exists() and left_behind.stat().st_size > 0:
                argv = [sys.executable, "-m", "iolab.cli", "trace", "show", "-q", str(left_behind)]
                shown = subprocess.run(argv, capture_output=True, text=True, check=False)
                wrong += shown.stderr if shown.returncode else ""
            n_bad += bool(wrong)
            print(f"kill {count + 1:2} after {seconds:.2f} s: {wrong or 'ok'}", flush=True)
        device.detach()
        print(f"{n_kills - n_bad} of {n_kills} left nothing")
        sys.exit(n_bad > 0)
