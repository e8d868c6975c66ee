"""Reports of traced studies: pictures of the traces beside each other, stages, work of the device.

The traces are simulated, so that no root is needed; `tests/report/test_traced.py` has what follows
from the rows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import iolab as library

Run = Callable[..., CompletedProcess[str]]
STUDY = (
    *("compare", "--on", "sim:sata-2009", "--scheduler", "noop,cfq", "--rounds", "2"),
    *("--test", "write,random-read", "--file-size", "2m", "--record-size", "16k", "--direct"),
)


@pytest.fixture(scope="module")
def traced_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("traced") / "study"
    command = [sys.executable, "-m", "iolab.cli", *STUDY, "--trace", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def study(traced_study: Path, tmp_path: Path) -> Path:
    return shutil.copytree(traced_study, tmp_path / "study", symlinks=True)


def page_of(iolab: Run, study: Path) -> str:
    done = iolab("report", study)
    assert done.returncode == 0, done.stderr
    return (study / "report.html").read_text()


def pictures(page: str) -> int:
    return len(set(re.findall(r'<figure id="(trace-[^"]*)"', page)))


def test_two_levels_stand_beside_each_other(iolab: Run, study: Path) -> None:
    page = page_of(iolab, study)
    assert pictures(page) == 1
    assert "Places over time: iozone, noop and cfq" in page
    drawing = page[page.index('<figure id="trace-') :]
    assert drawing.count('class="panel-title"') >= 2
    for operation in ("write", "random-read"):
        assert drawing.count(f">{operation}</text>") >= 2, "where it begins, in both panels"
    command = re.search(r"iolab trace plot DIR/(\S+) --beside DIR/(\S+) -o places.html", drawing)
    assert command is not None
    names = [study / name for name in command.groups()]
    done = iolab("trace", "plot", names[0], "--beside", names[1], "-o", study / "places.html")
    assert done.returncode == 0, done.stderr


def test_the_stages_and_the_work_of_the_device_are_there(iolab: Run, study: Path) -> None:
    page = page_of(iolab, study)
    assert "Where the time of a block request goes: iozone" in page
    assert "Work of the device" in page
    rows = re.search(r'download="device_work.csv"', page)
    assert rows is not None
    assert "of it in driver and device (D2C)" in page


@pytest.mark.parametrize("harm", ["gone", "changed", "link", "pipe", "directory"])
def test_a_trace_that_is_not_the_recorded_one_is_not_drawn(
    iolab: Run, study: Path, harm: str
) -> None:
    for path in sorted((study / "traces").iterdir()):
        if harm == "changed":
            path.write_bytes(path.read_bytes()[:-1] + b"x")
            continue
        kept = path.with_suffix(".kept")
        path.rename(kept)
        if harm == "link":
            path.symlink_to(kept)
        elif harm == "pipe":
            os.mkfifo(path)
        elif harm == "directory":
            path.mkdir()
    page = page_of(iolab, study)
    assert pictures(page) == 0
    assert "Work of the device" in page, "what the records hold is still drawn"


def test_the_library_draws_the_traces_that_the_command_draws(study: Path, tmp_path: Path) -> None:
    result = library.open(study)
    [page] = result.report(tmp_path / "one.html")
    assert pictures(page.read_text()) == 1
    result.report(tmp_path / "three")
    assert pictures((tmp_path / "three" / "report.html").read_text()) == 1
    shutil.rmtree(study)  # What is gone is not drawn; the report is whole without it.
    [page] = result.report(tmp_path / "later.html")
    assert pictures(page.read_text()) == 0
    assert "Work of the device" in page.read_text()


def test_an_archive_has_the_pictures_in_its_report(iolab: Run, study: Path, tmp_path: Path) -> None:
    archive = tmp_path / "study.iolab"
    done = iolab("archive", study, "--out", archive)
    assert done.returncode == 0, done.stderr
    extracted = tmp_path / "extracted"
    done = iolab("archive", "--extract", archive, "--out", extracted)
    assert done.returncode == 0, done.stderr
    assert pictures((extracted / "report.html").read_text()) == 1
