"""``iolab run``: a study from a file, or a stored one again."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.errors import StudyError
from iolab.library.services import Services

NAME = "run"
HELP = "run a study file, or a stored study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "study",
        metavar="STUDY.toml|DIR",
        help="a study file (.toml), or the directory or archive of a stored study, which runs again"
        " into a new directory (with --resume it goes on in its own); flags below override it",
    )
    flags.add_study_flags(parser, is_testbed_required=False)
    flags.add_run_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the study in the file, or the stored one."""
    from iolab.cli.conduct import conduct
    from iolab.library.conducted import study_again
    from iolab.library.stored import is_stored

    path, keys = Path(arguments.study), flags.study_keys(arguments)
    options = flags.run_options(arguments)
    if not is_stored(path):
        return conduct(keys.load(path), options, arguments, services, console)
    study, options = study_again(path, keys, options)
    if study.command:
        from iolab.library.dialect.run import conduct_line

        if not options.is_dry_run:
            _refuse_shown(path, arguments)
        return conduct_line(study, options, services, console, path)
    return conduct(study, options, arguments, services, console)


def _refuse_shown(path: Path, arguments: argparse.Namespace) -> None:
    """Refuse flags about the report: the command of another program prints its own table.

    Raises
    ------
    StudyError : one was given.
    """
    from iolab.cli.defaults import read_defaults

    usual = read_defaults().get("units", flags.DEFAULT_UNITS)
    given = "--strict" if arguments.strict else f"--units {arguments.units}"
    if arguments.strict or arguments.units != usual:
        raise StudyError(
            f"{given} is about the report, and {path} holds the command line of another program, "
            "which prints its own table",
            f"leave it out here; `iolab report DIR {given}` shows the report",
        )
