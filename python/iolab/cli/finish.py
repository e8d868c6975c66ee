"""From a store to what the user sees: the sentence, the table, and where the files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from iolab import units
from iolab.cli import calibrations
from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import IolabError
from iolab.store.db import STORE_NAME, Store
from iolab.store.owner import give_to_user, make_directories
from iolab.store.read import without_collecting
from iolab.units import System

EXIT_UNDECIDED = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study is read, and where its report goes."""

    database: Path
    out_dir: Path
    source: Path
    """What the user is told to keep: the database, or the archive that it came from."""
    asked: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Another ``metric`` to judge by, and whose it is (``metric_of``), than the study named."""
    units: System = "iec"
    """In which amounts of bytes are written."""


def show_results_of(
    place: Place, services: Services, console: Console, *, is_strict: bool = False
) -> int:
    """Judge, write the reports, print the answer; returns the exit code.

    The rendered text begins with the verdict's sentence. `asked` may name another `metric`, and
    whose it is (`metric_of`), than the study did.

    Raises
    ------
    AnalysisError : the stored trials do not allow a verdict.
    """
    with without_collecting(), units.shown_in(place.units):
        return _show_results(place, services, console, is_strict)


def _show_results(place: Place, services: Services, console: Console, is_strict: bool) -> int:
    out_dir = place.out_dir
    with Store.open_reader(place.database) as store:
        data = store.load_data()
        data = replace(
            data,
            by_hand=services.by_hand(store, data),
            curves=store.load_curves(),
            calibration=calibrations.find_for(data.study.testbed, data.facts),
        )
    if place.asked:
        data = replace(data, study=replace(data.study, **place.asked))
    verdict = services.judge(data)
    try:
        make_directories(out_dir)
        paths = services.write_all(data, verdict, out_dir)
    except OSError as error:
        raise IolabError(
            f"the report cannot be written to {out_dir}: {error}", "name another one with --out"
        ) from None
    give_to_user(paths.html, paths.xlsx, paths.verdict_json)
    console.result(services.render(data, verdict, console.width).rstrip("\n"))
    console.result()
    for label, path in (
        ("report", paths.html),
        ("workbook", paths.xlsx),
        ("verdict", paths.verdict_json),
        ("data", place.source),
    ):
        console.result(f"{label + ':':10}{path}")
    is_open = verdict.headline_word == "undecided" and data.study.is_comparison
    data.derived.clear()  # It refers back to the data: nothing is left for the garbage collector.
    return EXIT_UNDECIDED if is_strict and is_open else 0


def find_database(path: Path) -> Path:
    """Database of a results directory, or the database itself."""
    return path / STORE_NAME if path.is_dir() or path.suffix != ".db" else path
