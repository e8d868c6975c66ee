"""Manual pages in man(7), one of iolab and one per command, from the parsers of the commands.

`make docs` keeps them in docs/man, `pip install .` puts them into share/man/man1. What stands here
beside the parsers: sections about files and variables, and examples, whose words a test parses.
The options of other programs come from the tables of their reference pages.
"""

import argparse
import importlib
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

FOLDER: Final = "docs/man"
DATE: Final = "2026-11-26"
"""Day on which the text of this module changed last."""
_WIDTH: Final = 78
_TEXT: Final = {"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "-": r"\-"}

ENVIRONMENT: Final = (
    ("IOLAB_AGENT", "Path of the program iolab-agent, if it is not beside Python."),
    ("IOLAB_DEBUG", "If it is set, an error shows where in the code it arose."),
    ("XDG_CONFIG_HOME", "Directory of iolab.toml, in place of ~/.config."),
    ("XDG_STATE_HOME", "Directory of the journal, in place of ~/.local/state."),
    ("BROWSER", "Browser in which `iolab report --open` shows the page."),
)
FILES: Final = (
    (
        "iolab-out/NAME-N",
        "Results of a study: study.db, report.html, report.xlsx and verdict.json.",
    ),
    ("~/.config/iolab.toml", "Defaults of the user: margin, out and units."),
    ("/etc/iolab/agent.toml", "What ordinary users may let the agent do as root."),
    ("/var/lib/iolab/journal", "What a killed run left to be undone by `iolab restore`."),
)
EXAMPLES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "compare": (
        (
            "iolab compare --on loop:1g --scheduler none,mq-deadline,bfq --record-size 4k,32k",
            "Compare schedulers and record sizes on a private loop device.",
        ),
        (
            "iolab compare --on sim:sata7200-4tb --scheduler deadline,bfq --rounds 8 --direct",
            "Compare schedulers on a simulated disk; no root is needed.",
        ),
    ),
    "run": (
        ("iolab run study.toml --dry-run", "Show all that a study would do."),
        ("iolab run iolab-out/mine-1 --resume", "Continue a study that was stopped."),
        ("iolab run study.toml --jobs 8", "Simulate in eight processes."),
        ("iolab run study.toml --shard 1/4 --out part-1", "Simulate the first of four parts."),
    ),
    "merge": (("iolab merge part-1 part-2 --out whole", "Make one study of its two shards."),),
    "check": (
        ("iolab check /var/lib/etcd --for etcd", "Say if the storage is fast enough for etcd."),
        ("iolab check /srv --time 3m", "Say what a directory is good for."),
        ("iolab check --list", "Describe the requirements and their sources."),
    ),
    "advise": (
        (
            "iolab advise stripe --raid 5 --disks 8 --unit 128k --fs ufs --memory 1g",
            "Print the lines that fit UFS to an array, and why.",
        ),
        (
            "iolab advise stripe --raid 6 --disks 10 --unit 64k --fs xfs --prove",
            "Compare the advice with the defaults on a simulated array.",
        ),
        ("iolab advise random --fs ext4 --app-io 8k", "Print the rules for a database."),
    ),
    "plan": (("iolab plan study.toml --noise 3%", "Say how many rounds a study needs."),),
    "aa": (("iolab aa --on dir:/var/tmp --rounds 20", "Measure the noise of a directory."),),
    "report": (
        ("iolab report iolab-out/mine-1 --open", "Write the report and show the page."),
        ("iolab report iolab-out/mine-1 --metric p99 --full", "Judge by another metric."),
    ),
    "watch": (("iolab watch iolab-out/mine-1", "Follow a study that runs elsewhere."),),
    "export": (("iolab export iolab-out/mine-1 --out mine.csv", "Write every value as CSV."),),
    "import": (("iolab import none=a.json bfq=b.json", "Compare two results of fio."),),
    "diff": (("iolab diff iolab-out/old-1 iolab-out/new-1", "Compare two stored studies."),),
    "history": (
        ("iolab history iolab-out --metric p99", "Show p99 of all studies in a folder."),
        ("iolab history a b c --out history.html", "Draw the studies a, b and c."),
    ),
    "fleet": (("iolab fleet a=a.iolab b=b.iolab c=c.iolab", "Judge three hosts together."),),
    "gate": (("iolab gate iolab-out/new-1 --baseline baseline.iolab", "Find a regression."),),
    "lint": (("iolab lint study.toml", "Check a study before it runs."),),
    "archive": (("iolab archive iolab-out/mine-1", "Put a study into one file."),),
    "restore": (("iolab restore", "Put back what a killed run changed."),),
    "doctor": (("iolab doctor", "Say what is possible here."),),
    "pattern": (
        ("iolab pattern calls.txt", "Say what a program did, from the text of strace."),
        (
            "sudo iolab pattern --pid 4711 --seconds 10",
            "Say what a process does, by the kernel's trace points.",
        ),
        (
            "iolab pattern --for 'tar cf - /etc' --emit fio",
            "Make a job file of fio from a program.",
        ),
    ),
    "iostat": (("iolab iostat -x 1 5", "Show five reports, one per second."),),
    "workloads": (("iolab workloads", "List the workloads in which streams compete."),),
}
"""Command lines per command, each with what it does."""


