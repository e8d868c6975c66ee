"""The worked examples of CONTRIBUTING.md do what they say: one file, one row, and it works.

Each is applied to a copy of the sources. The copy for Rust lies in the build directory, at the
same place every time, so that cargo builds the dependencies once. It has a build directory of its
own: in ours cargo would take the copy's crates for the clone's, whose names and paths are the same.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import iolab

ROOT = Path(__file__).parents[1]
CHAPTER = re.compile(r"^## (Add an? \w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^New file `([^`]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^Row in `([^`]+)`, after `([^`]+)`:\n\n```\w+\n(.*?)^```", re.M | re.DOTALL)
COMPILING_S = 1200
"""A limit against hanging, no measurement: compiling takes long beside other work."""
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


@dataclass(frozen=True)
class Example:
    """One chapter: the file and the row that it adds."""

    path: str
    text: str
    row: tuple[str, str, str]

    def apply(self, root: Path) -> None:
        """Write all of it below `root`, with the declaration that makes the module known."""
        write(root / self.path, self.text)
        write(root / self.row[0], declare(inserted(*self.row), Path(self.path)))


def inserted(path: str, anchor: str, line: str) -> str:
    """Contents of a file with a line added after the one that contains the anchor."""
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text.count(anchor) == 1, f"{path} has not exactly one {anchor}"
    end = text.index("\n", text.index(anchor)) + 1
    return text[:end] + line + text[end:]


def declare(text: str, module: Path) -> str:
    """Add `mod name;` or the import."""
    if module.suffix == ".rs":
        return re.sub(r"^mod ", f"mod {module.stem};\nmod ", text, count=1, flags=re.MULTILINE)
    package = ".".join(module.parent.relative_to("python").parts)
    return text.replace("\nfrom typing", f"\nfrom {package} import {module.stem}\nfrom typing", 1)


def write(path: Path, text: str) -> None:
    """Leave a file alone that is right already, so that cargo sees no change."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def example(title: str) -> Example:
    """Read one chapter."""
    chapters = dict(CHAPTER.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    (file,), (row,) = FILE.findall(chapters[title]), ROW.findall(chapters[title])
    return Example(*file, row)


@pytest.fixture(scope="module")
def rust_copy():
    """Copy the crates to a place that stays."""
    build = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    copy = build / "contributing"
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    shutil.copytree(ROOT / "crates", copy / "crates", dirs_exist_ok=True)
    for path in sorted((copy / "crates").rglob("*"), reverse=True):
        if path.is_file() and not (ROOT / path.relative_to(copy)).exists():
            path.unlink()
    return copy


def cargo(copy: Path, *arguments: str) -> str:
    """Run a command of cargo on the copy; its output."""
    command = ["cargo", arguments[0], "--quiet", *arguments[1:]]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(copy / "target")}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def front_end_help(copy: Path, folder: Path) -> str:
    """What `iolab compare --help` says when the names are those of the copy's agent."""
    package = folder / "python" / "iolab"
    shutil.copytree(Path(iolab.__path__[0]), package)
    names = cargo(copy, "run", "-p", "iolab-agent", "--", "names")
    write(package / "study" / "names.json", names)
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "COLUMNS": "200"}
    command = [sys.executable, "-m", "iolab.cli", "compare", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_add_a_chart(tmp_path):
    package = tmp_path / "python" / "iolab"
    shutil.copytree(Path(iolab.__path__[0]), package)
    example("Add a chart").apply(tmp_path)
    program = """
import canned
from iolab.report.charts import CHARTS
from iolab.stats.judge import judge
data = canned.demo()
(row,) = [row for row in CHARTS if row.name == "trial_time"]
(chart,) = row.build(data, judge(data))
print(chart.caption)
"""
    folders = [tmp_path / "python", ROOT / "tests" / "report" / "fixtures"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"The longest of \d+ trials took ", done.stdout)


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_an_engine(rust_copy, tmp_path):
    example("Add an engine").apply(rust_copy)
    cargo(rust_copy, "test", "-p", "iolab-real", "--test", "conformance")
    assert "io_uring_poll, libaio, advised" in front_end_help(rust_copy, tmp_path)


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_a_knob(rust_copy, tmp_path):
    example("Add a knob").apply(rust_copy)
    assert "ok. 0 passed" not in cargo(rust_copy, "test", "-p", "iolab-agent", "--bins", "knob")
    help_text = front_end_help(rust_copy, tmp_path)
    assert re.search(r"--add-random LEVELS\s+completions feed the entropy pool", help_text)
