r"""Record the order in which a Linux scheduler issues requests.

Needs root and fio. Attaches a loop device of its own to a file that it makes, runs a fio job on it
(or on a file system on it) under a scheduler with four driver tags, and writes the kernel's block
events as NAME.csv.gz and NAME.json, in the format of tests/golden/dispatch. Everything that it
makes or changes (file, loop device, trace instance, mounts) it removes again, also after an error
or an interrupt.

    python tools/record_dispatch.py NAME --scheduler mq-deadline --tunable fifo_batch=4 \
        --workload JOB.fio --output DIRECTORY [--runtime 4] [--model] [--tags 4] [--slots N]
        [--not-rotational] [--file-system ext4]

I/O priorities are those of the job (`prioclass`, `prio`). What was asked stands in NAME.json.
Times are those of the kernel's text output, microseconds; their order is the kernel's own. With
--model the file lies behind a service-time model of a disk (tools/slow_file.py), without it in
DIRECTORY, and nothing is known of its device.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from slow_disk import attached, slow_disk

EVENTS: Final = {
    "block_bio_queue": "Q",
    "block_getrq": "G",
    "block_rq_insert": "I",
    "block_rq_issue": "D",
    "block_rq_complete": "C",
    "block_rq_requeue": "R",
    "block_bio_backmerge": "M",
    "block_bio_frontmerge": "F",
    "block_rq_merge": "A",
    "block_split": "X",
}
HEADER: Final = "ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu"
DRIVER_TAGS: Final = 4
SIZE_MIB: Final = 512
BUFFER_KIB: Final = 65_536

_LINE: Final = re.compile(
    r"^\s*.+-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<s>\d+)\.(?P<us>\d{6}): "
    r"(?P<event>block_\w+): \d+,\d+ (?P<rwbs>\S+) (?P<rest>.*)$"
)
_RANGE: Final = re.compile(r"(?P<sector>\d+) \+ (?P<length>\d+)")
_PRIORITY: Final = re.compile(r"\+ \d+ (?P<class>none|rt|be|idle),\d+,(?P<level>\d+)")
_CLASSES: Final = {"none": 0, "rt": 1, "be": 2, "idle": 3}


def csv_rows(text: str) -> Iterator[str]:
    """Turn the kernel's text into rows; times count from the first event."""
    first: int | None = None
    for line in text.splitlines():
        found = _LINE.match(line)
        place = _RANGE.search(found["rest"]) if found else None
        letter = EVENTS.get(found["event"]) if found else None
        if not found or not place or not letter:
            continue
        at = (int(found["s"]) * 1_000_000 + int(found["us"])) * 1_000
        first = at if first is None else first
        priority = _PRIORITY.search(found["rest"])
        packed = ""
        if priority and letter in "IDC":
            packed = f"{_CLASSES[priority['class']] << 13 | int(priority['level']):#06x}"
        yield (
            f"{at - first},{letter},{place['sector']},{place['length']},{found['rwbs']},"
            f"{packed},{found['pid']},{int(found['cpu'])}"
        )


