"""The worked examples of CONTRIBUTING.md do what they say: one file, one row, and it works.

Each is applied to a copy of the sources. The copy for Rust lies in the build directory, at the
same place every time, so that cargo builds the dependencies once. It has a build directory of its
own: in ours cargo would take the copy's crates for the clone's, whose names and paths are the same.
For the same reason it can begin as a copy of ours: only what a chapter changes is compiled.
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
CHAPTER = re.compile(r"^## (Add an? [\w ]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^New file `([^`]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^Row in `([^`]+)`, after `([^`]+)`:\n\n```\w+\n(.*?)^```", re.M | re.DOTALL)
OPENERS, CLOSERS = ("(", "[", "{"), (")", "]", "}")
RUST_CHAPTERS = (
    "Add a scheduler",
    "Add a testbed",
    "Add a dialect option",
    "Add an engine",
    "Add a knob",
)
QUICKLY_BUILT = ("--config", "profile.dev.package.iolab-sim.opt-level=0")
"""A handful of tests runs: compiling the simulator, which is changed, is what takes time."""
BUILT = (".fingerprint", "build", "deps")
"""Parts of a build directory by which cargo knows what is compiled."""
COMPILING_S = 1200
"""A limit against hanging, no measurement: compiling takes long beside other work."""
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


@dataclass(frozen=True)
class Example:
    """One chapter: the files and the rows that it adds."""

    files: list[tuple[str, str]]
    rows: list[tuple[str, str, str]]

    def apply(self, root: Path) -> None:
        """Write all of it below `root`, with the declarations that make new modules known."""
        texts = dict[str, str]()
        for path, anchor, lines in self.rows:
            text = texts.get(path) or (ROOT / path).read_text(encoding="utf-8")
            texts[path] = inserted(text, anchor, lines, path)
        for path, text in self.files:
            write(root / path, text)
            for place in texts:
                is_list = Path(place).name in ("mod.rs", "__init__.py")
                if is_list and Path(place).parent == Path(path).parent:
                    texts[place] = declare(texts[place], Path(path))
        for path, text in texts.items():
            write(root / path, text)


def inserted(text: str, anchor: str, added: str, path: str) -> str:
    """Text with lines added after the row in which the anchor stands.

    The anchor is a whole line, or else a part of one. Its row is that line; or, if the line begins
    a row or is the first inside one, everything up to the bracket that ends the row.
    """
    lines = text.splitlines(keepends=True)
    found = [at for at, line in enumerate(lines) if line.strip() == anchor]
    found = found or [at for at, line in enumerate(lines) if anchor in line]
    assert len(found) == 1, f"{path} has not exactly one {anchor}"
    end = row_end(lines, found[0], is_first=anchor.startswith('"'))
    return "".join([*lines[: end + 1], added, *lines[end + 1 :]])


def row_end(lines: list[str], at: int, *, is_first: bool) -> int:
    """Last line of the row that has a line: see `inserted`."""
    depth = indent(lines[at])
    is_head = lines[at].rstrip().endswith(OPENERS)
    is_inner = is_first and lines[at - 1].rstrip().endswith(OPENERS)
    if not is_head and not (is_inner and indent(lines[at - 1]) > 0):
        return at
    limit = depth if is_head else depth - 1
    ends = (n for n in range(at + 1, len(lines)) if indent(lines[n]) <= limit)
    return next(n for n in ends if lines[n].strip().startswith(CLOSERS))


def indent(line: str) -> int:
    """Blanks before a line; a line without anything is as deep as any."""
    return len(line) - len(line.lstrip(" ")) if line.strip() else 1 << 10


def declare(text: str, module: Path) -> str:
    """Add `mod name;` or the import, unless the example does so itself."""
    if re.search(rf"\bmod {module.stem};", text):
        return text
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
    found = Example(FILE.findall(chapters[title]), ROW.findall(chapters[title]))
    assert found.files or found.rows
    return found


def printed_by_copy(tmp_path: Path, title: str, program: str) -> str:
    """Output of a program when the package has what a chapter adds."""
    shutil.copytree(Path(iolab.__path__[0]), tmp_path / "python" / "iolab")
    example(title).apply(tmp_path)
    folders = [tmp_path / "python", ROOT / "tests" / "report" / "fixtures"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rust_copy():
    """Copy the crates to a place that stays, with what all chapters add: one build serves all."""
    build = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    copy = build / "contributing"
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    for name in ("crates", "docs/reference", "tests/golden"):  # Some tests read these.
        shutil.copytree(ROOT / name, copy / name, dirs_exist_ok=True)
    for path in sorted((copy / "crates").rglob("*"), reverse=True):
        if path.is_file() and not (ROOT / path.relative_to(copy)).exists():
            path.unlink()
    for title in RUST_CHAPTERS:
        example(title).apply(copy)
    begin_with(build / "debug", copy / "target" / "debug")
    return copy


def begin_with(built: Path, target: Path) -> None:
    """Take over what is compiled already, times included, by which cargo compares."""
    if target.exists() or not all((built / name).exists() for name in BUILT):
        return
    begun = target.with_name("begun")
    shutil.rmtree(begun, ignore_errors=True)
    for name in BUILT:
        shutil.copytree(built / name, begun / name, symlinks=True)
    begun.rename(target)


def cargo(copy: Path, *arguments: str) -> str:
    """Run a command of cargo on the copy; its output."""
    command = ["cargo", arguments[0], "--quiet", *QUICKLY_BUILT, *arguments[1:]]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(copy / "target")}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def front_end_help(copy: Path, folder: Path) -> str:
    """Output of `iolab compare --help` when the names are those of the copy's agent."""
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
    program = """
import canned
from iolab.report.charts import CHARTS
from iolab.stats.judge import judge
data = canned.demo()
(row,) = [row for row in CHARTS if row.name == "trial_time"]
(chart,) = row.build(data, judge(data))
print(chart.caption)
"""
    printed = printed_by_copy(tmp_path, "Add a chart", program)
    assert re.match(r"The longest of \d+ trials took ", printed)


