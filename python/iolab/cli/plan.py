"""``iolab plan``: what a study will cost and can decide, or what one says about the next."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.library.services import Services

NAME = "plan"
HELP = "say how many rounds, how much time and space a study needs, before it runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "study",
        metavar="STUDY.toml|DIR",
        help="the study; flags below override it; or results, to look back at them",
    )
    flags.add_study_flags(parser, is_testbed_required=False)
    parser.add_argument(
        "--noise",
        metavar="SHARE",
        help="sd of one round's ratio, as in 3%% (a stored A/A study, else a range)",
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the plan, or look back at results."""
    from iolab.library.planning import is_result, look_back_at, planned

    path, keys, noise = Path(arguments.study), flags.study_keys(arguments), arguments.noise
    if is_result(path):
        console.result(look_back_at(path, keys, noise, services, console.note))
        return 0
    found = planned(path, keys, noise, services)
    for note in found.notes:
        console.note(f"iolab: note: {note}")
    console.result(found.text())
    found.check_space()
    return 0
