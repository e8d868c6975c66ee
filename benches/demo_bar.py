"""Counts how often the demo decides its question while something else keeps one core busy.

Runs the demo's study on the demo's device (tools/slow_disk.py) so many times beside a loop that
keeps one core busy, prints the answer and the time of each run, and ends with 1 where fewer than
nine of ten were decided. Needs root. A run takes about two minutes.

``python benches/demo_bar.py [--runs N] [--idle]``
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
STUDY: Final = ROOT / "examples" / "06-quick-beside-a-writer" / "study.toml"
SHARE: Final = 0.9
DECIDED: Final = frozenset({"better", "worse", "same", "trivial"})
COMMAND: Final = (
    'exec "$PYTHON" -m iolab run "$STUDY" --on device:"$SLOW_DISK"'
    ' --erase-serial "$SLOW_DISK_SERIAL" --out "$OUT"'
)


@contextmanager
def busy_core() -> Iterator[None]:
    """Something else that never lets one core rest."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def run(out: Path) -> tuple[str, str]:
    """Word and sentence of one run of the study into `out`."""
    facts = {"PYTHON": sys.executable, "STUDY": str(STUDY), "OUT": str(out)}
    command = [sys.executable, ROOT / "tools" / "slow_disk.py", "sh", "-c", COMMAND]
    env = {**os.environ, **facts}
    done = subprocess.run(command, check=False, env=env, capture_output=True, text=True)
    if done.returncode:
        return "failed", (done.stderr or done.stdout).strip()[-400:]
    verdict = json.loads((out / "verdict.json").read_text())
    return verdict["headline_word"], verdict["sentence"]


def main() -> int:
    """Run all and count; ends with 1 below nine of ten."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--idle", action="store_true", help="without the busy core")
    options = parser.parse_args()
    decided = 0
    with tempfile.TemporaryDirectory(prefix="iolab-demo-") as place:
        for number in range(1, options.runs + 1):
            begun = time.monotonic()
            if options.idle:
                word, sentence = run(Path(place, str(number)))
            else:
                with busy_core():
                    word, sentence = run(Path(place, str(number)))
            decided += word in DECIDED
            seconds = time.monotonic() - begun
            print(f"{number:3}  {word:10} {seconds:4.0f} s  {sentence}", flush=True)
    is_met = decided >= SHARE * options.runs
    print(f"decided: {decided} of {options.runs}; bar {SHARE:.0%}: {'met' if is_met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
