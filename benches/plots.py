"""Pictures of large block traces: CPU time, memory and size of the page.

Synthetic traces of a million and of ten million events (five per request, places at random and in
runs) are drawn as a page, as a drawing and as an animation by `iolab trace plot`. What the page
says (requests, bytes, sequential share, ranges of time and place) is compared with what was
generated. ``make bench``, or ``python benches/plots.py [--events N ...]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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


ISSUE: Final = 3
"""Step at which requests are drawn."""
ROUNDED: Final = 0.006
"""Relative error of a number with three digits."""
Truth = dict[str, float]


def write_trace(path: Path, events: int) -> Truth:
    """Make a trace of blktrace, one file; what a picture of it should say."""
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
    issued = begin + delays[ISSUE]
    order = np.argsort(issued, kind="stable")
    places = sector[order]
    return {
        "requests": n_requests,
        "seconds": float(issued.max() - issued.min()) / 1e9,
        "read": int((direction == 1).sum()) * 4096,
        "written": int((direction == 2).sum()) * 4096,
        "sequential": float((places[1:] == places[:-1] + 8).sum()) / n_requests,
        "last place": float(places.max() + 8) * 512,
    }


def used(words: list[str], folder: Path) -> tuple[float, int]:
    """CPU time and peak memory (bytes) of a command."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


_SAID: Final = re.compile(
    r"(?P<requests>[\d\s]+) requests in (?P<seconds>[\d.]+) (?P<time>ms|s|min), "
    r"(?P<read>[\d.\s]+) (?P<read_unit>\w+) read and (?P<written>[\d.\s]+) "
    r"(?P<written_unit>\w+) written; (?P<sequential>[\d.]+)\s%"
)
_PLACES: Final = re.compile(r"((?:[\d.\s]+\|+)+)place, (\w+)")
_TIMES: Final = re.compile(r"\|0 (ms|s|min)\|((?:[\d.\s]*\|)+)")
_UNITS: Final = {"ms": 1e-3, "s": 1.0, "min": 60.0} | {
    f"{prefix}B": 1024.0**power for power, prefix in enumerate(("", "Ki", "Mi", "Gi", "Ti"))
}


def _number(text: str) -> float:
    return float(re.sub(r"\s", "", text))


def _ticks(text: str) -> list[float]:
    return [_number(part) for part in text.split("|") if part.strip()]


def differences(page: str, truth: Truth) -> Iterator[str]:
    """Statements of a page that are not what was generated."""
    text = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", "|", text)
    said, places, times = _SAID.search(text), _PLACES.search(text), _TIMES.search(text)
    if said is None or places is None or times is None:
        yield "the page has no sentence about the requests, or no axes"
        return
    found = {
        "requests": _number(said["requests"]),
        "seconds": _number(said["seconds"]) * _UNITS[said["time"]],
        "read": _number(said["read"]) * _UNITS[said["read_unit"]],
        "written": _number(said["written"]) * _UNITS[said["written_unit"]],
    }
    for name, value in found.items():
        error = 0 if name == "requests" else ROUNDED * truth[name]
        if abs(value - truth[name]) > error:
            yield f"{name}: {value:g} on the page, {truth[name]:g} generated"
    share = _number(said["sequential"]) / 100
    if abs(share - truth["sequential"]) > max(0.0006, ROUNDED * share):
        yield f"sequential: {share:.3%} on the page, {truth['sequential']:.3%} generated"
    axes = (
        ("last place", _ticks(places[1]), _UNITS[places[2]]),
        ("seconds", [0.0, *_ticks(times[2])], _UNITS[times[1]]),
    )
    for name, ticks, unit in axes:
        top, step = ticks[-1] * unit, (ticks[-1] - ticks[-2]) * unit
        if not (top <= truth[name] * (1 + ROUNDED) and truth[name] <= top + step):
            yield f"{name}: the axis has marks up to {top:g}, and {truth[name]:g} was generated"


def measure(folder: Path, events: int) -> bool:
    """Draw one trace in all forms, and print what that took; tells whether the bars are met."""
    # In a process of its own: a child's peak memory begins with that of who started it.
    make = [sys.executable, __file__, "--make", str(folder / "t.blktrace.0"), str(events)]
    made = subprocess.run(make, check=True, stdout=subprocess.PIPE)
    truth: Truth = json.loads(made.stdout)
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
    wrong = list(differences((folder / FORMS["page"][0]).read_text(encoding="utf-8"), truth))
    print(f"{events:>10} events  the page says {'; '.join(wrong) or 'what was generated'}")
    return is_met and not wrong


def main() -> int:
    """Print the table; 1 if a bar is missed, or a page says something else than was generated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="*", default=list(CPU_S_MAX))
    parser.add_argument("--make", nargs=2, metavar=("FILE", "EVENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make is not None:
        print(json.dumps(write_trace(Path(options.make[0]), int(options.make[1]))))
        return 0
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=Path.home()) as name:
        met = [measure(Path(name), events) for events in options.events]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
