"""From a store to what the user sees: the sentence, the table, and where the files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iolab import units
from iolab.cli import calibrations
from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import IolabError, RefusedError
from iolab.store.db import STORE_NAME, Store
from iolab.store.read import without_collecting
from iolab.store.rows import StudyData
from iolab.store.users_files import NOTHING, Allowed, write_results
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
    allowed: Allowed = NOTHING
    """Files of the user's own that the report may replace."""


def show_results_of(
    place: Place, services: Services, console: Console, *, is_strict: bool = False
) -> int:
    """Judge, write the reports, print the answer; returns the exit code.

    The rendered text begins with the verdict's sentence. `asked` may name another `metric`, and
    whose it is (`metric_of`), than the study did.

    Raises
    ------
    AnalysisError : the stored trials do not allow a verdict.
    RefusedError : the report would replace somebody's file; the answer was printed.
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
    refusal: RefusedError | None = None
    written = list[tuple[str, Path]]()
    try:
        written = _write(place, services, data, verdict)
    except RefusedError as error:
        refusal = error
    except OSError as error:
        raise IolabError(
            f"the report cannot be written to {out_dir}: {error.strerror}",
            "name another directory with --out DIR",
        ) from None
    console.result(services.render(data, verdict, console.width).rstrip("\n"))
    console.result()
    for label, path in (*written, ("data", place.source)):
        console.result(f"{label + ':':10}{path}")
    is_open = verdict.headline_word in ("undecided", "depends") and data.study.is_comparison
    if refusal is not None:
        raise refusal
    data.derived.clear()  # It refers back to the data: nothing is left for the garbage collector.
    return EXIT_UNDECIDED if is_strict and is_open else 0


def _write(
    place: Place, services: Services, data: StudyData, verdict: Any
) -> list[tuple[str, Path]]:
    """Draw where nobody looks, then put the files where they belong, all or none."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        drawn = services.write_all(data, verdict, Path(folder))
        files = {"report": drawn.html, "workbook": drawn.xlsx, "verdict": drawn.verdict_json}
        contents = {path.name: path.read_bytes() for path in files.values()}
    write_results(place.out_dir, contents, place.allowed)
    return [(label, place.out_dir / path.name) for label, path in files.items()]


def find_database(path: Path) -> Path:
    """Database of a results directory, or the database itself.

    Raises
    ------
    IolabError : nothing is there.
    """
    if not path.exists():
        raise IolabError(f"{path} does not exist", "name the directory that --out made")
    return path / STORE_NAME if path.is_dir() or path.suffix != ".db" else path