def man_pages(version: str) -> dict[str, Callable[[], str]]:
    """Path of each page, relative to the source, and the function that writes it.

    Parameters
    ----------
    version : of iolab, as in Cargo.toml.
    """
    main: Any = importlib.import_module("iolab.cli.main")
    pages: dict[str, Callable[[], str]] = {f"{FOLDER}/iolab.1": lambda: overview(version)}
    for name, module, _ in main.COMMANDS:
        pages[f"{FOLDER}/iolab-{name}.1"] = _writer(name, module, version)
    for name in main.DIALECTS:
        pages[f"{FOLDER}/iolab-{name}.1"] = _program_writer(name, version)
    return pages


def _program_writer(name: str, version: str) -> Callable[[], str]:
    return lambda: program_page(name, version)


def _writer(name: str, module: str, version: str) -> Callable[[], str]:
    return lambda: command_page(name, module, version)


_NOT_WRITTEN: Final = "refused for safety: nothing was written"
_DAMAGED: Final = "the study or the archive is damaged"
_VERIFIED: Final = "other data than was written (`--verify`), or a damaged study"
EXITS: Final[dict[int, dict[str, str]]] = {
    2: {
        **dict.fromkeys(("compare", "run", "aa"), ""),
        "plan": "refused for safety, as the run would be",
        **dict.fromkeys(
            ("merge", "report", "export", "import", "history", "archive", "sim", "trace"),
            _NOT_WRITTEN,
        ),
        "pattern": _NOT_WRITTEN,
        "restore": "refused for safety: nothing was changed",
        "install-agent": "refused for safety: nothing was changed",
    },
    3: dict.fromkeys(("compare", "run", "aa", "restore", "trace"), ""),
    4: {
        **dict.fromkeys(
            ("compare", "run", "merge", "aa", "report", "import", "fleet"),
            "undecided, or it depends, with `--strict`",
        ),
        "gate": "undecided",
        "check": "undecided",
    },
    5: {
        **dict.fromkeys(("compare", "run", "aa"), _VERIFIED),
        **dict.fromkeys(
            ("merge", "report", "watch", "export", "diff", "history", "fleet", "archive", "iostat"),
            _DAMAGED,
        ),
        "gate": "the new study is worse than the baseline, or a study is damaged",
        "lint": "a rule is broken, or the study is damaged",
        "sim": "scenarios: a scheduler did not do as expected",
        **dict.fromkeys(("trace", "pattern"), "the trace is damaged"),
        "check": "the requirement is not met",
    },
}
"""Commands that can have an exit code, with their own words for it; other codes are of all."""


