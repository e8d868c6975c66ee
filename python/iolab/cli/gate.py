"""``iolab gate``: for continuous integration, one line per cell and an exit code."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, wishes_of
from iolab.cli.studies import check_table_flags, read_study
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.study.metric_names import parse_metric
from iolab.visible import visible_line

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
    from iolab.report.diff_text import OTHER_KINDS, gate_text
    from iolab.stats.diff import as_sessions, compare_studies
    from iolab.stats.gate import gate

    asked = _metrics(arguments.metric)
    if arguments.after is None:
        return _interleaved(arguments, services, console, asked)
    sides = [
        [arguments.before, *arguments.also_baseline],
        [arguments.after, *arguments.also_new],
    ]
    check_table_flags(arguments, [path for side in sides for path in side])
    found = [[read_study(Path(path), arguments, console) for path in side] for side in sides]
    before, after = (as_sessions(side) for side in found)
    shared = {m.metric for m in before.measurements} & {m.metric for m in after.measurements}
    missing = [name for name in asked if name not in shared]
    if missing:
        raise IolabError(
            f"--metric: {missing[0]} was not measured by both studies",
            f"both have {', '.join(sorted(shared)) or 'nothing in common'}",
        )
    margin = wishes_of(arguments).margin
    rounds = [len({m.round for m in data.measurements}) for data in (before, after)]
    sessions = (len(found[0]), len(found[1]))
    if arguments.runs_are_sessions:
        sessions = (rounds[0], rounds[1])
    diff = compare_studies(
        before, after, margin=margin, metrics=asked, roles=("primary",), sessions=sessions
    )
    if diff.machines and not arguments.allow_other_machine:
        first = diff.machines[0]
        told = visible_line(f"{first.name}: {first.before} -> {first.after}")
        if diff.has_other_kinds:
            raise IolabError(
                f"{arguments.before} is {first.before}, {arguments.after} is {first.after}: a"
                " difference would be that of a model from something measured",
                "gate a simulated study against a simulated one; --allow-other-machine compares"
                " them nevertheless",
            )
        raise IolabError(
            f"the two studies ran on different machines ({told[:200]}): a difference would be that"
            " of machines",
            "gate on one machine, or insist with --allow-other-machine; `iolab diff` tells all",
        )
    if diff.has_other_kinds:
        console.note(f"note: {OTHER_KINDS}")
    for difference in diff.environment[:3]:
        told = visible_line(f"{difference.name}: {difference.before} -> {difference.after}")
        console.note(f"note: {told[:200]}")
    if len(diff.environment) > 3:
        console.note(f"note: {len(diff.environment) - 3} more differences: see iolab diff")
    result = gate(diff)
    console.result(gate_text(diff, result, console.width))
    return result.exit_code


def _interleaved(
    arguments: argparse.Namespace, services: Services, console: Console, asked: tuple[str, ...]
) -> int:
    """Gate the levels of one study, which were interleaved in one session."""
    from iolab.report.diff_text import gate_text
    from iolab.stats.diff import diff_of_levels
    from iolab.stats.gate import gate
    from iolab.stats.judge import judge

    check_table_flags(arguments, [arguments.before])
    if arguments.also_baseline or arguments.also_new:
        raise IolabError(
            "--also-baseline and --also-new add sessions to two sides, but only one study is named",
            "name the new one, too: iolab gate BASELINE NEW --also-baseline ... --also-new ...",
        )
    if len(asked) > 1:
        raise IolabError("one study is gated by one metric", f"choose one of {', '.join(asked)}")
    data = read_study(Path(arguments.before), arguments, console)
    margin = wishes_of(arguments).margin
    changed: dict[str, Any] = {"margin": margin}
    changed |= {"metric": asked[0]} if asked else {}
    data = replace(data, study=replace(data.study, **changed))
    diff = diff_of_levels(judge(data), data.study.name)
    console.result(gate_text(diff, gate(diff), console.width))
    return gate(diff).exit_code


def _metrics(text: str) -> tuple[str, ...]:
    """Metrics by their names or short ones, as every other command takes them."""
    try:
        names = [parse_metric(name) for name in text.split(",") if name.strip()]
    except ValueError as error:
        raise IolabError(f"--metric: {error}", "as in --metric p99,throughput") from None
    return tuple(dict.fromkeys(names))
