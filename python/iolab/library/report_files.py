"""The files of a report, each whole or not at all, and never over a file of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from iolab.errors import IolabError, RefusedError
from iolab.library.services import Services
from iolab.library.trial_pictures import with_traces
from iolab.store.rows import StudyData
from iolab.store.users_files import FLAG, Allowed, write_file, write_results
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.stats.verdict import StudyVerdict

Renderer: TypeAlias = "Callable[[StudyData, StudyVerdict], bytes]"


def write_report(
    data: StudyData,
    verdict: StudyVerdict,
    place: Path,
    *,
    source: Path | None,
    overwrite: bool,
) -> list[Path]:
    """Write one file, by its ending, or the three files of a report into a directory.

    Parameters
    ----------
    data, verdict : the study and its verdict.
    place : the file or directory.
    source : results directory, whose traces the page shows; None of an archive, which has none.
    overwrite : replace files of another origin.

    Raises
    ------
    RefusedError : a file of another origin has the name.
    IolabError : a file cannot be written, or its ending means nothing.
    """
    if place.is_dir() or not place.suffix:
        data = with_traces(data, source, Services())
        return _write_directory(data, verdict, place, overwrite=overwrite)
    render = _RENDERERS.get(place.suffix.lower())
    if render is None:
        raise IolabError(
            f"{place}: '{place.suffix}' is not a kind of report{nearest(place.suffix, _RENDERERS)}",
            f"kinds are {', '.join(_RENDERERS)}; a name without ending is a directory",
        )
    if render is _html:  # No other file has pictures of traces.
        data = with_traces(data, source, Services())
    allowed = Allowed.of([str(place)]) if overwrite else Allowed()
    try:
        write_file(place, render(data, verdict), allowed)
    except RefusedError as error:
        raise _in_python(error, [place]) from None
    except OSError as error:
        raise _not_written(place, error) from None
    return [place]


def _write_directory(
    data: StudyData, verdict: StudyVerdict, folder: Path, *, overwrite: bool
) -> list[Path]:
    files = {folder / name: render(data, verdict) for name, render in _FILES.items()}
    allowed = Allowed.of(map(str, files)) if overwrite else Allowed()
    try:
        write_results(folder, {path.name: text for path, text in files.items()}, allowed)
    except RefusedError as error:
        raise _in_python(error, files) from None
    except OSError as error:
        raise _not_written(folder, error) from None
    return list(files)


def _in_python(error: RefusedError, paths: Iterable[Path]) -> RefusedError:
    """The same error, whose hint names the argument in place of the command line's flag."""
    hint = error.hint
    for path in paths:
        hint = hint.replace(f"{FLAG} {path}", "overwrite=True")
    return RefusedError(error.message, hint)


def _not_written(place: Path, error: OSError) -> IolabError:
    return IolabError(
        f"the report cannot be written to {place}: {error.strerror}", "name another place"
    )


def _html(data: StudyData, verdict: StudyVerdict) -> bytes:
    from iolab.report.collect import draw_all
    from iolab.report.html import render_html

    return render_html(data, verdict, draw_all(data, verdict)).encode()


def _xlsx(data: StudyData, verdict: StudyVerdict) -> bytes:
    from iolab.report.collect import draw_all
    from iolab.report.xlsx import render_xlsx

    return render_xlsx(data, verdict, draw_all(data, verdict))


def _json(data: StudyData, verdict: StudyVerdict) -> bytes:
    from iolab.report.verdict_json import render_json

    return render_json(data, verdict).encode()


def _markdown(data: StudyData, verdict: StudyVerdict) -> bytes:
    from iolab.report.markdown import render_markdown

    return render_markdown(data, verdict).encode()


_RENDERERS: Final[dict[str, Renderer]] = {
    ".html": _html,
    ".xlsx": _xlsx,
    ".json": _json,
    ".md": _markdown,
}
_FILES: Final[dict[str, Renderer]] = {
    "report.html": _html,
    "report.xlsx": _xlsx,
    "verdict.json": _json,
}
