"""Conducting a study from the command line: options, the run, the answer printed."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.finish import Place, show_results_of
from iolab.cli.forecast import forecast, short_text
from iolab.cli.services import Services
from iolab.errors import AnalysisError
from iolab.run import conduct as conductor
from iolab.run.dry_run import rehearse
from iolab.run.options import RunOptions
from iolab.run.prepare import prepare
from iolab.run.stop import pressed_by_signals
from iolab.store.users_files import Allowed
from iolab.study.model import Study


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
    study: Study, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Run, continue or rehearse `study`; returns the exit code."""
    options = run_options(arguments)
    is_drawn = study.seed is None and not options.is_resumed
    prepared = prepare(study, options, services.load_core(), services.analysis, console)
    if options.is_dry_run:
        conductor.note_plan(prepared)
        rehearse(prepared)
        console.result(short_text(forecast(prepared.plan, prepared.testbed)))
        if is_drawn:
            console.result(
                f"The order is that of seed {prepared.plan.seed}; the run draws another one, "
                f"unless it is given --seed {prepared.plan.seed}."
            )
        return 0
    with ExitStack() as stack:
        done = conductor.conduct(prepared, stack.enter_context(pressed_by_signals()))
    code = _show(done, services, console, arguments)
    if done.problem is not None:
        raise done.problem
    return code


def _show(
    done: conductor.Conducted, services: Services, console: Console, arguments: argparse.Namespace
) -> int:
    """Print the answer; a study that ended early may have none yet."""
    outcome, database = done.outcome, done.database
    allowed = Allowed.of(arguments.overwrite)
    place = Place(database, database.parent, database, units=arguments.units, allowed=allowed)
    try:
        return show_results_of(place, services, console, is_strict=arguments.strict)
    except AnalysisError as error:
        if outcome is not None and outcome.ending == "complete" and not outcome.mismatches:
            raise
        console.note(f"iolab: no verdict yet: {error}")
        return 0
