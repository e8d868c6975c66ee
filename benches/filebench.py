"""`iolab filebench` beside the original: operations per second of the same scripts.

Personalities with smaller filesets run on ext4 on a loop device over RAM, with 1 and 16 threads, in
random order within each round. A ratio is iolab's operations per second over the original's, paired
by round, on ln. The original runs with address-space randomisation off (`setarch -R`), or it hangs.
What a run costs beside its seconds, and how fast files are made, is printed below.

``python benches/filebench.py [--rounds N] [--only NAME] [--seconds N]``; needs root, and for the
ratios `filebench` (no Debian package: build its sources), found in ``PATH`` or in ``$FILEBENCH``.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from paired import BAR_POOLED, ROOT, device_over_ram, report, write

IOLAB: Final = (sys.executable, "-m", "iolab")
DEVICE_BYTES: Final = 3 << 30
_SUMMARY: Final = re.compile(r"IO Summary:\s*(\d+) ops\s+([\d.]+) ops/s")
SETTINGS: Final = {
    "fileserver": ("nfiles=2000", "filesize=cvar(type=cvar-gamma,parameters=mean:32768;gamma:1.5)"),
    "varmail": ("nfiles=1000",),
    "webserver": ("nfiles=1000",),
    "oltp": ("filesize=10m", "ndbwriters=2"),
    "randomread": ("filesize=512m",),
}
"""Personalities and their parameters beside the number of threads."""
THREADS: Final = (1, 16)
FIXED_S_MAX: Final = 0.3
_STAT: Final = (
    "define process name=p { thread name=t,memsize=1m "
    "{ flowop statfile name=x,filesetname=a } }\nrun 1\n"
)
"""A thread that looks at files for a second."""


def script(name: str, threads: int, seconds: int, place: Path) -> str:
    """A personality as a script of its own for both programs."""
    text = subprocess.run(
        [*IOLAB, "filebench", name, "--print"], capture_output=True, text=True, check=True
    ).stdout
    count = "nshadows" if name == "oltp" else "nthreads"
    settings = (*SETTINGS[name], f"{count}={threads}", f"dir={place}", f"runtime={seconds}")
    for setting in settings:
        variable, value = setting.split("=", 1)
        text, found = re.subn(rf"(?m)^set \${variable}=.*$", f"set ${variable}={value}", text)
        if found != 1:
            sys.exit(f"{name} has no variable {variable}")
    # The original takes no variable there.
    return text.replace("run $runtime", f"run {seconds}")


def measured(argv: list[str], folder: Path) -> tuple[float, float]:
    """Operations per second, and seconds that the command took."""
    began = time.monotonic()
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    took = time.monotonic() - began
    found = _SUMMARY.search(done.stdout)
    if found is None:
        sys.exit(f"{' '.join(argv)}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return float(found[2]), took


def original() -> list[str] | None:
    """The command of the original, if it is there."""
    path = os.environ.get("FILEBENCH") or shutil.which("filebench")
    return None if path is None else ["setarch", "-R", path]


def cell(name: str, threads: int, options: argparse.Namespace, place: Path) -> list[float]:
    """Ratios of both programs in turn, as ln; none without the original."""
    peer = original()
    folder = Path(tempfile.mkdtemp(dir=place.parent))
    (folder / "script.f").write_text(script(name, threads, options.seconds, place))
    logs: list[float] = []
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for number in range(options.rounds):
        turn = ["ours"] if peer is None else random.sample(["ours", "theirs"], 2)
        for who in turn:
            command = [*IOLAB, "filebench"] if who == "ours" else list(peer or [])
            command += ["-f", "script.f"]
            command += ["--out", f"out-{number}"] if who == "ours" else []
            rates[who].append(measured(command, folder)[0])
        if peer is not None:
            logs.append(math.log(rates["ours"][-1] / rates["theirs"][-1]))
    shutil.rmtree(folder)
    shown = "  ".join(f"{who} {sum(all_) / len(all_):12.0f}" for who, all_ in rates.items() if all_)
    print(f"{name:12} x {threads:3}  {shown} ops/s", flush=True)
    return logs


def fixed_cost(place: Path) -> float:
    """Seconds that a run of one second takes beside it: the smallest of five."""
    folder = Path(tempfile.mkdtemp(dir=place.parent))
    (folder / "script.f").write_text(
        f"define fileset name=a,path={place},size=4k,entries=5,dirwidth=5,prealloc\n{_STAT}"
    )
    argv = [*IOLAB, "filebench", "-f", "script.f", "--out"]
    took = [measured([*argv, f"out-{number}"], folder)[1] for number in range(5)]
    shutil.rmtree(folder)
    return min(took) - 1.0


def files_per_s(place: Path, files: int) -> float:
    """Files of 0 bytes that are made per second, by several threads."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (folder / "script.f").write_text(
        f"define fileset name=a,path={place},size=0,entries={files},dirwidth=20,prealloc,paralloc\n"
        f"{_STAT}"
    )
    argv = [*IOLAB, "filebench", "-f", "script.f", "--out", "out"]
    whole = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True).stdout
    shutil.rmtree(folder)
    running = re.search(r"(?m)^([\d.]+): Running", whole)
    return files / float(running[1]) if running else math.nan


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "filebench.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="", help="those whose name contains this")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root, for a loop device")
    if original() is None:
        print("the original is not installed: only iolab is measured")
    with device_over_ram(DEVICE_BYTES) as place:
        ratios = {
            f"{name} x {threads}": cell(name, threads, options, place)
            for name in SETTINGS
            for threads in THREADS
            if options.only in name
        }
        fixed_s = fixed_cost(place)
        made = files_per_s(place, 20_000)
    in_ram = files_per_s(Path("/dev/shm"), 50_000)
    print(f"a run costs {fixed_s:.2f} s beside its seconds (bar {FIXED_S_MAX} s)")
    print(f"files made per second: ext4 {made:.0f}, tmpfs {in_ram:.0f}")
    is_below = fixed_s > FIXED_S_MAX
    found: dict[str, object] = {"fixed_s": fixed_s, "files_per_s": [made, in_ram]}
    if original() is not None and options.rounds > 1 and ratios:
        found |= report(ratios, {})
        is_below |= _low(found["pooled"]) < BAR_POOLED
    write(options.out, found)
    sys.exit(1 if is_below else 0)


def _low(pooled: object) -> float:
    """Lower end of the interval of a pooled ratio."""
    return float(pooled[1]) if isinstance(pooled, list) else math.nan


if __name__ == "__main__":
    main()
