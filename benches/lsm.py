"""The model of RocksDB (`crates/iolab-lsm`) beside the library itself: bytes, compactions, ranking.

For YCSB's A, B and F and three numbers of records: bytes written to files for each byte that was
given, and compactions, of RocksDB in a directory and of the model on a simulated disk.
Then the order of four options by bytes written, for the middle size of A. Bars: bytes within 20 %,
compactions within 30 %, the same order.

``python benches/lsm.py [--scratch DIR] [--rate N]``; needs the library of RocksDB and iolab in the
path. Run it on a machine that does nothing else: records are loaded as fast as both can, and how
many tables a compaction finds, and so their number, follows from how fast it is. The clients after
it are paced (`-target`). Buffers and levels are small, so that the data fit on any machine.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ycsb import library

SIZES: Final = (50_000, 100_000, 200_000)
MIXES: Final = {
    "a": ("readproportion=0.5", "updateproportion=0.5"),
    "b": ("readproportion=0.95", "updateproportion=0.05"),
    "f": ("readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5"),
}
BASE: Final = {
    "write_buffer_size": "2097152",
    "max_write_buffer_number": "4",
    "min_write_buffer_number_to_merge": "1",
    "level0_file_num_compaction_trigger": "4",
    "target_file_size_base": "2097152",
    "max_bytes_for_level_base": "8388608",
    "compression_per_level": "kNoCompression",
    "max_background_jobs": "4",
}
OPTIONS: Final = {
    "compression": {"compression_per_level": "kZSTD"},
    "write buffer x 4": {"write_buffer_size": "8388608"},
    "multiplier 4": {"max_bytes_for_level_multiplier": "4"},
    "universal": {"compaction_style": "kCompactionStyleUniversal"},
}
STACK: Final = """
name = "lsm-bench"
device.profile = "{device}"

[files]
fs = "ext4"
memory = "1g"
"""
BAR_BYTES, BAR_COMPACTIONS = 0.20, 0.30

Facts = dict[str, float]


def words(mix: str, records: int, options: dict[str, str], rate: int) -> list[str]:
    """The command line of a run, without its place."""
    pairs = [
        *("workload=core", f"recordcount={records}", f"operationcount={records}"),
        *(*MIXES[mix], "requestdistribution=zipfian"),
        *(f"rocksdb.option.{name}={value}" for name, value in options.items()),
    ]
    words = ["run", "rocksdb", "-target", str(rate), "-threads", "1"]
    return [*words, *(word for pair in pairs for word in ("-p", pair))]


def measured(scratch: Path, line: list[str]) -> Facts:
    """Values that the store told after a run."""
    from iolab.store.db import Store

    stored = scratch / "stored"
    for old in (stored, scratch / "db"):
        shutil.rmtree(old, ignore_errors=True)
    argv = ["iolab", "ycsb", *line, "--out", str(stored)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\n{done.stderr}")
    with Store.open_reader(stored / "study.db") as store:
        ((_, record),) = store.contents.records()
    (tenant,) = record["phases"][0]["tenants"]
    found = tenant.get("kv")
    return {fact["name"]: fact["value"] for fact in (found.get("facts", ()) if found else ())}


def both(scratch: Path, stack: Path, line: list[str]) -> tuple[Facts, Facts]:
    """The same line on RocksDB and on its model."""
    real = measured(scratch, [*line, "-p", f"rocksdb.dir={scratch}/db"])
    model = measured(scratch, [*line, "--on", f"sim:{stack}"])
    return real, model


def show(name: str, real: Facts, model: Facts) -> tuple[bool, bool]:
    """Print a row; tell whether bytes and compactions are near."""
    bytes_real, bytes_model = real["write_amplification"], model["write_amplification"]
    count_real, count_model = real["compactions"], model["compactions"]
    off_bytes = bytes_model / bytes_real - 1
    off_count = count_model / count_real - 1 if count_real else float(count_model > 0)
    print(
        f"{name:24} {bytes_real:8.2f} {bytes_model:8.2f} {off_bytes:+7.0%}   "
        f"{count_real:8.0f} {count_model:8.0f} {off_count:+7.0%}   "
        f"{real['flushes']:7.0f} {model['flushes']:7.0f}",
        flush=True,
    )
    return abs(off_bytes) <= BAR_BYTES, abs(off_count) <= BAR_COMPACTIONS


def main() -> int:
    """Print both tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, help="directory for the databases")
    parser.add_argument("--rate", type=int, default=10_000, help="operations per second")
    parser.add_argument(
        "--device", default="nvme-pc601-256", help="profile of the simulated device"
    )
    given = parser.parse_args()
    if library() is None:
        print("benches/lsm.py: left out, it needs librocksdb")
        return 0
    scratch = Path(tempfile.mkdtemp(prefix="iolab-lsm-", dir=given.scratch))
    stack = scratch / "stack.toml"
    stack.write_text(STACK.format(device=given.device), encoding="utf-8")
    head = f"{'':24} {'bytes per byte given':>26}   {'compactions':>26}   {'flushes':>15}"
    print(f"{head}\n{'':24} {'RocksDB':>8} {'model':>8} {'':7}   {'RocksDB':>8} {'model':>8}")
    near: list[tuple[bool, bool]] = []
    try:
        for mix in MIXES:
            for records in SIZES:
                pair = both(scratch, stack, words(mix, records, BASE, given.rate))
                near.append(show(f"{mix.upper()}, {records} records", *pair))
        orders: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for name, changed in OPTIONS.items():
            line = words("a", SIZES[1], {**BASE, **changed}, given.rate)
            pair = both(scratch, stack, line)
            near.append(show(name, *pair))
            for order, facts in zip(orders, pair, strict=True):
                order[name] = facts["write_amplification"]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    real, model = (sorted(order, key=order.__getitem__) for order in orders)
    print(f"by bytes written, the least first: RocksDB {', '.join(real)}")
    print(f"                                   model   {', '.join(model)}")
    cases = near[: len(near) - len(OPTIONS)]
    met = {
        f"bytes within {BAR_BYTES:.0%}": all(bytes_near for bytes_near, _ in cases),
        f"compactions within {BAR_COMPACTIONS:.0%}": all(count_near for _, count_near in cases),
        "the same order of options": real == model,
    }
    for bar, is_met in met.items():
        print(f"{'met' if is_met else 'MISSED':7} {bar}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
