"""README shows commands that exist, output that they print, numbers that stand where it says."""

from __future__ import annotations

import importlib
import io
import re
import shlex
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import COMMANDS, DIALECTS, main
from iolab.cli.parser import Parser
from iolab.study.load import load_study

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WIDTH = 100
BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = {name: module for name, module, _ in COMMANDS}


def _typed() -> list[list[str]]:
    """Give the words of every command of iolab in a block, continued lines joined."""
    text = "\n".join(BLOCK.findall(README)).replace("\\\n", " ")
    lines = (line.removeprefix("$ ") for line in text.splitlines())
    return [shlex.split(line) for line in lines if line.startswith("iolab ")]


@pytest.mark.parametrize("words", _typed(), ids=lambda words: " ".join(words[1:4]))
def test_a_command_of_the_readme_is_understood(words: list[str]) -> None:
    command = importlib.import_module(f"iolab.cli.{MODULES[words[1]]}")
    parser = Parser(prog="iolab", description="")
    command.add_arguments(parser)
    parsed = parser.parse_args(words[2:])
    if words[1] == "run":
        load_study(ROOT / parsed.study)


def test_the_commands_of_the_table_are_those_that_there_are() -> None:
    table = README.partition("\n## Commands\n")[2].partition("\n## ")[0]
    named = re.findall(r"`iolab ([a-z][a-z0-9+-]*)", table)
    assert sorted(named) == sorted({*MODULES, *DIALECTS})


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))
    assert found >= {"demo", "test", "bench", "bench-verdicts"}
    assert [name for name in found if f"\n{name}:" not in makefile] == []


def test_lines_fit_and_no_sentence_is_a_chain_of_semicolons() -> None:
    by_hand = (ROOT / "docs/README.md").read_text(encoding="utf-8").partition("<!--")[0]
    prose = [line for line in by_hand.splitlines() if not line.startswith("|")]
    for line in (*README.splitlines(), *prose):
        assert len(line) <= WIDTH, line
    text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    sentences = re.split(r"[.:|]\s|\n\n|\n- ", text)
    assert [s for s in sentences if s.count(";") > 1] == []


def test_shares_of_wrong_verdicts_are_those_of_the_page() -> None:
    page = (ROOT / "docs/explanation/how-often-verdicts-are-wrong.md").read_text(encoding="utf-8")
    naive = re.search(r"BBBB and Welch, drift 5 % +([\d.]+)%", page)
    ours = re.search(r"A/A false positives, drift 5 % +([\d.]+)%", page)
    assert naive is not None
    assert ours is not None
    said = re.search(r"different in (\d+) % of studies, random rounds in ([\d.]+) %", README)
    assert said is not None
    assert (float(said[1]), said[2]) == (float(naive[1]), ours[1])


@pytest.mark.timeout(300)
def test_the_simulated_example_prints_what_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (words,) = [words for words in _typed() if words[-1] == "simulated"]
    out = io.StringIO()
    assert main(words[1:], console=Console(out, io.StringIO())) == 0
    (shown,) = [block for block in BLOCK.findall(README) if "--out simulated" in block]
    printed = [line for line in shown.splitlines() if line[:1] not in ("$", " ", "…")]
    assert len(printed) == 3
    assert "\n".join(printed) in out.getvalue()
