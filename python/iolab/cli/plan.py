"""``iolab plan``: what a study will cost and can decide, or what one says about the next."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from iolab import units
from iolab.cli import flags
from iolab.cli.console import Console
from iolab.cli.studies import read_study
from iolab.errors import AnalysisError, IolabError
from iolab.library.forecast import check_forecast_room, forecast, forecast_text
from iolab.library.services import Services
from iolab.run.refusals import check_plan
from iolab.study.checks import FEW_ROUNDS
from iolab.study.load import load_study
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.testbed.model import make_testbed, with_journal_device

NAME = "plan"
HELP = "rounds needed, chances, time, bytes and space of a study, before it runs"


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
    path = Path(arguments.study)
    if path.is_dir() or path.suffix in (".db", ".iolab"):
        return _look_back(path, arguments, services, console)
    if not path.exists():
        raise IolabError(f"{path} does not exist", "name a study file, or results to look back at")
    source = flags.flag_source()
    study = load_study(path, flags.overrides(arguments), override_source=source)
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    if "true" in study.levels_in_use("external_journal"):
        testbed = with_journal_device(testbed)
    study = replace(study, testbed=TestbedRequest(*testbed.request))
    plan = make_plan(study.with_seed(study.seed or 0))
    core = services.load_core()
    check_plan(testbed, plan, core)
    for note in plan.notes:
        if note.code != FEW_ROUNDS:  # The forecast says how many are needed, of what is known here.
            console.note(f"iolab: note: {note.message}: {note.hint}")
    console.result(forecast_text(forecast(plan, testbed, _noise(arguments.noise))))
    check_forecast_room(plan, testbed)
    return 0


def _look_back(
    path: Path, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Print what a stored study says about the next one like it."""
    from iolab.library.power_reached import look_back_text
    from iolab.stats.power_reached import look_back

    given = [*flags.overrides(arguments), *(["noise"] if arguments.noise is not None else [])]
    if given:
        raise IolabError(
            f"--{given[0].replace('_', '-')}: {path} holds results, which are as they are",
            "name a study file to plan another study",
        )
    data = read_study(path, arguments, console)
    if data.study.kind == "imported":
        raise AnalysisError(
            "an imported table has no rounds to look back at",
            "its report says how many runs would decide",
        )
    verdict = services.judge(data)
    console.result(look_back_text(data, look_back(data, verdict)))  # type: ignore[arg-type]
    return 0


def _noise(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return units.parse_share(text)
    except ValueError as error:
        raise IolabError(f"--noise: {error}", "as in --noise 3%") from None
