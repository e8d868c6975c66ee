"""``iolab gate``: for continuous integration, one line per cell and an exit code."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, wishes_of
from iolab.cli.services import Services
from iolab.cli.studies import check_table_flags, read_study
from iolab.errors import IolabError
from iolab.study.metric_names import parse_metric
from iolab.visible import visible_line

NAME = "gate"
HELP = "fail if a study is worse than a baseline: exit 0 pass, 4 undecided, 5 regression"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("before", metavar="BASELINE", help="directory, archive or CSV file")
    parser.add_argument("after", metavar="NEW", help="the study that must not be worse")
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
    from iolab.stats.diff import compare_studies
    from iolab.stats.gate import gate

    asked = _metrics(arguments.metric)
    check_table_flags(arguments, [arguments.before, arguments.after])
    before = read_study(Path(arguments.before), arguments, console)
    after = read_study(Path(arguments.after), arguments, console)
    shared = {m.metric for m in before.measurements} & {m.metric for m in after.measurements}
    missing = [name for name in asked if name not in shared]
    if missing:
        raise IolabError(
            f"--metric: {missing[0]} was not measured by both studies",
            f"both have {', '.join(sorted(shared)) or 'nothing in common'}",
        )
    margin = wishes_of(arguments).margin
    diff = compare_studies(before, after, margin=margin, metrics=asked, roles=("primary",))
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


def _metrics(text: str) -> tuple[str, ...]:
    """Metrics by their names or short ones, as every other command takes them."""
    try:
        names = [parse_metric(name) for name in text.split(",") if name.strip()]
    except ValueError as error:
        raise IolabError(f"--metric: {error}", "as in --metric p99,throughput") from None
    return tuple(dict.fromkeys(names))
