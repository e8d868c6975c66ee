"""The answer of a stored study: judged, as text, and drawn into the files of a report."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from iolab import units
from iolab.errors import AnalysisError, IolabError, RefusedError
from iolab.frozen import frozen, replace
from iolab.library.placed import placed, told_once
from iolab.library.rejudged import ON_COMMAND_LINE, rejudged
from iolab.library.services import Services
from iolab.library.stored import directory_of, find_database, is_archive, load_database, opened
from iolab.library.trial_pictures import with_traces
from iolab.run.outputs import check_place_of_report, reports_in
from iolab.store.continuing import PLACE
from iolab.store.db import Store
from iolab.store.read import without_collecting
from iolab.store.rows import StudyData
from iolab.store.users_files import Allowed, write_results

if TYPE_CHECKING:
    from iolab.library.conducted import Conducted
    from iolab.stats.verdict import StudyVerdict

Note: TypeAlias = Callable[[str], None]
"""Takes a message about the work."""


@frozen
class AnswerForm:
    """Form in which a stored study is judged and shown."""

    metric: str | None = None
    """Another metric to judge by than the study named."""
    metric_of: str | None = None
    """Stream or test whose metric it is."""
    units: units.System = "iec"
    """In which amounts of bytes are written."""
    width: int = 80
    """Columns of the text."""
    is_full: bool = False
    """True for all of it; False for at most 25 lines."""
    overwrite: tuple[str, ...] = ()
    """Files of the user's own that the report may replace."""
    told: tuple[str, ...] = ()
    """Notes that stand above the answer already: it only names the caveats that they tell."""


@frozen
class StudyAnswer:
    """Answer of a study, and the files that give it at length."""

    text: str
    """Begins with the verdict's sentence."""
    sentence: str = ""
    """The verdict's sentence alone; empty where the text is Markdown or JSON."""
    files: tuple[tuple[str, Path], ...] = ()
    """Description of each file, and its path; the last one is the data."""
    is_open: bool = False
    """True if the levels that were compared are not told apart, or it depends."""
    refusal: RefusedError | None = None
    """Reason why the report was not written over a foreign file."""


def answer(
    results: Path, out: Path | None, form: AnswerForm, means: Services, note: Note
) -> StudyAnswer:
    """Judge a stored study and write its report; also works while the study still runs.

    Parameters
    ----------
    results : a results directory, its database or an archive.
    out : directory of the report; None is that of the study.
    form : how it is judged and shown.
    means : the statistics and the renderers.
    note : hears of what an archive says of itself.

    Raises
    ------
    AnalysisError : the stored trials do not allow a verdict.
    StudyError : another metric was wanted, and there is none such.
    RefusedError : the report does not belong there.
    """
    allowed = Allowed.of(form.overwrite)
    if is_archive(results):
        if out is None:
            raise IolabError(
                f"{results} is an archive, in which no report can be put",
                "name a new directory for it with --out DIR",
            )
        allowed.refuse_useless(reports_in(out))
        check_place_of_report(out, allowed)
        with opened(results, note) as database:
            return _answer(database, out, results, form, means)
    database = find_database(results)
    folder = out or database.parent
    allowed.refuse_useless(reports_in(folder))
    if out is not None:
        check_place_of_report(folder, allowed, database=database)
    return _answer(database, folder, database, form, means)


def answer_of_run(
    done: Conducted, form: AnswerForm, means: Services, note: Note
) -> StudyAnswer | None:
    """Judge a study that was just run; None, with a note, if it ended too early for a verdict.

    Raises
    ------
    AnalysisError : it is complete and allows no verdict.
    """
    outcome, database = done.outcome, done.database
    try:
        return _answer(database, database.parent, database, form, means)
    except AnalysisError as error:
        if outcome is not None and outcome.ending == "complete" and not outcome.mismatches:
            raise
        note(f"iolab: no verdict yet: {error}")
        return None


def printed_answer(
    results: Path,
    kind: Literal["markdown", "json"],
    form: AnswerForm,
    means: Services,
    note: Note,
) -> StudyAnswer:
    """Judge a stored study for a pull request or a program; nothing is written anywhere.

    Raises
    ------
    AnalysisError, StudyError : as for :func:`answer`.
    """
    with opened(results, note) if is_archive(results) else nullcontext(results) as found:
        database = find_database(found)
        with without_collecting(), Store.open_reader(database) as store:
            data = store.load_data()
        data = rejudged(data, form.metric, form.metric_of, ON_COMMAND_LINE)
    with without_collecting(), units.shown_in(form.units):
        verdict = means.judge(data)
        render = means.markdown if kind == "markdown" else means.json
        return StudyAnswer(render(data, verdict).rstrip("\n"), is_open=_is_open(data, verdict))


def _answer(
    database: Path, out_dir: Path, source: Path, form: AnswerForm, means: Services
) -> StudyAnswer:
    """Answer of a database; `source` is what the user keeps: it, or the archive it came from."""
    with without_collecting(), units.shown_in(form.units):
        stored = load_database(database)
        data = rejudged(stored, form.metric, form.metric_of, ON_COMMAND_LINE)
        verdict = means.judge(data)
        found = StudyAnswer("", is_open=_is_open(data, verdict))
        try:
            drawn = with_traces(data, directory_of(source), means)
            found = replace(found, files=_written(out_dir, form, means, drawn, verdict))
        except RefusedError as error:
            found = replace(found, refusal=error)
        except OSError as error:
            raise IolabError(
                f"the report cannot be written to {out_dir}: {error.strerror}",
                "name another directory with --out DIR",
            ) from None
        shown = told_once(placed(verdict, directory_of(source)), form.told)
        if form.is_full:
            text = means.render(data, shown, form.width)
        else:
            text = means.brief(data, shown, form.width, *_commands(source, out_dir))
        data.derived.clear()  # It refers back to the data: nothing is left to be collected.
        found = replace(found, text=text.rstrip("\n"), sentence=verdict.sentence)
        return replace(found, files=(*found.files, ("data", source)))


def _commands(source: Path, out_dir: Path) -> tuple[str, str]:
    """Directory of a study as a shell takes it, and the command that prints all of its answer."""
    directory = directory_of(source)
    if directory is None:
        archive, out = shlex.quote(str(source)), shlex.quote(str(out_dir))
        return PLACE, f"iolab report {archive} --out {out} --full"
    place = shlex.quote(str(directory))
    return place, f"iolab report {place} --full"


def _written(
    out_dir: Path, form: AnswerForm, means: Services, data: StudyData, verdict: StudyVerdict
) -> tuple[tuple[str, Path], ...]:
    """Draw where nobody looks, then put the files where they belong, all or none."""
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        drawn = means.write_all(data, verdict, Path(folder))
        files = {"report": drawn.html, "workbook": drawn.xlsx, "verdict": drawn.verdict_json}
        contents = {path.name: path.read_bytes() for path in files.values()}
    write_results(out_dir, contents, Allowed.of(form.overwrite))
    return tuple((label, out_dir / path.name) for label, path in files.items())


def _is_open(data: StudyData, verdict: StudyVerdict) -> bool:
    return verdict.headline_word in ("undecided", "depends") and data.study.is_comparison