class Recorder:
    """One recording; `undo` removes what was made."""

    def __init__(self, arguments: argparse.Namespace, undo: contextlib.ExitStack) -> None:
        """Remember what to do and where to put the cleaning up."""
        self.arguments = arguments
        self.undo = undo
        self.tags = DRIVER_TAGS

    def run(self) -> dict[str, Any]:
        """Record and describe; the rows lie under "rows"."""
        folder = Path(self.undo.enter_context(tempfile.TemporaryDirectory(prefix="iolab-record-")))
        device = self._device()
        queue = Path("/sys/block") / device.name / "queue"
        # With a scheduler, nr_requests is its own pool; only under none it limits the driver.
        (queue / "scheduler").write_text("none")
        (queue / "nr_requests").write_text(str(self.arguments.tags))
        # The kernel has a least number, 4 (Linux include/linux/blkdev.h: BLKDEV_MIN_RQ).
        self.tags = int((queue / "nr_requests").read_text())
        (queue / "rotational").write_text(str(int(not self.arguments.not_rotational)))
        place = self._place(folder, device)
        (queue / "scheduler").write_text(self.arguments.scheduler)
        if self.arguments.slots is not None:
            (queue / "nr_requests").write_text(str(self.arguments.slots))
        for name, value in self.arguments.tunable:
            (queue / "iosched" / name).write_text(value)
        trace = self._trace(folder, device)
        (trace / "tracing_on").write_text("1")
        self._fio(folder, place)
        (trace / "tracing_on").write_text("0")
        rows = list(csv_rows((trace / "trace").read_text()))
        return self._description(queue, trace, rows) | {"rows": rows}

    def _device(self) -> Path:
        if self.arguments.model:
            return self.undo.enter_context(slow_disk())
        path = Path(self.arguments.output) / f".{self.arguments.name}.backing"
        self.undo.callback(path.unlink, missing_ok=True)
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, SIZE_MIB << 20)
        return self.undo.enter_context(attached(path.absolute()))

    def _place(self, folder: Path, device: Path) -> str:
        """Return the line of the job that says where: the device, or a file system on it."""
        kind = self.arguments.file_system
        if kind is None:
            return f"filename={device}"
        subprocess.run([f"mkfs.{kind}", "-q", str(device)], check=True)
        mount = folder / "mount"
        mount.mkdir()
        subprocess.run(["mount", "-t", kind, str(device), str(mount)], check=True)
        self.undo.callback(subprocess.run, ["umount", str(mount)], check=False)
        return f"directory={mount}"

    def _trace(self, folder: Path, device: Path) -> Path:
        root = folder / "tracing"
        root.mkdir()
        subprocess.run(["mount", "-t", "tracefs", "iolab", str(root)], check=True)
        self.undo.callback(subprocess.run, ["umount", str(root)], check=False)
        trace = root / "instances" / f"iolab-record-{os.getpid()}"
        trace.mkdir()
        self.undo.callback(trace.rmdir)
        number = device.stat().st_rdev
        kernel_number = os.major(number) << 20 | os.minor(number)
        (trace / "tracing_on").write_text("0")
        (trace / "trace_clock").write_text("mono")
        (trace / "buffer_size_kb").write_text(str(BUFFER_KIB))
        for event in EVENTS:
            (trace / "events/block" / event / "filter").write_text(f"dev == {kernel_number}")
            (trace / "events/block" / event / "enable").write_text("1")
        return trace

    def _fio(self, folder: Path, place: str) -> None:
        job = folder / "job.fio"
        head = f"[global]\n{place}\ndirect=1\ntime_based\nruntime={self.arguments.runtime}\n"
        job.write_text(head + Path(self.arguments.workload).read_text())
        with (folder / "fio.txt").open("w") as output:
            subprocess.run(["fio", str(job)], check=True, stdout=output)

    def _description(self, queue: Path, trace: Path, rows: list[str]) -> dict[str, Any]:
        def read(name: str) -> int:
            return int((queue / name).read_text())

        tunables = {
            path.name: path.read_text().strip() for path in sorted((queue / "iosched").glob("*"))
        }
        lost = 0
        for stats in trace.glob("per_cpu/cpu*/stats"):
            for line in stats.read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("overrun", "commit overrun", "dropped events"):
                    lost += int(value)
        model = {"kind": "hdd", "channels": 1, "scale": 0.2, "size_mib": SIZE_MIB}
        return {
            "name": self.arguments.name,
            "scheduler": self.arguments.scheduler,
            "tunables": tunables,
            "nr_requests": read("nr_requests"),
            "driver_queue_depth": self.tags,
            "hw_queues": len(list((queue.parent / "mq").glob("[0-9]*"))),
            "cpus": os.cpu_count(),
            "kernel": platform.release(),
            "hz": self.arguments.hz,
            "rotational": read("rotational"),
            "max_sectors_kb": read("max_sectors_kb"),
            "lost_events": lost,
            "device_model": model
            if self.arguments.model
            else {"kind": "unknown"} | {"scale": 1.0, "size_mib": SIZE_MIB},
            "workload": Path(self.arguments.workload).read_text(),
            "runtime_s": self.arguments.runtime,
            "asked": {
                "tunables": dict(self.arguments.tunable),
                "slots": self.arguments.slots,
                "tags": self.arguments.tags,
                "file_system": self.arguments.file_system,
            },
            "events": len(rows),
        }


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def main() -> None:
    """Record, then write both files."""
    parser = argparse.ArgumentParser(description="Record a scheduler's order of issues.")
    parser.add_argument("name")
    parser.add_argument("--scheduler", required=True)
    parser.add_argument("--tunable", type=_pair, action="append", default=[], metavar="K=V")
    parser.add_argument("--workload", required=True, metavar="JOB.fio")
    parser.add_argument("--output", default=".", metavar="DIRECTORY")
    parser.add_argument("--runtime", type=int, default=4, metavar="SECONDS")
    parser.add_argument("--hz", type=int, default=250, help="CONFIG_HZ of the kernel (250)")
    parser.add_argument("--tags", type=int, default=DRIVER_TAGS, help="requests at the driver (4)")
    parser.add_argument("--slots", type=int, help="nr_requests of the scheduler; the kernel's")
    parser.add_argument("--not-rotational", action="store_true", help="the queue says 0")
    parser.add_argument("--file-system", metavar="KIND", help="the job's files lie on one: ext4")
    parser.add_argument("--model", action="store_true", help="a disk's service times behind it")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as undo:
        found = Recorder(arguments, undo).run()
    rows = found.pop("rows")
    stem = Path(arguments.output) / arguments.name
    text = "\n".join([HEADER, *rows]) + "\n"
    stem.with_name(f"{stem.name}.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    stem.with_name(f"{stem.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write(f"{len(rows)} events, {found['lost_events']} lost\n")


if __name__ == "__main__":
    main()
