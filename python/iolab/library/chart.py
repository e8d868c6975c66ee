"""A chart that was asked for: looked at, or written as a page or a drawing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError, RefusedError
from iolab.frozen import frozen
from iolab.library.drawn_file import check_ending, content_of, holds_several
from iolab.library.stored import directory_of, is_archive, opened
from iolab.library.table import Cell
from iolab.store.db import Store
from iolab.store.rows import StudyData
from iolab.store.users_files import FLAG, Allowed, refuse_foreign, write_file, write_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolab.report.asked_chart import AskedChart
    from iolab.report.chart import ChartSpec

_SEVERAL: Final = "charts.html"


class Chart:
    """One metric by one factor, drawn; `Result.chart` makes it.

    A notebook shows it as a drawing. Marks are geometric means with 95 % intervals; the value axis
    begins at zero, or is logarithmic where values span more than 10 times.
    """

    def __init__(self, data: StudyData, spec: ChartSpec, command: str) -> None:
        self._data, self._spec, self._command = data, spec, command

    @property
    def title(self) -> str:
        """Metric and factors, for people."""
        return self._spec.title

    @property
    def caption(self) -> str:
        """Meaning of the marks, and what is left out."""
        return self._spec.caption

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of :meth:`to_rows`, with units."""
        return self._spec.table.columns

    def to_rows(self) -> list[tuple[Cell, ...]]:
        """One row per mark: workload, operation, levels, value, interval, number of trials."""
        return list(self._spec.table.rows)

    def svg(self) -> str:
        """The drawing as an SVG document of its own, 800 pixels wide."""
        from iolab.report.chart_files import chart_svg

        return chart_svg(self._data, self._spec)

    def html(self) -> str:
        """The drawing with its data as a page that needs nothing else."""
        from iolab.report.chart_files import chart_page

        return chart_page(self._data, [(self._spec, self._command)])

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the chart into a file.

        Parameters
        ----------
        path : the file, whose ending says what is written: ``.svg``, ``.html``, or ``.png``, for
            which a browser of the Chromium family is needed.
        overwrite : replace a file that iolab did not write.

        Returns
        -------
        Path : the file.

        Raises
        ------
        RefusedError : a file of another origin has the name.
        IolabError : its ending means nothing, or it cannot be written.
        """
        place = Path(path)
        check_ending(place)
        allowed = Allowed.of([str(place)]) if overwrite else Allowed()
        try:
            _write(place, content_of(place, self.html, self.svg), allowed)
        except RefusedError as error:
            hint = error.hint.replace(f"{FLAG} {place}", "overwrite=True")
            raise RefusedError(error.message, hint) from None
        return place

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<iolab.Chart '{self.title}' of '{self._data.study.name}'>"


@frozen
class DrawnFile:
    """A file of charts, and what they show."""

    path: Path
    captions: tuple[str, ...]
    """Title and caption of each."""


def chart_of(data: StudyData, path: Path, asked: AskedChart) -> Chart:
    """Draw a chart.

    Parameters
    ----------
    path : what the study was read from, for the command that draws the chart again.
    asked : checked names.

    Raises
    ------
    StudyError : there is nothing to draw.
    """
    from iolab.report.asked_chart import draw_asked

    return Chart(data, draw_asked(data, asked), _command(path, asked))


def _command(path: Path, asked: AskedChart) -> str:
    """Command line that draws a chart again."""
    directory = directory_of(path)
    place = shlex.quote(str(directory or path))
    end = " --out FILE.html" if directory is None else ""
    return f"iolab report {place} --chart {shlex.quote(asked.text)}{end}"


def write_charts(
    results: Path,
    typed: Sequence[str],
    out: Path | None,
    form: tuple[units.System, Sequence[str]],
    note: Callable[[str], None],
) -> DrawnFile:
    """Draw charts of a stored study into one file.

    Parameters
    ----------
    results : a results directory, its database or an archive.
    typed : the charts, each as ``METRIC:FACTOR[:BY]``.
    out : the file; None is a page in the results directory.
    form : units of bytes, and files of the user's own that may be replaced.
    note : hears of what an archive says of itself.

    Raises
    ------
    StudyError : a chart names what the study does not have.
    RefusedError : something that is not iolab's has the name.
    IolabError : the file cannot be written, or cannot hold the charts.
    """
    from iolab.report.asked_chart import draw_asked, parse_chart
    from iolab.report.chart_files import chart_page, chart_svg

    shown, overwrite = form
    allowed = Allowed.of(overwrite)
    _check_file(results, typed, out, allowed)
    with opened(results, note) as database, Store.open_reader(database) as store:
        data = store.load_data()
    with units.shown_in(shown):
        asked = [parse_chart(text, data) for text in typed]
        specs = [draw_asked(data, one) for one in asked]
        commands = [_command(results, one) for one in asked]
        content = content_of(
            out or Path(_SEVERAL),
            lambda: chart_page(data, list(zip(specs, commands, strict=True))),
            lambda: chart_svg(data, specs[0]),
        )
    captions = tuple(f"{spec.title}. {spec.caption}" for spec in specs)
    if out is not None:
        allowed.refuse_useless([out])
        _write(out, content, allowed)
        return DrawnFile(out, captions)
    folder = directory_of(results) or results
    name = f"{asked[0].name}.html" if len(asked) == 1 else _SEVERAL
    allowed.refuse_useless([folder / name])
    try:
        write_results(folder, {name: content}, allowed)
    except OSError as error:
        raise _not_written(folder, error) from None
    return DrawnFile(folder / name, captions)


def _check_file(results: Path, typed: Sequence[str], out: Path | None, allowed: Allowed) -> None:
    """Refuse, before the work, a file that could not be written."""
    if out is None:
        if is_archive(results):
            raise IolabError(
                f"{results} is an archive, in which no chart can be put",
                "name a file for it with --out FILE.html",
            )
        return
    check_ending(out)
    if len(typed) > 1 and not holds_several(out):
        raise IolabError(
            f"{out}: a drawing holds one chart, and {len(typed)} are asked for",
            "end the name in .html, which holds all, or draw them one by one",
        )
    refuse_foreign([out], allowed)


def _write(place: Path, content: bytes, allowed: Allowed) -> None:
    try:
        write_file(place, content, allowed)
    except OSError as error:
        raise _not_written(place, error) from None


def _not_written(place: Path, error: OSError) -> IolabError:
    return IolabError(
        f"the chart cannot be written to {place}: {error.strerror}", "name another place"
    )
