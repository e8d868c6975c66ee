"""``iolab run``: a study from a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import StudyError
from iolab.store.db import STORE_NAME
from iolab.study.load import load_study

NAME = "run"
HELP = "run a study file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("study", metavar="STUDY.toml", help="the study; flags below override it")
    flags.add_study_flags(parser, is_testbed_required=False)
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the study in the file."""
    from iolab.cli.conduct import conduct

    path = Path(arguments.study)
    if (path / STORE_NAME).exists():
        raise StudyError(
            f"{path} holds results, not a study file",
            f"`iolab report {path}` shows them, `iolab run STUDY.toml --out {path} --resume` "
            "continues them",
        )
    study = load_study(path, flags.overrides(arguments), override_source=flags.flag_source())
    return conduct(study, arguments, services, console)
