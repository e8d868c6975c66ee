"""Clients of `iolab ycsb` beside a bare loop over the same library, and what they cost themselves.

Rounds in random order: the same records, draws and options, on a directory of tmpfs. The bar is the
lower bound of the ratio, iolab over the loop (`ycsb_bare.c`), pooled over reads alone and over half
updates. The cost of a client is that of `memory`: time of an operation, the map included; and the
time of a run of one operation is its start-up.

``python benches/ycsb.py [--rounds N]``; needs the library of RocksDB, a C compiler, and iolab in
the path. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from paired import bounds

HERE = Path(__file__).parent
RECORDS, OPERATIONS = 100_000, 400_000
READ_PERCENTS = (100, 50)
BAR_RATIO = 0.97
BAR_READ_US, BAR_WRITE_US = 0.5, 1.0
_PLACES = ("/usr/lib", "/usr/lib64", "/usr/local/lib")


def library() -> Path | None:
    """The library of RocksDB, if it is there."""
    found = [path for place in _PLACES for path in Path(place).rglob("librocksdb.so*")]
    return max(found, key=lambda path: path.resolve().name, default=None)


def bare(program: Path, place: Path, read_percent: int) -> float:
    """Operations per second of the loop."""
    words = [program, library(), place, RECORDS, OPERATIONS, read_percent]
    answer = subprocess.run([*map(str, words)], check=True, capture_output=True, text=True)
    return float(answer.stdout)


def clients(store: str, folder: Path, *words: str, operations: int = OPERATIONS) -> float:
    """Operations per second of a run, without opening and closing."""
    argv = [
        *("iolab", "ycsb", "--out", str(folder / "stored"), "run", store, "-p", "workload=core"),
        *("-p", f"rocksdb.dir={folder}/db", "-p", f"operationcount={operations}", *words),
    ]
    answer = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=folder)
    found = dict(re.findall(r"^\[OVERALL\], (.+), (.+)$", answer.stdout, re.MULTILINE))
    database = folder / "stored" / "study.db"
    return _rate(database) or float(found["Throughput(ops/sec)"])


def _rate(database: Path) -> float | None:
    """Operations per second of the timed region alone."""
    from iolab.store.db import Store

    with Store.open_reader(database) as store:
        for _, record in store.contents.records():
            phase = record["phases"][0]
            done = sum(w["ops"] for t in phase["tenants"] for w in t["workers"])
            return done / (phase["elapsed_ns"] / 1e9)
    return None


def compare(rounds: int, scratch: Path) -> bool:
    """Print the ratio for each mix; true if the pooled one keeps the bar."""
    program = scratch / "bare"
    build = ["cc", "-O2", "-o", str(program), str(HERE / "ycsb_bare.c"), "-ldl"]
    subprocess.run(build, check=True)
    ratios: dict[int, list[float]] = {percent: [] for percent in READ_PERCENTS}
    for _ in range(rounds):
        for percent in READ_PERCENTS:
            rates: dict[str, float] = {}
            for name in random.sample(["bare", "iolab"], 2):
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    place = Path(folder)
                    rates[name] = (
                        bare(program, place / "db", percent)
                        if name == "bare"
                        else clients("rocksdb", place, *_mix(percent))
                    )
            ratios[percent].append(rates["iolab"] / rates["bare"])
    for percent, found in ratios.items():
        print(f"rocksdb, {percent:3} % reads: {bounds([*map(math.log, found)])}")
    pooled = bounds([math.log(ratio) for found in ratios.values() for ratio in found])
    print(f"rocksdb, pooled: {pooled} (bar: lower bound >= {BAR_RATIO})")
    return pooled[1] >= BAR_RATIO


def _mix(read_percent: int) -> tuple[str, ...]:
    share = read_percent / 100
    properties = {
        "recordcount": RECORDS,
        "readproportion": share,
        "updateproportion": 1 - share,
        "rocksdb.statistics": "false",
    }
    return tuple(word for name, value in properties.items() for word in ("-p", f"{name}={value}"))


def cost(scratch: Path) -> bool:
    """Print what an operation on a map in memory takes; true if it keeps the bars."""
    is_kept = True
    for name, bar, words in (
        ("read", BAR_READ_US, ("-p", "readproportion=1", "-p", "updateproportion=0")),
        (
            "write",
            BAR_WRITE_US,
            ("-p", "readproportion=0", "-p", "insertproportion=1", "-p", "updateproportion=0"),
        ),
    ):
        rates = []
        for _ in range(5):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                size = ("-p", "recordcount=1000", "-p", "requestdistribution=zipfian")
                operations = 1_000_000 if name == "read" else 300_000
                store = "memory" if name == "read" else "basic"
                quiet = () if store == "memory" else ("-p", "basicdb.verbose=false")
                rates.append(
                    clients(store, Path(folder), *size, *words, *quiet, operations=operations)
                )
        us = 1e6 / max(rates)
        is_kept &= us <= bar
        print(f"client, {name}: {us:.2f} us (bar: <= {bar})")
    return is_kept


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if library() is None or shutil.which("cc") is None:
        print("benches/ycsb.py: left out, it needs librocksdb and a C compiler")
        return 0
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        kept = [cost(Path(scratch)), compare(options.rounds, Path(scratch))]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
