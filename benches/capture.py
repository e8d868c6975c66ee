"""Cost of recording block events: random reads of a loop device in memory, recorded or not.

Side by side, in random order in each round: no tracing, issues and completions that the kernel
writes into its buffer and nobody reads, a bare reader that moves raw pages into a file and looks at
nothing, `iolab trace record` of issues and completions, and of the full set, and
of the same events `perf record` (if there is one) and a reader of the kernel's text pipe. Told
are operations per second, CPU time of the whole machine per operation beyond that without tracing
(median over rounds), CPU time of the recorder, and lost events. ``make bench``, or ``python
benches/capture.py [--seconds N] [--rounds N] [--rate N] [--only KIND...]``; needs root, fio, and an
agent built with ``--release`` (IOLAB_AGENT).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZE_MIB = 256
EVENTS = (
    *("block_bio_queue", "block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete"),
    *("block_bio_backmerge", "block_bio_frontmerge", "block_split", "block_bio_remap"),
)
"""Events that the bare reader records: the events that reads of a device have."""
BASIC_EVENTS = ("block_rq_issue", "block_rq_complete")
"""Events that are written and not read: the kernel's own part of recording these."""
BUFFER_KIB = 8192
EXTRA_US_MAX = {"full": 1.6, "issue-complete": 0.4}
"""Bars: most CPU time per operation beyond none, at a rate that the machine can serve."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of fio."""

    iops: float
    busy_s: float
    """CPU time of the whole machine."""
    operations: int
    lost: int
    recorder_s: float


def busy_s() -> float:
    """CPU time that all processors have worked."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) * _TICK_S


def fio(device: str, seconds: float, rate: int | None) -> tuple[float, int]:
    """Operations per second and operations of random reads of a device."""
    words = [
        *("fio", "--output-format=json", "--name=load", f"--filename={device}", "--direct=1"),
        *("--rw=randread", "--bs=4k", "--ioengine=io_uring", "--iodepth=16", "--numjobs=2"),
        *("--group_reporting", "--time_based", f"--runtime={seconds}"),
    ]
    if rate is not None:
        words.append(f"--rate_iops={rate // 2}")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return job["iops"], job["total_ios"]


@contextlib.contextmanager
def loop_device() -> Generator[str, None, None]:
    """A loop device whose image lies in memory; removed at the end."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="iolab-bench-") as folder:
        image = Path(folder) / "image"
        subprocess.run(["truncate", "-s", f"{SIZE_MIB}M", image], check=True)
        words = ["losetup", "--find", "--show", image]
        device = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        try:
            words = ["dd", "if=/dev/zero", f"of={device}", "bs=1M", f"count={SIZE_MIB}"]
            subprocess.run([*words, "oflag=direct", "status=none"], check=True)
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


