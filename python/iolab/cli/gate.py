"""``iolab gate``: for continuous integration, one line per cell and an exit code."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, wishes_of
from iolab.cli.services import Services
from iolab.cli.studies import read_study
from iolab.errors import IolabError
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
        help="metrics that are gated, as in latency_ns_p99 (throughput)",
    )
    parser.add_argument(
        "--allow-other-machine",
        action="store_true",
        help="compare although the two ran on different machines",
    )
    add_table_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the outcome of every cell; returns the code of rule R12."""
    from iolab.report.diff_text import gate_text
    from iolab.stats.diff import compare_studies
    from iolab.stats.gate import gate

    asked = tuple(name.strip() for name in arguments.metric.split(",") if name.strip())
    _check_metrics(asked)
    before = read_study(Path(arguments.before), arguments, console)
    after = read_study(Path(arguments.after), arguments, console)
    shared = {m.metric for m in before.measurements} & {m.metric for m in after.measurements}
    missing = [name for name in asked if name not in shared]
    if missing:
        raise IolabError(
            f"--metric {missing[0]}: not measured by both studies",
            f"both have {', '.join(sorted(shared)) or 'nothing in common'}",
        )
    margin = wishes_of(arguments).margin
    diff = compare_studies(before, after, margin=margin, metrics=asked, roles=("primary",))
    if diff.machines and not arguments.allow_other_machine:
        first = diff.machines[0]
        told = visible_line(f"{first.name}: {first.before} -> {first.after}")
        raise IolabError(
            f"the two studies ran on different machines ({told[:200]}): a difference would be that"
            " of machines",
            "gate on one machine, or insist with --allow-other-machine; `iolab diff` tells all",
        )
    for difference in diff.environment[:3]:
        told = visible_line(f"{difference.name}: {difference.before} -> {difference.after}")
        console.note(f"note: {told[:200]}")
    if len(diff.environment) > 3:
        console.note(f"note: {len(diff.environment) - 3} more differences: see iolab diff")
    result = gate(diff)
    console.result(gate_text(diff, result, console.width))
    return result.exit_code


def _check_metrics(names: tuple[str, ...]) -> None:
    from iolab.stats.metrics import METRIC_BY_NAME
    from iolab.study.factors import nearest

    for name in names:
        if name not in METRIC_BY_NAME:
            raise IolabError(
                f"--metric {name}: there is no such metric{nearest(name, METRIC_BY_NAME)}",
                f"metrics are {', '.join(METRIC_BY_NAME)}",
            )
