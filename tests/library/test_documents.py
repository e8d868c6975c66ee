"""Examples of README and the documents about the library run as they stand there."""

import re
import sys
import types
from pathlib import Path

import pytest

import iolab

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Frame:
    """As much of a pandas frame as the documents use."""

    @classmethod
    def from_records(cls, rows, columns):
        assert all(len(row) == len(columns) for row in rows)
        return cls()


@pytest.fixture(autouse=True)
def pandas(monkeypatch):
    """Stand-in for pandas, if it is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("pandas")
        stand_in.DataFrame = Frame
        monkeypatch.setitem(sys.modules, "pandas", stand_in)


def blocks(name):
    found = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert found, f"{name} shows no Python"
    return found


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("README.md")
    exec(block, {})
    assert "deadline / noop" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
    assert iolab.open("results").is_simulated


def test_the_example_of_the_how_to_runs(tmp_path, monkeypatch, capsys, study):
    monkeypatch.chdir(tmp_path)
    iolab.run(study, out="results")
    found = blocks("docs/how-to/use-results-elsewhere.md")
    (block,) = [block for block in found if block.startswith("import iolab")]
    exec(block, {})
    assert capsys.readouterr().out.startswith("deadline ")
    assert (tmp_path / "report.md").is_file()


def test_the_example_of_the_package_runs(tmp_path, monkeypatch, capsys):
    """`help(iolab)` shows it."""
    monkeypatch.chdir(tmp_path)
    lines = [line for line in (iolab.__doc__ or "").splitlines() if line.startswith("    ")]
    program = "\n".join(line[4:] for line in lines)
    assert "import iolab" in program
    exec(program.replace('workload="video"', 'workload={"kind": "iozone", "tests": "read"}'), {})
    assert "cfq / noop" in capsys.readouterr().out


GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
WORDS = re.findall(r"^\| ([\w/ ,-]+) \|", GLOSSARY, re.MULTILINE)


def test_every_word_of_the_glossary_is_explained_once():
    words = [word for row in WORDS for word in row.split(", ") if row not in ("word", "---")]
    assert len(words) == len(set(words))
    assert {"study", "operation", "tenant", "cell", "finding", "place", "program"} <= set(words)


def test_no_row_of_the_glossary_rejects_the_word_of_another():
    avoided = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]*) \|$", GLOSSARY, re.MULTILINE)
    rejected = {word.strip() for row in avoided if "(" not in row for word in row.split(",")}
    assert set(WORDS) & rejected <= {"", "---", "not"}
