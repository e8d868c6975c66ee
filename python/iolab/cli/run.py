"""``iolab run``: a study from a file, or a stored one again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.cli.hosts import refuse_way_without_hosts
from iolab.errors import StudyError
from iolab.frozen import replace
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.library.conducted import RunOptions

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
    flags.add_host_flags(parser)
    _add_spread_flags(parser)


def _add_spread_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("spreading simulated trials")
    group.add_argument(
        "--jobs", metavar="N", help="simulate in N processes of this machine (1); the same results"
    )
    group.add_argument(
        "--executor",
        metavar="WHERE",
        help="simulate on a Dask cluster: dask:tcp://HOST:PORT, or dask:local:N of this machine "
        "(pip install 'iolab[dask]')",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        help="run only the I-th of N parts, as in a job array; `iolab merge` joins them",
    )


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Run the study in the file, or the stored one."""
    from iolab.cli.conduct import conduct
    from iolab.library.conducted import study_again
    from iolab.library.stored import is_stored

    path, keys = Path(arguments.study), flags.study_keys(arguments)
    options = _spread(flags.run_options(arguments), arguments)
    if not is_stored(path):
        return conduct(keys.load(path), options, arguments, services, console)
    study, options = study_again(path, keys, options)
    if study.command:
        from iolab.library.dialect.run import conduct_line

        _refuse_spread(path, arguments)
        refuse_way_without_hosts(arguments)
        if not options.is_dry_run:
            _refuse_shown(path, arguments)
        return conduct_line(study, options, services, console, path)
    return conduct(study, options, arguments, services, console)


def _spread(options: RunOptions, arguments: argparse.Namespace) -> RunOptions:
    """The options, with where trials are simulated and which of them."""
    if arguments.jobs is None and arguments.executor is None and arguments.shard is None:
        return options
    from iolab.library.spreading import parse_shard, spread_of

    shard = None if arguments.shard is None else parse_shard(arguments.shard)
    spread = spread_of(arguments.jobs, arguments.executor)
    return replace(options, spread=spread, shard=shard)


def _refuse_spread(path: Path, arguments: argparse.Namespace) -> None:
    """Refuse to spread the command line of another program.

    Raises
    ------
    StudyError : it was asked for.
    """
    for name in ("jobs", "executor", "shard", "hosts"):
        if getattr(arguments, name) is not None:
            raise StudyError(
                f"--{name} is about studies, and {path} holds the command line of another program",
                f"leave --{name} out",
            )


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