class BareReader:
    """Moves raw pages of all CPUs, or the kernel's text, into a file, from a thread of its own."""

    def __init__(self, device: str, folder: Path, kind: str) -> None:
        self._mounted = folder / "tracefs"
        self._mounted.mkdir()
        subprocess.run(["mount", "-t", "tracefs", "none", self._mounted], check=True)
        self._instance = self._mounted / "instances" / f"iolab-bench-{os.getpid()}"
        self._instance.mkdir()
        self._write("trace_clock", "mono")
        self._write("buffer_size_kb", str(BUFFER_KIB))
        for event in BASIC_EVENTS if kind == "unread" else EVENTS:
            if (self._instance / "events/block" / event).is_dir():
                self._write(f"events/block/{event}/filter", _filter(device))
                self._write(f"events/block/{event}/enable", "1")
        self._stopped = threading.Event()
        self._file = (folder / "raw").open("wb")
        ways = {"bare": self._read, "text pipe": self._read_text, "unread": self._read_nothing}
        self._thread = threading.Thread(target=ways[kind])
        self._thread.start()
        self.cpu_s = 0.0
        self.lost = 0
        self._is_read = kind != "unread"

    def _write(self, name: str, value: str) -> None:
        (self._instance / name).write_text(value)

    def _read(self) -> None:
        import resource

        places = sorted(self._instance.glob("per_cpu/cpu*/trace_pipe_raw"))
        flags = os.O_RDONLY | os.O_NONBLOCK
        pipes = [os.open(place, flags) for place in places]
        ends = os.pipe()
        while True:
            is_last = self._stopped.is_set()
            for pipe in pipes:
                with contextlib.suppress(BlockingIOError):
                    while count := os.splice(pipe, ends[1], 16 << 12):
                        while count > 0:
                            count -= os.splice(ends[0], self._file.fileno(), count)
            if is_last:
                break
            select.select([], [], [], 0.02)
        used = resource.getrusage(resource.RUSAGE_THREAD)
        self.cpu_s = used.ru_utime + used.ru_stime
        for descriptor in (*pipes, *ends):
            os.close(descriptor)

    def _read_nothing(self) -> None:
        self._stopped.wait()

    def _read_text(self) -> None:
        import resource

        pipe = os.open(self._instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        while True:
            is_last = self._stopped.is_set()
            with contextlib.suppress(BlockingIOError):
                while text := os.read(pipe, 1 << 16):
                    self._file.write(text)
            if is_last:
                break
            select.select([], [], [], 0.02)
        used = resource.getrusage(resource.RUSAGE_THREAD)
        self.cpu_s = used.ru_utime + used.ru_stime
        os.close(pipe)

    def stop(self) -> None:
        """End, count what was lost, and remove everything."""
        self._write("tracing_on", "0")
        self._stopped.set()
        self._thread.join()
        self._file.close()
        for stats in self._instance.glob("per_cpu/cpu*/stats"):
            for line in stats.read_text().splitlines():
                name, _, value = line.partition(":")
                if self._is_read and name in ("overrun", "commit overrun", "dropped events"):
                    self.lost += int(value)
        self._write("events/enable", "0")
        self._instance.rmdir()
        subprocess.run(["umount", self._mounted], check=True)


def _filter(device: str) -> str:
    """The kernel's filter of the events of a device."""
    number = Path(device).stat().st_rdev
    return f"dev == {os.major(number) << 20 | os.minor(number)}"


@contextlib.contextmanager
def perf_recording(device: str, folder: Path) -> Generator[list[tuple[int, float]], None, None]:
    """Let `perf record` record the same events, each CPU with the same memory."""
    told, out = list[tuple[int, float]](), folder / "perf.data"
    # Mounted for this program alone: tracefs may be mounted nowhere.
    mounted = "mount -t tracefs none /sys/kernel/tracing; "
    words = ["unshare", "--mount", "sh", "-c", mounted + 'exec "$@"', "sh"]
    words += ["perf", "record", "-q", "-a", "-m", f"{BUFFER_KIB}K", "-o", str(out)]
    for event in EVENTS:
        words += ["-e", f"block:{event}", "--filter", _filter(device)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    select.select([], [], [], 1.0)
    try:
        yield told
    finally:
        process.send_signal(2)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    stats = subprocess.run(
        ["perf", "report", "--stats", "-i", str(out)], capture_output=True, text=True, check=False
    ).stdout
    found = re.findall(r"LOST_SAMPLES events:\s+(\d+)|LOST events:\s+(\d+)", stats)
    if not out.exists() or not stats:
        raise SystemExit(f"perf record ended with {process.returncode}, and left no recording")
    told.append((sum(int(a or b) for a, b in found), used.ru_utime + used.ru_stime))


@contextlib.contextmanager
def recording(
    kind: str, device: str, folder: Path
) -> Generator[list[tuple[int, float]], None, None]:
    """Record while the block runs; afterwards the list holds lost events and the CPU time."""
    told = list[tuple[int, float]]()
    if kind == "none":
        yield told
        told.append((0, 0.0))
        return
    if kind == "perf record":
        with perf_recording(device, folder) as told:
            yield told
        return
    if kind in ("bare", "text pipe", "unread"):
        reader = BareReader(device, folder, kind)
        try:
            yield told
        finally:
            reader.stop()
        told.append((reader.lost, reader.cpu_s))
        return
    out = folder / "t.iotrace"
    words = [sys.executable, "-m", "iolab.cli", "trace", "record", device, "--events", kind]
    process = subprocess.Popen(
        [*words, "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        _wait_until_recording(process, out)
        yield told
    finally:
        process.send_signal(2)
        text, complaint = process.communicate(timeout=60)
    if process.returncode not in (0, 130):
        raise SystemExit(f"iolab trace record: {complaint}")
    told.append(_facts(text))


def _wait_until_recording(process: subprocess.Popen[str], out: Path) -> None:
    """The head of the file is written when events are about to be recorded."""
    while process.poll() is None and not (out.exists() and out.stat().st_size):
        select.select([], [], [], 0.05)
    select.select([], [], [], 0.2)


def _facts(text: str) -> tuple[int, float]:
    words = text.replace(",", "").split()
    lost = words[words.index("lost;") - 1]
    return 0 if lost == "none" else int(lost), float(words[words.index("took") + 1])


def measure(kind: str, device: str, options: argparse.Namespace) -> Measured:
    """One run of fio, recorded in one way."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm", prefix="iolab-bench-") as name,
        recording(kind, device, Path(name)) as told,
    ):
        before = busy_s()
        iops, operations = fio(device, options.seconds, options.rate)
        spent = busy_s() - before
    ((lost, recorder_s),) = told
    return Measured(iops, spent, operations, lost, recorder_s)


def main() -> int:
    """Measure all kinds, and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, help="operations per second (as many as possible)")
    kinds = ["none", "unread", "bare", "issue-complete", "full", "text pipe"]
    kinds += ["perf record"] if shutil.which("perf") else []
    parser.add_argument("--only", nargs="+", choices=kinds, help="kinds to measure beside none")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        print("skipped: needs root and fio")
        return 0
    if options.only is not None:
        kinds = ["none", *(kind for kind in kinds[1:] if kind in options.only)]
    found: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    with loop_device() as device:
        for number in range(options.rounds):
            order = random.Random(number).sample(kinds, len(kinds))
            for kind in order:
                found[kind].append(measure(kind, device, options))
    base_iops = statistics.median(one.iops for one in found["none"])
    print(
        f"{'recorded':16}{'ops/s':>10}{'lowest':>10}{'highest':>10}{'change':>9}{'extra us/op':>13}"
        f"{'recorder':>10}{'lost':>8}"
    )
    failed = False
    for kind in kinds:
        runs = found[kind]
        iops = statistics.median(one.iops for one in runs)
        extra_us = statistics.median(map(_extra_us, runs, found["none"]))
        recorder = statistics.median(one.recorder_s for one in runs) / options.seconds
        lost = sum(one.lost for one in runs)
        print(
            f"{kind:16}{iops:>10.0f}{min(one.iops for one in runs):>10.0f}"
            f"{max(one.iops for one in runs):>10.0f}{iops / base_iops - 1:>9.1%}{extra_us:>13.2f}"
            f"{recorder:>10.1%}{lost:>8}"
        )
        bar = EXTRA_US_MAX.get(kind)
        failed |= bar is not None and (lost > 0 or (options.rate is not None and extra_us > bar))
    print("bars: none lost; with --rate 100000 at most 1.6 us per operation (full), 0.4 us")
    return int(failed)


def _extra_us(one: Measured, base: Measured) -> float:
    """CPU time per operation beyond that of the run without tracing in the same round."""
    each = [run.busy_s / max(1, run.operations) * 1e6 for run in (one, base)]
    return each[0] - each[1]


if __name__ == "__main__":
    sys.exit(main())
