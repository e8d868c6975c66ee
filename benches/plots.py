"""Pictures of large block traces: CPU time, memory and size of the page.

Synthetic traces of a million and of ten million events (five per request, places at random and in
runs) are drawn as a page, as a drawing and as an animation by `iolab trace plot`. ``make bench``,
or ``python benches/plots.py [--events N ...]``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

CPU_S_MAX: Final = {1_000_000: 5.0, 10_000_000: 30.0}
"""Most CPU time of a page by number of events."""
PAGE_BYTES_MAX: Final = 3 << 20
FORMS: Final = {"page": ("t.html",), "drawing": ("t.svg",), "animation": ("a.html", "--animate")}
_MAGIC, _DEVICE = 0x65617407, 8 << 20 | 16
_STEPS: Final = ((1, 0x10), (4, 0x10), (12, 0x10), (7, 0x40), (8, 0x80))
"""Code and category of Q, G, I, D and C (Linux include/uapi/linux/blktrace_api.h)."""
_RECORD: Final = np.dtype(
    [
        *(("magic", "<u4"), ("sequence", "<u4"), ("time", "<u8"), ("sector", "<u8")),
        *(("bytes", "<u4"), ("action", "<u4"), ("pid", "<u4"), ("device", "<u4")),
        *(("cpu", "<u4"), ("error", "<u2"), ("payload", "<u2")),
    ]
)


def write_trace(path: Path, events: int) -> None:
    """Make a trace of blktrace, one file."""
    rng = np.random.default_rng(20240611)
    n_requests = events // len(_STEPS)
    begin = 10**9 + np.cumsum(rng.integers(1, 20_000, n_requests, dtype=np.uint64))
    at_random = rng.integers(0, 1 << 28, n_requests, dtype=np.uint64) * 8
    in_runs = np.arange(n_requests, dtype=np.uint64) * 8
    is_random = rng.random(n_requests) < 0.5
    sector = np.where(is_random, at_random, in_runs)
    direction = np.where(rng.random(n_requests) < 0.6, 1, 2).astype(np.uint32)
    delays = np.cumsum(rng.integers(300, 60_000, (len(_STEPS), n_requests), dtype=np.uint64), 0)
    records = np.zeros((len(_STEPS), n_requests), _RECORD)
    for step, (code, category) in enumerate(_STEPS):
        rows = records[step]
        rows["time"] = begin + delays[step]
        rows["sector"], rows["bytes"] = sector, 4096
        rows["action"] = (np.uint32(category) | direction) << np.uint32(16) | np.uint32(code)
    records = records.reshape(-1)
    records = records[np.argsort(records["time"], kind="stable")]
    records["magic"], records["device"], records["pid"] = _MAGIC, _DEVICE, 1000
    records["sequence"] = np.arange(1, len(records) + 1)
    path.write_bytes(records.tobytes())


def used(words: list[str], folder: Path) -> tuple[float, int]:
    """CPU time and peak memory (bytes) of a command."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def measure(folder: Path, events: int) -> bool:
    """Draw one trace in all forms, and print what that took; tells whether the bars are met."""
    # In a process of its own: a child's peak memory begins with that of who started it.
    make = [sys.executable, __file__, "--make", str(folder / "t.blktrace.0"), str(events)]
    subprocess.run(make, check=True)
    iolab = [sys.executable, "-m", "iolab", "trace"]
    used([*iolab, "convert", "t", "t.iotrace", "--overwrite", "t.iotrace"], folder)
    (folder / "t.blktrace.0").unlink()
    is_met = True
    for form, (out, *words) in FORMS.items():
        words = [*iolab, "plot", "t.iotrace", *words, "-o", out, "--overwrite", out]
        cpu_s, peak = used(words, folder)
        size = (folder / out).stat().st_size
        limit = CPU_S_MAX.get(events, float("inf"))
        is_met &= cpu_s <= limit and size <= PAGE_BYTES_MAX
        print(
            f"{events:>10} events  {form:9} {cpu_s:6.2f} s of CPU (bar {limit:g})  "
            f"{size / 2**20:5.2f} MiB (bar {PAGE_BYTES_MAX >> 20})  peak {peak >> 20} MiB"
        )
    return is_met


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="*", default=list(CPU_S_MAX))
    parser.add_argument("--make", nargs=2, metavar=("FILE", "EVENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make is not None:
        write_trace(Path(options.make[0]), int(options.make[1]))
        return 0
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=Path.home()) as name:
        met = [measure(Path(name), events) for events in options.events]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