def overview(version: str) -> str:
    """Page of iolab itself: its commands, exit codes, files and variables."""
    main: Any = importlib.import_module("iolab.cli.main")
    first, *_ = main.EXAMPLES.partition(" For example:")
    lines = [
        *_head("iolab", "compare ways of doing storage I/O, with verdicts", version),
        ".SH SYNOPSIS",
        r".B iolab",
        r".I COMMAND",
        r"[\fIOPTION\fR]...\&",
        ".SH DESCRIPTION",
        *_filled(_text(first)),
        *_filled(
            _text("Results are stored in a directory, with a report as a page and as a workbook.")
        ),
        ".SH COMMANDS",
    ]
    for name, _, about in main.COMMANDS:
        lines += _entry(rf"\fBiolab\-{_text(name)}\fR(1)", about)
    lines += [".SH OTHER PROGRAMS", _text("iolab also understands the command lines of:")]
    for name in main.DIALECTS:
        lines += _entry(rf"\fBiolab\-{_text(name)}\fR(1)", f"{name}, with its own output")
    lines += [".SH OPTIONS"]
    lines += _entry(r"\fB\-\-version\fR", "print the version")
    lines += _entry(r"\fB\-\-help\fR", "list commands and exit codes")
    lines += _entry(
        r"\fB\-\-completion\fR \fISHELL\fR",
        "print a script that completes commands and options: bash, zsh or fish",
    )
    examples = [line.strip() for line in main.EXAMPLES.splitlines() if line.startswith("  iolab")]
    lines += [".SH EXAMPLES", ".nf", *map(_text, examples), ".fi"]
    lines += _exit_codes()
    for title, rows in ("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT):
        lines.append(f".SH {title}")
        for name, about in rows:
            lines += _entry(rf"\fI{_text(name)}\fR", about)
    see = [f"iolab-{name}" for name in (*(row[0] for row in main.COMMANDS), *main.DIALECTS)]
    return "\n".join([*lines, *_see_also([*see, "fio", "iostat", "blktrace"])]) + "\n"


def command_page(name: str, module: str, version: str) -> str:
    """Page of a command: its options, those of its own commands, examples."""
    parsers: Any = importlib.import_module("iolab.cli.all_parsers")
    main: Any = importlib.import_module("iolab.cli.main")
    about = {row[0]: row[2] for row in main.COMMANDS}[name]
    parser: argparse.ArgumentParser = parsers.command_parser(module)
    subjects: dict[str, argparse.ArgumentParser] = parsers.subject_parsers(module)
    lines = [*_head(f"iolab-{name}", about, version), ".SH SYNOPSIS"]
    for one in subjects.values() or [parser]:
        lines += [*_synopsis(one), ".br"]
    lines[-1:] = [".SH DESCRIPTION", *_filled(_text(parser.description or ""))]
    if subjects:
        lines.append(".SH COMMANDS")
        for inner in subjects.values():
            lines += [f'.SS "{_text(inner.prog)}"', *_filled(_text(inner.description or ""))]
            lines += _options(inner)
    else:
        lines.append(".SH OPTIONS")
        for title, actions in groups(parser):
            lines += [f'.SS "{_text(title.capitalize())}"', *_entries(parser, actions)]
    if name in EXAMPLES:
        lines.append(".SH EXAMPLES")
        for line, does in EXAMPLES[name]:
            lines += _entry(rf"\fB{_text(line)}\fR", does)
    lines += _exit_codes_of(name)
    return "\n".join([*lines, *_see_also(["iolab", *_neighbours(name)])]) + "\n"


_PROGRAM_EXITS: Final = (0, 1, 2, 3, 5, 70, 128, 130)
"""Exit codes of the command lines of other programs."""


def program_page(name: str, version: str) -> str:
    """Page of another program's command line: every row of its reference tables."""
    tables: Any = importlib.import_module("iolab.library.program_options")
    main: Any = importlib.import_module("iolab.cli.main")
    lines = [
        *_head(f"iolab-{name}", f"run the command line of {name}, with its output", version),
        ".SH SYNOPSIS",
        rf"\fBiolab {_text(name)}\fR",
        r"[\fIOPTION\fR]...\&",
        ".SH DESCRIPTION",
        *_filled(
            _text(
                f"Measures what a command line of {name} asks for, prints what {name} prints, and"
                " stores the results as a study. Behind `here:` stands what differs from the"
                " original."
            )
        ),
    ]
    sections = tables.program_sections(name)
    for title, wanted in ("OPTIONS", True), ("LANGUAGE", False):
        mine = [section for section in sections if section.has_options == wanted]
        lines += [f".SH {title}"] if mine else []
        for section in mine:
            lines.append(f'.SS "{_text(section.title)}"')
            for row in section.rows:
                lines += _entry(rf"\fB{_text(row.shown)}\fR", row.about or "No more is to be said")
    if name in EXAMPLES:
        lines.append(".SH EXAMPLES")
        for line, does in EXAMPLES[name]:
            lines += _entry(rf"\fB{_text(line)}\fR", does)
    lines.append(".SH EXIT STATUS")
    for code, about in main.EXIT_CODES:
        if code in _PROGRAM_EXITS and (code != main.EXIT_OF_FIO or name == "fio"):
            text = "other data than was written was read" if code == 5 else about
            lines += _entry(rf"\fB{code}\fR", text)
    return "\n".join([*lines, *_see_also(["iolab", "iolab-report"])]) + "\n"


def groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Groups of a parser with what a page shows of them."""
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        shown = [a for a in shown if not isinstance(a, argparse._HelpAction)]
        if shown:
            title = {"positional arguments": "arguments"}.get(str(group.title), str(group.title))
            yield title, shown


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for _, actions in groups(parser):
        yield from _entries(parser, actions)


def _entries(parser: argparse.ArgumentParser, actions: Sequence[argparse.Action]) -> Iterator[str]:
    for action in actions:
        about = " ".join((action.help or "").split()) % {**vars(action), "prog": parser.prog}
        if action.choices:
            about += f" [{' | '.join(map(str, action.choices))}]"
        yield from _entry(_name_of(action), about)


def _name_of(action: argparse.Action) -> str:
    value = _text(str(action.metavar or action.dest.upper()))
    if not action.option_strings:
        return rf"\fI{value}\fR"
    ending = "" if action.nargs == 0 else rf" \fI{value}\fR"
    return ", ".join(rf"\fB{_text(flag)}\fR{ending}" for flag in action.option_strings)


def _synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield rf"\fB{_text(parser.prog)}\fR"
    actions = [action for _, found in groups(parser) for action in found]
    options = [action for action in actions if action.option_strings]
    if any(not action.required for action in options):
        yield r"[\fIOPTION\fR]...\&"
    yield from (_name_of(a).rpartition(", ")[2] for a in options if a.required)
    for action in actions:
        if not action.option_strings:
            name = _name_of(action)
            many = r"...\&" if action.nargs in ("+", "*", argparse.REMAINDER) else ""
            yield f"[{name}]{many}" if action.nargs in ("?", "*") else f"{name}{many}"


def _head(name: str, about: str, version: str) -> list[str]:
    return [
        r".\" Written by `make docs` from python/iolab/cli and tools/man_pages.py.",
        f'.TH {_text(name.upper())} 1 {DATE} "iolab {version}" "iolab"',
        ".SH NAME",
        *_filled(rf"{_text(name)} \- {_text(about)}"),
    ]


def _entry(name: str, about: str) -> list[str]:
    return [".TP", name, *_filled(_text(_as_sentence(about)))]


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _exit_codes() -> Iterator[str]:
    main: Any = importlib.import_module("iolab.cli.main")
    yield ".SH EXIT STATUS"
    for code, about in main.EXIT_CODES:
        yield from _entry(rf"\fB{code}\fR", about)


def _exit_codes_of(name: str) -> Iterator[str]:
    """Exit codes that a command can have, in its own words where those of all say too much."""
    main: Any = importlib.import_module("iolab.cli.main")
    yield ".SH EXIT STATUS"
    for code, about in main.EXIT_CODES:
        if code == main.EXIT_OF_FIO or (code in EXITS and name not in EXITS[code]):
            continue
        yield from _entry(rf"\fB{code}\fR", EXITS[code][name] or about if code in EXITS else about)


def _neighbours(name: str) -> list[str]:
    main: Any = importlib.import_module("iolab.cli.main")
    names = [row[0] for row in main.COMMANDS]
    at = names.index(name)
    return [f"iolab-{other}" for other in (*names[max(0, at - 2) : at], *names[at + 1 : at + 3])]


def _see_also(names: Sequence[str]) -> list[str]:
    *first, last = sorted(names)
    lines = [f".BR {_text(name)} (1)," for name in first]
    return [".SH SEE ALSO", *lines, f".BR {_text(last)} (1)"]


def _text(text: str) -> str:
    """Text as it stands in a page; what is in backticks is bold."""
    whole = " ".join(text.split())
    parts = re.split(r"`([^`]+)`", whole)
    shown = [
        _escaped(part) if i % 2 == 0 else rf"\fB{_escaped(part)}\fR" for i, part in enumerate(parts)
    ]
    joined = "".join(shown)
    return rf"\&{joined}" if joined.startswith((".", r"\(aq")) else joined


def _filled(text: str) -> list[str]:
    """Lines of at most 78 characters, none of which begins like a request."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [rf"\&{line}" if line.startswith((".", "'")) else line for line in lines]


def _escaped(text: str) -> str:
    return "".join(_TEXT.get(character, character) for character in text)
