"""``iolab plan``: what a study will cost and can decide, or what one says about the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iolab import units
from iolab.errors import AnalysisError, IolabError
from iolab.frozen import frozen, replace
from iolab.library.flag_words import StudyKeys
from iolab.library.forecast import Forecast, check_forecast_room, forecast, forecast_text
from iolab.library.services import Services
from iolab.library.study import checked_study
from iolab.library.tables import TableWords, read_study
from iolab.run.refusals import check_plan
from iolab.study.checks import FEW_ROUNDS
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.testbed.model import make_testbed, with_journal_device


@frozen
class PlannedStudy:
    """A study that could run, and what that would cost and decide."""

    forecast: Forecast
    notes: tuple[str, ...]
    """Objections to its plan, with advice."""

    def text(self) -> str:
        """The plan, a fact per line."""
        return forecast_text(self.forecast)

    def check_space(self) -> None:
        """Make sure that there is room for its files.

        Raises
        ------
        TestbedError : there is not.
        """
        check_forecast_room(self.forecast.plan, self.forecast.testbed)


def is_result(path: Path) -> bool:
    """Tell whether a path means results to look back at, not a study file."""
    return path.is_dir() or path.suffix in (".db", ".iolab")


def planned(path: Path, keys: StudyKeys, noise: str | None, services: Services) -> PlannedStudy:
    """Plan a study file.

    Parameters
    ----------
    path : a study file.
    keys : top-level keys that replace its own.
    noise : sd of one round's ratio, as in ``3%``; None is a stored A/A study, else a range.
    services : the compiled half.

    Raises
    ------
    IolabError : there is no such file, or the study cannot run.
    """
    if not path.exists():
        raise IolabError(f"{path} does not exist", "name a study file, or results to look back at")
    study = checked_study(keys.load(path))
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    if "true" in study.levels_in_use("external_journal"):
        testbed = with_journal_device(testbed)
    study = replace(study, testbed=TestbedRequest(*testbed.request))
    plan = make_plan(study.with_seed(study.seed or 0))
    check_plan(testbed, plan, services.load_core())
    # The forecast says how many rounds are needed, of what is known here.
    notes = tuple(f"{note.message}: {note.hint}" for note in plan.notes if note.code != FEW_ROUNDS)
    return PlannedStudy(forecast(plan, testbed, _share(noise)), notes)


def look_back_at(
    path: Path, keys: StudyKeys, noise: str | None, services: Services, note: Callable[[str], None]
) -> str:
    """Facts of a stored study about the next one like it, one per line.

    Parameters
    ----------
    path : a results directory, its database or an archive.
    keys, noise : as of :func:`planned`: results take none.
    services : the statistics.
    note : hears of what an archive says of itself.

    Raises
    ------
    AnalysisError : there is nothing to look back at.
    """
    from iolab.library.power_reached import look_back_text
    from iolab.stats.power_reached import look_back

    given = [*keys.values, *(["noise"] if noise is not None else [])]
    if given:
        raise IolabError(
            f"--{given[0].replace('_', '-')}: {path} holds results, which are as they are",
            "name a study file to plan another study",
        )
    data = read_study(path, TableWords(), note)
    if data.study.kind == "imported":
        raise AnalysisError(
            "an imported table has no rounds to look back at",
            "its report says how many runs would decide",
        )
    return look_back_text(data, look_back(data, services.judge(data)))


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return units.parse_share(text)
    except ValueError as error:
        raise IolabError(f"--noise: {error}", "as in --noise 3%") from None
