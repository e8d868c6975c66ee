"""``iolab gate``: for continuous integration, one line per cell and an exit code."""

from __future__ import annotations

import argparse

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, table_words
from iolab.errors import IolabError
from iolab.library.services import Services

NAME = "gate"
HELP = "fail if a study is worse than a baseline: exit 0 pass, 4 undecided, 5 regression"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("before", metavar="BASELINE", help="directory, archive or CSV file")
    parser.add_argument(
        "after",
        metavar="NEW",
        nargs="?",
        help="the study that must not be worse; left out: the levels of BASELINE itself, against"
        " its own baseline",
    )
    for flag, side in (("--also-baseline", "BASELINE"), ("--also-new", "NEW")):
        parser.add_argument(
            flag,
            metavar="STUDY",
            action="append",
            default=[],
            help=f"a further session of {side}; may be repeated (3 a side are needed)",
        )
    parser.add_argument(
        "--runs-are-sessions",
        action="store_true",
        help="every round (of a table: run) was a session of its own, as in nightly runs",
    )
    parser.add_argument(
        "--metric",
        metavar="NAMES",
        default="",
        help="metrics that are gated, as in p99,throughput (throughput)",
    )
    parser.add_argument(
        "--allow-other-machine",
        action="store_true",
        help="compare although the two ran on different machines",
    )
    add_table_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the outcome of every cell; returns the code of rule R12."""
    from iolab.library.comparing import GateQuestion, gate_levels, gate_studies

    del services
    words = table_words(arguments)
    if arguments.after is None:
        _refuse_sessions(arguments)
        found = gate_levels(arguments.before, arguments.metric, words, console.note)
    else:
        asked = GateQuestion(
            before=[arguments.before, *arguments.also_baseline],
            after=[arguments.after, *arguments.also_new],
            metrics=arguments.metric,
            words=words,
            are_runs_sessions=arguments.runs_are_sessions,
            is_other_machine_allowed=arguments.allow_other_machine,
        )
        found = gate_studies(asked, console.note)
    for note in found.notes:
        console.note(f"note: {note}")
    console.result(found.text(console.width))
    return found.result.exit_code


def _refuse_sessions(arguments: argparse.Namespace) -> None:
    """Refuse further sessions of two sides where only one study is named."""
    if arguments.also_baseline or arguments.also_new:
        raise IolabError(
            "--also-baseline and --also-new add sessions to two sides, but only one study is named",
            "name the new one, too: iolab gate BASELINE NEW --also-baseline ... --also-new ...",
        )