def test_add_a_workload_preset(tmp_path):
    program = """
import iolab
table = {"kind": "contention", "preset": "log", "duration": "100ms"}
trial = iolab.simulate("sim:fixed-100us", workload=table)
print(sorted(trial.metrics), trial.metrics["log/log"]["throughput_ops_per_s"] > 0)
study = iolab.Study(testbed="sim:fixed-100us", workload=table)
print('metric_of = "log"' in study.to_toml())
"""
    printed = printed_by_copy(tmp_path, "Add a workload preset", program)
    assert printed == "['log/all', 'log/log', 'log/readers'] True\nTrue\n"


def test_add_a_metric(tmp_path):
    program = """
import iolab
from iolab.stats.metrics import METRICS
streams = [{"name": "w", "direction": "write", "record_size": "4k", "file_size": "1m",
            "fsync_every": 1}]
table = {"kind": "mixed", "duration": "100ms", "streams": streams}
trial = iolab.simulate("sim:fixed-100us", workload=table)
values = trial.metrics["mixed"]
print(values["flush_ns_p50"] <= values["flush_ns_p90"])
names = [metric.name for metric in METRICS]
print(names.index("flush_ns_p90") - names.index("flush_ns_p50"))
study = iolab.Study(testbed="sim:fixed-100us", workload=table, metric="flush_ns_p90")
print('metric = "flush_ns_p90"' in study.to_toml())
"""
    assert printed_by_copy(tmp_path, "Add a metric", program) == "True\n1\nTrue\n"


def test_add_a_finding(tmp_path):
    """Finding in every format, where its severity puts it, without a change to a renderer."""
    program = """
import dataclasses, json
import canned
from iolab.report.collect import draw_all
from iolab.report.html import render_html
from iolab.report.markdown import render_markdown
from iolab.report.terminal import render
from iolab.report.verdict_json import verdict_document
from iolab.stats.judge import judge
data = canned.make_study(rounds=5)
trials = [dataclasses.replace(t, elapsed_ns=10**9) for t in data.trials]
print([f.kind for f in judge(dataclasses.replace(data, trials=trials)).caveats if "slow" in f.kind])
trials[3] = dataclasses.replace(trials[3], elapsed_ns=5 * 10**9)
data = dataclasses.replace(data, trials=trials)
verdict = judge(data)
said = f"trial {trials[3].trial_id} took 5.00 s, the median one 1.00 s."
page = render_html(data, verdict, draw_all(data, verdict))
print(render(data, verdict, width=200).count(said.capitalize()), page.count(said.capitalize()))
print(render_markdown(data, verdict).count(said.capitalize()))
(found,) = [f for f in verdict_document(data, verdict)["findings"] if f["kind"] == "slow_trial"]
print(found["severity"], found["about"]["trial_id"] == trials[3].trial_id, found["strength"])
print([(e["value"], e["unit"]) for e in found["evidence"]])
"""
    printed = printed_by_copy(tmp_path, "Add a finding", program)
    assert printed == (
        "[]\n1 2\n1\ndoubt True suggested\n[(5000000000, 'ns'), (1000000000.0, 'ns')]\n"
    )


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_a_scheduler(rust_copy):
    found = cargo(rust_copy, "test", "-p", "iolab-sim", "--lib", "sched::exercise")
    assert "ok. 0 passed" not in found


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_a_testbed(rust_copy):
    """Its name is in the list that the build makes of the folder."""
    found = cargo(rust_copy, "test", "-p", "iolab-sim", "--lib", "profile")
    assert "ok. 0 passed" not in found
    lists = (rust_copy / "target" / "debug" / "build").glob("iolab-sim-*/out/profiles.rs")
    newest = max(lists, key=lambda path: path.stat().st_mtime)
    assert '"fixed-1ms"' in newest.read_text(encoding="utf-8")


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_a_dialect_option(rust_copy):
    cargo(rust_copy, "test", "-p", "iolab-dialect", "--lib", "iozone")
    source = rust_copy / "crates/iolab-dialect/src/iozone"
    assert "--preallocate" in (source / "options/how.rs").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("anchor", "result"),
    [
        ("one", 'A = [\n    one(1),\n    new\n    two(\n        "b",\n    ),\n]\n'),
        ("two(", 'A = [\n    one(1),\n    two(\n        "b",\n    ),\n    new\n]\n'),
        ('"b",', 'A = [\n    one(1),\n    two(\n        "b",\n    ),\n    new\n]\n'),
    ],
)
def test_a_row_is_added_after_a_whole_row(anchor, result):
    text = 'A = [\n    one(1),\n    two(\n        "b",\n    ),\n]\n'
    assert inserted(text, anchor, "    new\n", "a.py") == result


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_an_engine(rust_copy, tmp_path):
    cargo(rust_copy, "test", "-p", "iolab-real", "--test", "conformance")
    assert "io_uring_fixed_sqpoll_poll, libaio, advised" in front_end_help(rust_copy, tmp_path)


@needs_cargo
@pytest.mark.timeout(COMPILING_S)
def test_add_a_knob(rust_copy, tmp_path):
    assert "ok. 0 passed" not in cargo(rust_copy, "test", "-p", "iolab-agent", "--bins", "knob")
    help_text = front_end_help(rust_copy, tmp_path)
    assert re.search(r"--add-random LEVELS\s+completions feed the entropy pool", help_text)
