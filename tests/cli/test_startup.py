"""Modules that a command imports before it does anything. Issue 14, point 18.

Symptom: `iolab --version` took 0.2 s and a dialect's command 0.4 s of its own, most of it imports
of what it never used. Cause: modules imported by modules. Time is no test on a busy machine; the
lists are: what is not on them has to be imported where it is used, or argued for here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "scipy", "jsonschema", "xlsxwriter", "pandas"}
SLOW = {
    *("argparse", "ast", "csv", "decimal", "difflib", "dis", "email", "fractions", "hashlib"),
    *("importlib.metadata", "platform", "random", "secrets", "shutil", "statistics", "tempfile"),
    *("tokenize", "tomllib", "uuid", "zipfile"),
}
"""Modules of the standard library that take a millisecond or more, and are needed elsewhere."""
VERSION_BUDGET = {
    *("iolab", "iolab.errors", "iolab.lazy", "iolab.pattern", "iolab.visible", "iolab.version"),
    *("iolab.cli", "iolab.cli.console", "iolab.cli.main", "iolab.cli.unasked"),
    "iolab.deferred_import",
}
DIALECT_NEEDS_NOT = {
    *("iolab.stats", "iolab.report", "iolab.export", "iolab.archive", "iolab.imported"),
    *("iolab.store.read", "iolab.study.load", "iolab.study.presets", "iolab.testbed.sim"),
    *("iolab.run.wear", "iolab.run.confirm", "iolab.run.not_measured", "iolab.cli.conduct"),
    "iolab.cli.parser",
}
"""`iolab.lazy` is what keeps the public names of `import iolab` from importing their modules."""
PROBE = """
import sys
from iolab.cli.main import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def imported(*words: str, cwd: Path) -> set[str]:
    """All modules that a finished command has imported."""
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    code, *names = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(names)


def test_the_version_imports_nothing_that_it_does_not_print(tmp_path):
    names = imported("--version", cwd=tmp_path)
    assert {name for name in names if name.split(".")[0] == "iolab"} == VERSION_BUDGET
    assert not names & {*HEAVY, *SLOW, "dataclasses", "inspect", "json", "sqlite3", "subprocess"}


def test_the_library_is_imported_name_by_name(tmp_path):
    """`import iolab` offers `run`, `Study` and the rest; what they need comes when it is used."""
    probe = "import sys, iolab\nprint(*sorted(sys.modules))\nassert 'run' in dir(iolab)"
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = set(done.stdout.split())
    assert {name for name in names if name.split(".")[0] == "iolab"} == {
        *("iolab", "iolab.errors", "iolab.lazy")
    }
    assert not names & {*HEAVY, *SLOW, "dataclasses", "inspect", "json", "sqlite3", "subprocess"}


@pytest.mark.parametrize(
    "words",
    [("iozone", "-s", "64", "-r", "4", "-i", "0"), ("iozone", "-a", "-n", "64", "-g", "64")],
)
def test_a_dialect_command_imports_only_what_measuring_needs(words, tmp_path):
    names = imported(*words, cwd=tmp_path)
    assert not {name.split(".")[0] for name in names} & HEAVY
    assert not names & SLOW
    assert not names & DIALECT_NEEDS_NOT


def test_a_module_that_was_put_off_is_whole_once_it_is_asked(tmp_path):
    """`dataclasses` imports `inspect` only for classes without a docstring."""
    probe = (
        "import sys, iolab.frozen, dataclasses\n"
        "assert 'ast' not in sys.modules, 'inspect was loaded'\n"
        "@dataclasses.dataclass\n"
        "class Point:\n    x: int = 0\n"
        "assert Point.__doc__ == 'Point(x: int = 0)', Point.__doc__\n"
        "import inspect\n"
        "assert 'ast' in sys.modules and inspect.isfunction(inspect.signature)\n"
        "from inspect import getsource\n"
        "assert 'def frozen' in getsource(iolab.frozen.frozen)\n"
    )
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, env=environment, check=True)


def test_a_program_ends_without_taking_itself_apart(tmp_path):
    """Its output is whole all the same, also in a pipe, and so is its exit code."""
    for words, code in (("--help",), 0), (("nonsense",), 1), (("iozone", "-s", "64", "-r", "4"), 0):
        done = subprocess.run(
            [sys.executable, "-m", "iolab", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert (done.stdout or done.stderr).endswith("\n")


def test_helps_of_commands_need_no_numbers(tmp_path):
    probe = PROBE.replace(
        "code = main(sys.argv[1:])", "code = 0\ntry: main(sys.argv[1:])\nexcept SystemExit: pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "compare", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(done.stderr.splitlines()[-1].split()[1:])
    assert not {name.split(".")[0] for name in names} & HEAVY
