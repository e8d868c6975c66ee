"""Time and memory that the analysis of 100,000 stored trials takes.

A study of 100 treatments (four schedulers, five record sizes, five queue lengths) in 1,000
rounds is made through the store's own interface. Every trial has what real ones of a random-read
workload have: a latency histogram of some hundred buckets, throughput over time that is long
enough to be classified, a worker, and 111 facts of the machine, some of which change from trial to
trial. Then `iolab report` runs as a process of its own: CPU and wall time, and its
greatest resident memory. The same of `iolab export`, which writes every value. The store has 1 GB
and takes minutes to make; ``--keep`` leaves it.

``make bench``, or ``python benches/analysis.py [--trials N] [--dir DIR] [--keep]``; exits 1 if a
bound is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from iolab import units
from iolab.run.core import load_core
from iolab.run.record import derive
from iolab.store.db import STORE_NAME, Origin, Store
from iolab.study.load import parse_study
from iolab.study.plan import Plan, Trial, make_plan

TRIALS = 100_000
SECONDS_MAX = 60.0
EXPORT_SECONDS_MAX = 10.0
MEMORY_BYTES_MAX = 2 << 30
EXPORTED = ("csv", "json", *(("parquet",) if find_spec("pyarrow") else ()))
"""Endings of the files of values."""
CPUS = 2
SLICE_NS = 100_000_000
SLICES = {"random-read": 48}
"""Slices of throughput over time by operation: enough that the shape of a trial is classified."""
SUB_BUCKET_BITS = 7
BUCKETS = 240
STUDY = """
name = "large"
testbed = "loop:1g"
seed = 11
rounds = {rounds}
margin = "5%"
compare = "scheduler"
[factors]
scheduler = ["none", "mq-deadline", "bfq", "kyber"]
record_size = ["4k", "16k", "64k", "256k", "1m"]
nr_requests = ["16", "32", "64", "128", "256"]
[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["random-read"]
file_size = "64m"
"""
SPEED = {"none": 1.0, "mq-deadline": 1.01, "bfq": 0.9, "kyber": 0.97}
OF_MACHINE = {f"device.loop0.queue.attribute_{i}": str(i * 512) for i in range(80)} | {
    f"cpu.vulnerability.number_{i}": "Mitigation: something that takes a few words"
    for i in range(20)
}
NAMED = {
    "kernel.release": "6.12.0",
    "kernel.version": "Linux version 6.12.0 (gcc 14) #1 SMP PREEMPT_DYNAMIC",
    "cpu.model": "Example processor",
    "cpu.count": "2",
    "memory.total": "24684092 kB",
    "os.name": "Example Linux 12",
    "virtualization": "none",
}


def main() -> int:
    """Make the store, analyse it in a process of its own, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--dir", type=Path, help="where the store is made (default: temporary)")
    parser.add_argument(
        "--keep", action="store_true", help="leave the store, use it if it is there"
    )
    arguments = parser.parse_args()
    folder = arguments.dir or Path(tempfile.mkdtemp(prefix="iolab-bench-"))
    try:
        database = folder / STORE_NAME
        if not (arguments.keep and database.exists()):
            make_store(database, arguments.trials)
        return analyse(folder, arguments.trials)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)


