"""``iolab run``: a study from a file, or a stored one again."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from shlex import quote

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.errors import StudyError
from iolab.library.services import Services
from iolab.library.stored import directory_of, is_stored, stored_study
from iolab.run.options import RunOptions
from iolab.study.load import load_study

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
    from iolab.cli.conduct import AnswerForm, conduct, run_options

    path, asked, source = Path(arguments.study), flags.overrides(arguments), flags.flag_source()
    options = run_options(arguments)
    if not is_stored(path):
        study = load_study(path, asked, override_source=source)
        return conduct(study, options, AnswerForm.of(arguments), services, console)
    study = stored_study(path, asked, source)
    options = _stored_options(path, options)
    if study.command:
        from iolab.library.dialect.run import conduct_line

        if not options.is_dry_run:
            _refuse_shown(path, arguments)
        return conduct_line(study, options, services, console, path)
    return conduct(study, options, AnswerForm.of(arguments), services, console)


def _stored_options(path: Path, options: RunOptions) -> RunOptions:
    """Options of a stored study: continued in its own directory unless another one is named.

    Raises
    ------
    StudyError : an archive is to be continued.
    """
    if not options.is_resumed or options.out is not None:
        return options
    directory = directory_of(path)
    if directory is None:
        raise StudyError(
            f"{path} is an archive, in which nothing can be continued",
            f"unpack it first, as with `iolab archive --extract {quote(str(path))} --out DIR`, "
            "then `iolab run DIR --resume`",
        )
    # Its device was confirmed when it began; the serial or the marker on it is asked for again.
    return replace(options, out=directory, is_testbed_from_file=False)


def _refuse_shown(path: Path, arguments: argparse.Namespace) -> None:
    """Refuse flags about the report: the command of another program prints its own table.

    Raises
    ------
    StudyError : one was given.
    """
    given = "--strict" if arguments.strict else f"--units {arguments.units}"
    if arguments.strict or arguments.units != flags.DEFAULT_UNITS:
        raise StudyError(
            f"{given} is about the report, and {path} holds the command line of another program, "
            "which prints its own table",
            f"leave it out here; `iolab report DIR {given}` shows the report",
        )
