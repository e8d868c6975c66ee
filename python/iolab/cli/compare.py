"""``iolab compare``: a whole study from flags."""

from __future__ import annotations

import argparse

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.study.load import study_from_table

NAME = "compare"
HELP = "compare schedulers, file systems, options or record sizes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    flags.add_study_flags(parser, is_testbed_required=True)
    flags.add_factor_flags(parser)
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the study that the flags describe."""
    from iolab.cli.conduct import conduct

    study = study_from_table(flags.study_table(arguments), flags.flag_source())
    return conduct(study, arguments, services, console)
