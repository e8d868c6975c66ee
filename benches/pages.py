"""Time and size of the report of a study with 50 levels in 20 cells.

The study is made up in memory, as those of the report's tests are: 50 levels, four record sizes,
five tests, five rounds, with latency distributions and throughput over time. Judging it, the page
and all files are timed in CPU seconds; where Chromium is there, it draws the page once.

``make bench``, or ``python benches/pages.py``; exits 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from iolab import report
from iolab.report.collect import draw_all
from iolab.report.html import render_html
from iolab.stats.judge import judge

LEVELS = 50
OPERATIONS = ("write", "rewrite", "read", "reread", "random-read")
RECORD_SIZES = ("4k", "16k", "64k", "256k")
PAGE_BYTES_MAX = 6_000_000
SECONDS_MAX = 10.0
WINDOW = "1280,2000"

T = TypeVar("T")


def main() -> int:
    """Make the study, judge it, write and draw its report, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where the report is left (default: nowhere)")
    arguments = parser.parse_args()
    folder = arguments.dir or Path(tempfile.mkdtemp(prefix="iolab-bench-"))
    try:
        return measure(folder)
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder)


def measure(folder: Path) -> int:
    """Print a line per step, and whether the bounds are kept."""
    study = _canned().large(LEVELS, OPERATIONS, RECORD_SIZES)
    verdict, judged_s = _timed(lambda: judge(study))
    page, page_s = _timed(lambda: render_html(study, verdict, draw_all(study, verdict)))
    paths, files_s = _timed(lambda: report.write_all(study, verdict, folder))
    size = len(page.encode())
    print(f"report of {LEVELS} levels in {len(OPERATIONS) * len(RECORD_SIZES)} cells")
    print(f"{'judging':22}{judged_s:8.1f} s CPU")
    print(f"{'page':22}{page_s:8.1f} s CPU   bound {SECONDS_MAX:.0f} s")
    print(f"{'all files':22}{files_s:8.1f} s CPU")
    print(f"{'page':22}{size / 1e6:8.2f} MB      bound {PAGE_BYTES_MAX / 1e6:.0f} MB")
    drawn_s = _drawn(paths.html, folder / "page.png")
    if drawn_s is None:
        print("drawing: left out, it needs Chromium")
    else:
        print(f"{'drawn in Chromium':22}{drawn_s:8.1f} s       bound {SECONDS_MAX:.0f} s")
    is_ok = size <= PAGE_BYTES_MAX and max(page_s, drawn_s or 0) <= SECONDS_MAX
    print("ok" if is_ok else "BELOW THE BAR")
    return 0 if is_ok else 1


def _timed(make: Callable[[], T]) -> tuple[T, float]:
    """Result and CPU seconds of a step."""
    began = time.process_time()
    made = make()
    return made, time.process_time() - began


def _drawn(page: Path, picture: Path) -> float | None:
    """Seconds until Chromium has drawn the page, its own start included."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        return None
    began = time.monotonic()
    subprocess.run(
        [
            *(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--window-size={WINDOW}", f"--screenshot={picture}", page.resolve().as_uri()),
        ],
        check=True,
        capture_output=True,
    )
    return time.monotonic() - began


def _canned() -> ModuleType:
    path = Path(__file__).parents[1] / "tests" / "report" / "fixtures" / "canned.py"
    spec = importlib.util.spec_from_file_location("canned", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules["canned"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