def make_store(database: Path, trials: int) -> None:
    """Run the world once, trial by trial, as a campaign would."""
    began = time.monotonic()
    treatments = len(make_plan(parse_study(STUDY.format(rounds=1))).treatments)
    rounds = max(1, trials // treatments)
    plan = make_plan(parse_study(STUDY.format(rounds=rounds)))
    core = load_core()
    with Store.create(database, plan, Origin("0.1.0", "loop:1g")) as store:
        session = store.begin_session("bench", iolab_version="0.1.0", testbed={"class": "B"})
        planned = list(plan.trials(rounds))
        store.add_trials(planned)
        for trial in planned:
            store.commit_record(trial.trial_id, session, derive(record_of(trial, plan), core))
    took = time.monotonic() - began
    size = database.stat().st_size
    print(f"made {len(planned):,} trials in {took:.0f} s: {units.format_bytes_rounded(size)}")


def record_of(trial: Trial, plan: Plan) -> dict[str, Any]:
    """Records as the agent sends them."""
    rng = random.Random(f"{plan.seed} {trial.ordinal}")
    levels = dict(trial.levels)
    started = 1_760_000_000_000_000_000 + trial.ordinal * 10_000_000_000
    return {
        "trial": trial.trial_id,
        "status": "ok",
        "error": None,
        "started_at_unix_ns": started,
        "elapsed_ns": 8_000_000_000,
        "facts": facts_of(trial, levels, rng),
        "knobs": {"scheduler": levels["scheduler"], "nr_requests": levels["nr_requests"]},
        "warnings": [],
        "actions": [],
        "phases": [_phase(name, levels, rng) for name in SLICES],
    }


def facts_of(trial: Trial, levels: dict[str, str], rng: random.Random) -> dict[str, str]:
    """Facts as read before a trial: most never change, some always do."""
    return (
        OF_MACHINE
        | NAMED
        | {
            "device.loop0.queue.scheduler": f"[{levels['scheduler']}]",
            "device.loop0.queue.nr_requests": levels["nr_requests"],
            "load.average": f"{rng.uniform(0, 2):.2f} 1.00 1.00 2/159 {trial.ordinal}",
            "memory.available": f"{rng.randrange(22_000_000, 23_000_000)} kB",
        }
    )


def _phase(name: str, levels: dict[str, str], rng: random.Random) -> dict[str, Any]:
    size = units.parse_bytes(levels["record_size"])
    noise = math.exp(rng.gauss(0, 0.03))
    rate = 60e6 * (size / 4096) ** 0.5 * SPEED[levels["scheduler"]] * noise
    slices = SLICES[name]
    moved = [int(rate / 10 * math.exp(rng.gauss(0, 0.05))) for _ in range(slices)]
    ops = [max(1, part // size) for part in moved]
    elapsed = slices * SLICE_NS
    latency = size / rate * 1e9
    histogram = _histogram(sum(ops), latency, rng)
    is_read = name != "write"
    total = sum(moved)
    return {
        "name": name,
        "started_ns": 0,
        "elapsed_ns": elapsed,
        "kind": "read" if name != "write" else "write",
        "access": "direct",
        "io_size_bytes": size,
        "cpu": {"user_ns": elapsed // 50, "system_ns": elapsed // 8},
        "harness_ns_per_op": 85.0,
        "devices": [
            {
                "name": "loop0",
                "read_bytes": total if is_read else 0,
                "write_bytes": 0 if is_read else total,
                "flushed_write_bytes": 0,
            }
        ],
        "own_read_bytes": total if is_read else 0,
        "tenants": [
            {
                "name": "main",
                "kind": "read" if is_read else "write",
                "access": "direct",
                "io_size_bytes": size,
                "began_ns": 0,
                "alike": 0,
                "share": None,
                "asked_ops": None,
                "workers": [
                    {
                        "worker": 0,
                        "ops": sum(ops),
                        "bytes": total,
                        "read_bytes": total if is_read else 0,
                        "write_bytes": 0 if is_read else total,
                        "elapsed_ns": elapsed,
                        "gap_ns_max": int(latency * 40),
                        "late_ops": None,
                        "errors": 0,
                        "first_error": None,
                    }
                ],
                "service": {"read": None, "write": None, "sync": None}
                | {"read" if is_read else "write": histogram},
                "response": None,
                "series": {
                    "interval_ns": SLICE_NS,
                    "ops": ops,
                    "bytes": moved,
                    "latency_ns_max": [int(latency * rng.uniform(3, 40)) for _ in moved],
                },
                "depth_reached_mean": 1.0,
            }
        ],
        "warnings": [],
    }


def _histogram(count: int, latency: float, rng: random.Random) -> dict[str, Any]:
    """A histogram with a long tail: many values in few buckets, few in many."""
    first = _bucket(latency)
    left, counts = count, list[list[int]]()
    for index in range(first, first + BUCKETS):
        if left <= 0:
            break
        here = max(1, min(left, int(left * rng.uniform(0.02, 0.06))))
        counts.append([index, here])
        left -= here
    if left > 0:
        counts[0][1] += left
    return {
        "unit": "ns",
        "count": count,
        "min": int(latency),
        "max": int(latency * 40),
        "sum": int(count * latency * 1.2),
        "sub_bucket_bits": SUB_BUCKET_BITS,
        "counts": counts,
    }


def _bucket(value: float) -> int:
    """Index of a value's bucket: powers of two, each in equal parts."""
    whole = max(1, int(value))
    power = whole.bit_length() - 1
    if power < SUB_BUCKET_BITS:
        return whole
    sub = (whole >> (power - SUB_BUCKET_BITS)) - (1 << SUB_BUCKET_BITS)
    return ((power - SUB_BUCKET_BITS + 1) << SUB_BUCKET_BITS) + sub


def analyse(folder: Path, trials: int) -> int:
    """Run `iolab report` on two processors and compare with the bounds."""
    out = folder / "report"
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:CPUS]))
    program = [sys.executable, "-m", "iolab.cli", "report", str(folder), "--out", str(out)]
    wall_s, cpu_s, peak_bytes, text = measured(["taskset", "-c", cpus, *program])
    first = text.splitlines()[0] if text else ""
    sizes = {path.name: path.stat().st_size for path in sorted(out.iterdir())}
    is_ok = wall_s <= SECONDS_MAX and peak_bytes <= MEMORY_BYTES_MAX
    print(f"analysis of {trials:,} trials on {CPUS} processors ({first[:60]})")
    print(f"{'wall time':14}{wall_s:10.1f} s    bound {SECONDS_MAX:.0f} s")
    print(f"{'CPU time':14}{cpu_s:10.1f} s")
    print(f"{'peak memory':14}{peak_bytes / (1 << 20):10.0f} MiB  bound 2048 MiB")
    for name, size in sizes.items():
        print(f"{name:14}{size / (1 << 20):10.2f} MiB")
    for ending in EXPORTED:
        is_ok = export(folder, cpus, ending) and is_ok
    print("ok" if is_ok else "BELOW THE BAR")
    return 0 if is_ok else 1


def export(folder: Path, cpus: str, ending: str) -> bool:
    """Write every value in a process of its own; tells whether that is quick enough."""
    file = folder / f"values.{ending}"
    file.unlink(missing_ok=True)
    program = [sys.executable, "-m", "iolab.cli", "export", str(folder), "--out", str(file)]
    wall_s, cpu_s, peak_bytes, text = measured(["taskset", "-c", cpus, *program])
    print(f"export of the same study ({text.strip().rpartition(': ')[2]})")
    print(f"{'wall time':14}{wall_s:10.1f} s    bound {EXPORT_SECONDS_MAX:.0f} s")
    print(f"{'CPU time':14}{cpu_s:10.1f} s")
    print(f"{'peak memory':14}{peak_bytes / (1 << 20):10.0f} MiB")
    print(f"{file.name:14}{file.stat().st_size / (1 << 20):10.2f} MiB")
    return wall_s <= EXPORT_SECONDS_MAX


def measured(command: Sequence[str]) -> tuple[float, float, int, str]:
    """Wall and CPU seconds, greatest resident bytes and output of a process."""
    probe = (
        "import json,resource,subprocess,sys,time;"
        "began=time.monotonic();"
        "done=subprocess.run(sys.argv[1:],stdout=subprocess.PIPE,text=True,check=False);"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([time.monotonic()-began,used.ru_utime+used.ru_stime,"
        "used.ru_maxrss*1024,done.returncode,done.stdout]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *command], check=True, capture_output=True, text=True
    )
    wall_s, cpu_s, peak_bytes, code, text = json.loads(done.stdout)
    if code != 0:
        sys.exit(f"{' '.join(command)} failed ({code}): {done.stderr[-500:]}")
    return wall_s, cpu_s, peak_bytes, text


if __name__ == "__main__":
    sys.exit(main())
