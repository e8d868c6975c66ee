"""From a store to what the user sees: the sentence, the table, and where the files lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab import units
from iolab.cli.console import Console
from iolab.errors import IolabError, RefusedError
from iolab.library.placed import placed
from iolab.library.rejudged import ON_COMMAND_LINE, rejudged
from iolab.library.services import Services
from iolab.library.stored import directory_of, load_database
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
    metric: str | None = None
    """Another metric to judge by than the study named."""
    metric_of: str | None = None
    """Stream or test whose metric it is."""
    units: System = "iec"
    """In which amounts of bytes are written."""
    allowed: Allowed = NOTHING
    """Files of the user's own that the report may replace."""


def show_results_of(
    place: Place, services: Services, console: Console, *, is_strict: bool = False
) -> int:
    """Judge, write the reports, print the answer; returns the exit code.

    The rendered text begins with the verdict's sentence.

    Raises
    ------
    AnalysisError : the stored trials do not allow a verdict.
    StudyError : another metric was wanted, and there is none such.
    RefusedError : the report would replace somebody's file; the answer was printed.
    """
    with without_collecting(), units.shown_in(place.units):
        return _show_results(place, services, console, is_strict)


def _show_results(place: Place, services: Services, console: Console, is_strict: bool) -> int:
    out_dir = place.out_dir
    data = rejudged(load_database(place.database), place.metric, place.metric_of, ON_COMMAND_LINE)
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
    shown = placed(verdict, directory_of(place.source))
    console.result(services.render(data, shown, console.width).rstrip("\n"))
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
