"""Conducting a study from the command line: options, the run, the answer printed."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.finish import Place, show_results_of
from iolab.errors import AnalysisError
from iolab.frozen import frozen
from iolab.library.conducted import conducted
from iolab.library.services import Services
from iolab.run.conduct import Conducted
from iolab.run.options import RunOptions
from iolab.store.users_files import Allowed
from iolab.study.model import Study
from iolab.units import System


@frozen
class AnswerForm:
    """How the answer is printed."""

    units: System = "iec"
    is_strict: bool = False
    """Whether an answer that is open ends with an exit code of its own."""

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> AnswerForm:
        """What the flags of `iolab.cli.flags.add_run_flags` say."""
        return cls(arguments.units, arguments.strict)


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """Options of a run from the flags of `iolab.cli.flags.add_run_flags`."""
    has_file = getattr(arguments, "study", None) is not None
    return RunOptions(
        out=Path(arguments.out) if arguments.out else None,
        is_resumed=arguments.resume,
        is_dry_run=arguments.dry_run,
        is_traced=arguments.trace,
        overwrite=tuple(arguments.overwrite),
        is_other_machine_allowed=arguments.allow_other_machine,
        image_dir=arguments.image_dir,
        allow_knobs_on=tuple(arguments.allow_knobs_on),
        erase_serial=arguments.erase_serial,
        precondition=arguments.precondition,
        precondition_round=arguments.precondition_round,
        accept_writes=arguments.accept_writes,
        is_testbed_from_file=has_file and not arguments.testbed,
    )


def conduct(
    study: Study, options: RunOptions, shown: AnswerForm, services: Services, console: Console
) -> int:
    """Run, continue or rehearse `study`; returns the exit code."""
    done = conducted(study, options, services, console)
    if done is None:
        return 0
    code = _show(done, Allowed.of(options.overwrite), shown, services, console)
    if done.problem is not None:
        raise done.problem
    return code


def _show(
    done: Conducted,
    allowed: Allowed,
    shown: AnswerForm,
    services: Services,
    console: Console,
) -> int:
    """Print the answer; a study that ended early may have none yet."""
    outcome, database = done.outcome, done.database
    place = Place(database, database.parent, database, units=shown.units, allowed=allowed)
    try:
        return show_results_of(place, services, console, is_strict=shown.is_strict)
    except AnalysisError as error:
        if outcome is not None and outcome.ending == "complete" and not outcome.mismatches:
            raise
        console.note(f"iolab: no verdict yet: {error}")
        return 0
