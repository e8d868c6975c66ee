"""Wrong values of every kind at every flag and argument of every command. Issue 14, points 8, 15.

Symptom: what was mistyped ended with exit code 70, or was noticed late. Here every option that
takes a value, found in the parsers themselves, gets values of other kinds: it is either taken (and
that it may be is said in `TAKES_TEXT`) or told with what was typed, exit code 1 or 2, and nothing
is written. Study files have such a test of their own, `tests/study/test_wrong_values.py`.
"""

from __future__ import annotations

import argparse
import io
import os
from importlib import import_module
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
WRONG = (
    *("", " ", "x", "é", "-1", "0", "1.5", "nan", "inf", "-inf", "1e400", "9" * 400),
    *("1" + "0" * 30, "[]", "{}", "[1, 2]", "1979-05-27", "07:32:00", "true", ",", "4k,,8k"),
    *("4k..4q", "8k..4k", "/dev/null/x", "/", ".", "/dev/null", "\udcff", "a\nb", "\u202e"),
    *("=", "--", "%s"),
)
"""Of the wrong kind, too small, too large, not a number, no text, a path to nothing and to what is
not a file."""
STUDY = (
    *("--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
    *("--file-size", "1m", "--record-size", "4k", "--rounds", "2", "--dry-run"),
)
BASES = {
    "compare": ("", *STUDY),
    "run": ("study.toml", "--dry-run"),
    "merge": ("shard", "--out", "merged"),
    "plan": ("study.toml",),
    "aa": ("", "--on", "sim:fixed-100us", "--dry-run"),
    "report": ("stored",),
    "export": ("stored",),
    "import": ("table.csv", "--out", "stored"),
    "diff": ("stored", "stored"),
    "gate": ("stored", "stored"),
    "history": ("stored", "a.iolab"),
    "fleet": ("stored", "other=stored"),
    "watch": ("stored",),
    "lint": ("stored",),
    "check": ("", "--list"),
    "advise stripe": (
        *("", "--raid", "5", "--disks", "8", "--unit", "128k", "--fs", "ufs"),
        *("--app-io", "8k", "--memory", "1g"),
    ),
    "advise random": ("", "--fs", "ufs", "--app-io", "8k"),
    "archive": ("a.iolab", "--check"),
    "bon-csv2txt": (),
    "workloads": ("start-up",),
    "pattern": ("r.csv.gz",),
    "trace show": ("r.csv.gz", "-q"),
    "trace convert": ("r.csv.gz", "t.csv", "--overwrite", "t.csv"),
    "trace stages": ("r.csv.gz",),
    "trace summary": ("r.csv.gz",),
    "trace plot": ("r.csv.gz", "-o", "p.svg", "--overwrite", "p.svg"),
    "trace diff": ("r.csv.gz", "r.csv.gz"),
    "iostat": ("", "1"),
    "sim scenarios": ("s.yaml",),
    "sim dispatch": ("r.csv.gz",),
    "sim probe": ("fixed-100us",),
    "sim profiles": (),
    "sim schedulers": (),
    "sim import-config": ("lines", "--device", "scsi7200-1995", "--explain"),
    "sim trace": ("study.toml", "--out", "trace.csv.gz", "--overwrite", "trace.csv.gz"),
}
"""Words with which each command is right; one that needs the agent is not among them."""
ASK_THE_AGENT = {"restore", "doctor", "install-agent", "sim", "trace"}
PLACES = {"--out", "--overwrite", "--image-dir"}
"""Options whose value is any name of a file; only what can be none is tried."""
NO_PLACES = ("", " ", ",", "\udcff", "--")
TEXTS = {"--out", "--name", "--label", "--unit", "--only", "--compare", "--baseline", "--factor"}
TEXTS |= {"--format"}
"""Options whose value is any name, of which some of these may be one."""
TAKEN = {
    **{"--seed": {"0"}, "--wbt-lat-usec": {"-1", "0"}, "--nomerges": {"0"}, "--metric": {""}},
    **{"--record-size": {"4k,,8k"}, "--file-size": {"4k,,8k"}, "--flags": {"", " "}},
    **{"--mkfs-options": {"", " "}, "--mount-options": {"", " "}, "--read-ahead-kb": {"0"}},
    **{"--interval": {"1.5"}, "--raid": {"0"}},
}
"""Values that are right after all: RAID 0 is a layout, nothing between commas is left out, no
metric is every metric, and no options are those of the file system itself.
"""


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command, as it declares itself."""
    words = command.split()
    module = {name: module for name, module, _ in COMMANDS}[words[0]]
    parser = argparse.ArgumentParser(exit_on_error=False)
    import_module(f"iolab.cli.{module}").add_arguments(parser)
    return parser


def options_of(command: str) -> list[str]:
    """Every option of a command that takes a value."""
    return [
        action.option_strings[0]
        for action in parser_of(command)._actions
        if action.option_strings and action.nargs != 0 and action.help != argparse.SUPPRESS
    ]


def cases() -> list[tuple[str, str]]:
    """Command and option; an option that a command has in vain is told like any other."""
    plain = [command for command in BASES if " " not in command]
    found = [(command, option) for command in plain for option in options_of(command)]
    of_sim = {"sim dispatch": ("--scheduler", "--tunable"), "sim probe": ("--seed",)} | {
        "sim scenarios": ("--only",),
        "sim import-config": ("--device", "--memory", "--release", "--fs"),
        "sim trace": ("--trial", "--seed", "--out"),
        "trace show": ("--format", "--kinds"),
        "trace convert": ("--to",),
        "trace stages": ("--by",),
        "advise stripe": ("--raid", "--disks", "--unit", "--fs", "--app-io", "--memory"),
        "advise random": ("--fs", "--app-io"),
    }
    found += [(command, option) for command, options in of_sim.items() for option in options]
    return found + [(command, "") for command in BASES]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Directory with everything that the commands need."""
    folder = tmp_path_factory.mktemp("place")
    here = Path.cwd()
    os.chdir(folder)
    try:
        words = [word for word in STUDY if word != "--dry-run"]
        assert run(["compare", *words, "--seed", "7", "--out", "stored"])[0] == 0
        assert run(["archive", "stored", "--out", "a.iolab"])[0] == 0
        (folder / "study.toml").write_text(
            'name = "s"\ntestbed = "sim:fixed-100us"\nrounds = 2\n[factors]\n'
            'scheduler = ["noop", "deadline"]\n[[workloads]]\nkind = "iozone"\n'
            'tests = ["write", "read"]\nfile_size = "1m"\n'
        )
        shard = ["run", "study.toml", "--seed", "7", "--shard", "1/1", "--out", "shard"]
        assert run(shard)[0] == 0
        (folder / "table.csv").write_text(
            "scheduler,value,unit\nnoop,1,KB/s\nnoop,2,KB/s\nbfq,3,KB/s\nbfq,4,KB/s\n"
        )
        golden = ROOT / "tests" / "golden"
        head, *parts = (
            (golden / "scheduler" / "scheduler-scenarios.yaml").read_text().split("\n  - id:")
        )
        (folder / "s.yaml").write_text(f"{head}\n  - id:{parts[0]}\n")
        (folder / "lines").write_text("newfs -C 16 /dev/rdsk/c1t0d0s0\n")
        for suffix in (".csv.gz", ".json"):
            source = golden / "dispatch-own" / f"three-bfq{suffix}"
            (folder / f"r{suffix}").write_bytes(source.read_bytes())
    finally:
        os.chdir(here)
    return folder


def run(words: list[str]) -> tuple[int, str]:
    """Exit code and everything printed."""
    out, err = io.StringIO(), io.StringIO()
    try:
        code = main(words, console=Console(out, err))
    except SystemExit as error:
        code = int(error.code or 0)
    return code, out.getvalue() + err.getvalue()


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything below a folder, with its size and time of change."""
    return {
        str(path.relative_to(folder)): (status.st_size, status.st_mtime_ns)
        for path in folder.rglob("*")
        if not path.is_dir() and not path.name.endswith(("-shm", "-wal", ".lock"))
        for status in [path.lstat()]
    }


def words_with(command: str, option: str, value: str) -> list[str]:
    """The right words, one option or the first argument replaced."""
    base = [word for word in BASES[command] if word] if option else list(BASES[command])
    if not option:
        return [*command.split(), value, *base[1:]]
    if option in base:
        at = base.index(option)
        del base[at : at + 2]
    return [*command.split(), *base, f"{option}={value}"]


def check_refusal(words: list[str], value: str, code: int, text: str) -> None:
    """A mistake is told in one line that names what was typed."""
    assert code in (1, 2), (words, code, text)
    assert "this is a bug" not in text, (words, text)
    assert "Traceback" not in text, (words, text)
    assert len(text) < 3000, (words, len(text))
    shown = value.strip()[:20]
    option = words[-1].partition("=")[0].lstrip("-").replace("-", "_")
    is_named = (
        value == "/dev/null"
        or not shown.isprintable()
        or shown in text
        or option in text.replace("-", "_")
    )
    assert is_named, (words, text)


@pytest.mark.parametrize(("command", "option"), cases(), ids=lambda it: it or "argument")
def test_every_wrong_value_is_told(place, monkeypatch, command, option):
    monkeypatch.chdir(place)
    before = listing(place)
    few = NO_PLACES if option in PLACES else (*WRONG[:4], *WRONG[-9:])
    chosen = few if option in PLACES | TEXTS else WRONG
    for value in [it for it in chosen if option or not it.startswith("-")]:
        words = words_with(command, option, value)
        code, text = run(words)
        if "stored already holds the study" in text:
            continue  # A table that was understood as it is.
        if code not in (0, 4, 5):
            check_refusal(words, value, code, text)
            assert listing(place) == before, words
        elif option and option not in TEXTS and command != "archive":
            assert value in TAKEN.get(option, set()), (words, code, text)
        before = listing(place)


def test_every_command_is_among_them():
    assert {name.split()[0] for name in BASES} | ASK_THE_AGENT >= {name for name, *_ in COMMANDS}
