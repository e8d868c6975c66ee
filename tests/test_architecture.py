"""Dependencies that are allowed: the picture of docs/design against cargo and the Python
imports.
"""

import shutil
from pathlib import Path

import pytest

import architecture

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on PATH")
def test_crates_keep_to_the_picture():
    assert list(architecture.crate_violations(architecture.cargo_metadata(ROOT))) == []


def test_packages_keep_to_the_picture():
    assert list(architecture.package_violations(ROOT / "python" / "iolab")) == []


def test_the_command_line_imports_the_library_and_no_internal_module():
    assert list(architecture.cli_violations(ROOT / "python" / "iolab")) == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("cli/x.py", "from iolab.library import result\nfrom iolab.units import parse", []),
        ("cli/x.py", "from iolab import run", ["cli/x.py imports iolab.run: use iolab.library"]),
        ("cli/x.py", "import iolab.run.trial", ["cli/x.py imports iolab.run.trial: use"]),
        ("run/x.py", "import argparse", ["run/x.py imports argparse; only cli/ may"]),
        ("run/x.py", "from argparse import Namespace", ["run/x.py imports argparse; only"]),
        ("cli/x.py", "import argparse", []),
    ],
)
def test_what_the_command_line_imports_is_seen(tmp_path, path, text, found):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / path).write_text(text, encoding="utf-8")
    told = list(architecture.cli_violations(tmp_path))
    assert [len(told), *(a.startswith(b) for a, b in zip(told, found, strict=True))] == [
        len(found),
        *(True for _ in found),
    ]


def test_pictures_have_no_cycle():
    for picture in (architecture.CRATES, architecture.PACKAGES):
        assert [node for node in picture if node in architecture.reachable(picture, node)] == []


def package(name: str, *dependencies: str, kind: str | None = None) -> dict[str, object]:
    return {"name": name, "dependencies": [{"name": d, "kind": kind} for d in dependencies]}


@pytest.mark.parametrize(
    ("packages", "violations"),
    [
        ([package("iolab-real", "iolab-model", "libc"), package("iolab-model")], []),
        ([package("iolab-agent", "iolab-workload"), package("iolab-workload")], []),
        (
            [package("iolab-model", "iolab-real"), package("iolab-real")],
            ["iolab-model ─► iolab-real"],
        ),
        (
            [package("iolab-drive", "iolab-sim", kind="dev"), package("iolab-sim")],
            ["iolab-drive ─► iolab-sim (for tests)"],
        ),
        ([package("iolab-new")], ["crate iolab-new is not in the picture"]),
    ],
)
def test_crate_edges(packages, violations):
    assert list(architecture.crate_violations({"packages": packages})) == violations


@pytest.mark.parametrize(
    ("path", "text", "violation"),
    [
        ("cli/run.py", "from iolab.study import model", None),
        ("cli/run.py", "from iolab import _core", "cli/run.py imports iolab._core"),
        ("run/core.py", "from iolab import _core", None),
        ("run/trial.py", "from iolab.study.model import Study\nimport iolab.errors", None),
        ("store/db.py", "import iolab.stats.judge", "store/db.py: store ─► stats"),
        ("store/db.py", "from iolab import run", "store/db.py: store ─► run"),
        ("study/load.py", "from ..testbed import model", "study/load.py: study ─► testbed"),
        ("report/html.py", "def f():\n    from iolab import _core", "report/html.py imports"),
        ("stats/judge.py", "from iolab._core import percentile", "stats/judge.py imports"),
        ("stats/metrics/p99.py", "from iolab._core import percentile", None),
        ("units.py", "from iolab.study import model", "units.py is for everybody"),
        ("fancy/x.py", "", "fancy/x.py: sub-package fancy is not in the picture"),
        ("run/trial.py", 'PROGRAM = "iolab-agent"', "run/trial.py names iolab-agent"),
        ("run/trial.py", '"""Talks to iolab-agent through testbed."""', None),
        ("testbed/agent.py", 'PROGRAM = "iolab-agent"', None),
    ],
)
def test_package_edges(tmp_path, path, text, violation):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    found = list(architecture.package_violations(tmp_path))
    if violation is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith(violation)
