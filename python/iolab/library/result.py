"""Result of a study: its trials, their measurements, and the verdict."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.errors import AnalysisError, RefusedError
from iolab.library.placed import placed
from iolab.library.rejudged import rejudged
from iolab.library.stored import directory_of, is_archive
from iolab.library.study import Study
from iolab.library.table import Cell, ResultTable, Row, table_of
from iolab.store.rows import Caveat, Measurement, StudyData, TrialRow

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingImports]

    from iolab.library.chart import Chart
    from iolab.stats.verdict import StudyVerdict

_FIXED: Final = ("trial", "round", "position", "workload", "operation", "is_direct", "cache_share")
"""Columns that every table of measurements has, before those of factors and metrics."""


class Result:
    """A stored study: what was measured, and what follows from that.

    :func:`iolab.run` and :func:`iolab.open` return it. It holds what was stored at that moment; of
    a study that still runs, open it again to see more.

    Parameters
    ----------
    data : everything that is stored about the study.
    path : the results directory, database or archive that it was read from.
    """

    def __init__(self, data: StudyData, path: Path) -> None:
        self._data = data
        self.path = path
        """The results directory, database or archive that it was read from."""

    @property
    def name(self) -> str:
        """Name of the study."""
        return self._data.study.name

    @property
    def is_simulated(self) -> bool:
        """Tell whether the trials ran in simulation."""
        return self._data.study.is_simulated

    @property
    def study(self) -> Study:
        """The study that was run, seed included.

        Raises
        ------
        StudyError : what is stored is no study that can be run: an imported table.
        """
        return Study.parse(self._data.study.spec_toml)

    @property
    def trials(self) -> tuple[TrialRow, ...]:
        """Every planned trial in the order of execution, with its status: None if it was not run.

        Times are nanoseconds.
        """
        return tuple(self._data.trials)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Objections to the study as a whole; those of a trial are with the trial."""
        return self._data.caveats

    @cached_property
    def verdict(self) -> StudyVerdict:
        """The judged study; computed when it is first asked for.

        ``verdict.headline`` lists the comparisons of the compared factor's levels with its
        baseline. Each has a ``word`` (``better``, ``worse``, ``same``, ``trivial``, ``undecided``)
        and an ``effect`` with ``ratio`` (above 1 is better) and ``interval_95``.
        `docs/reference/verdict-json.md` describes all fields.

        Raises
        ------
        AnalysisError : the stored trials do not allow a verdict.
        """
        from iolab.stats.judge import judge

        return judge(self._data)

    def summary(self) -> str:
        """The verdict's sentence, then one line per pooled comparison: levels, ratio, word.

        Raises
        ------
        AnalysisError : the stored trials do not allow a verdict.
        """
        return self.verdict.summary()

    def text(self, *, width: int = 80) -> str:
        """The answer as `iolab report --full` prints it.

        Parameters
        ----------
        width : columns, at least 40.

        Raises
        ------
        AnalysisError : the stored trials do not allow a verdict.
        """
        from iolab.report import terminal

        shown = placed(self.verdict, directory_of(self.path))
        return terminal.render(self._data, shown, width=width).rstrip("\n")

    def judged_by(self, metric: str, *, of: str | None = None) -> Result:
        """The same trials, judged by another metric.

        Parameters
        ----------
        metric : name or short form: ``"p99"``, ``"latency_ns_p99"``, ``"throughput"``.
        of : stream or test whose metric it is; None is all of them.

        Raises
        ------
        StudyError : there is no such metric, or nothing of that name was measured.
        """
        return Result(rejudged(self._data, metric, of), self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of :meth:`to_rows`.

        First ``trial``, ``round`` (1-based), ``position`` (0-based place in the round),
        ``workload``, ``operation``, ``is_direct`` and ``cache_share`` (share of the bytes that
        never reached the device), then one per varied factor (levels as text), then one per metric,
        whose name ends with its unit.
        """
        return self._table.columns

    def to_rows(self) -> list[Row]:
        """One row per operation of each finished trial, values in the order of :attr:`columns`."""
        return list(self._table.rows)

    def to_frame(self) -> pandas.DataFrame:  # pyright: ignore[reportUnknownParameterType]
        """The rows of :meth:`to_rows` as a pandas frame.

        Raises
        ------
        IolabError : pandas is not installed (``pip install 'iolab[notebook]'``).
        """
        return self._table.to_frame()

    def report(self, path: str | Path | None = None, *, overwrite: bool = False) -> list[Path]:
        """Write the report.

        Parameters
        ----------
        path : a file, whose ending says what is written: ``.html`` the page, ``.xlsx`` the
            workbook, ``.json`` the verdict for programs, ``.md`` Markdown for a pull request; or a
            directory for the first three. None is the directory that the study lies in.
        overwrite : replace a file that iolab did not write.

        Returns
        -------
        list : the files that were written.

        Raises
        ------
        AnalysisError : the stored trials do not allow a verdict.
        RefusedError : a file of another origin has the name.
        IolabError : a file cannot be written, or its ending means nothing.
        """
        from iolab.library.report_files import write_report

        place = self._place(path)
        source = directory_of(self.path) if self.path.exists() else None
        return write_report(self._data, self.verdict, place, source=source, overwrite=overwrite)

    def chart(self, metric: str, factor: str, *, by: str | None = None) -> Chart:
        """One metric by one factor, drawn with intervals.

        Every operation, and every level of the other factors that vary, has a panel of its own.

        Parameters
        ----------
        metric : name or short form: ``"p99"``, ``"latency_ns_p99"``, ``"throughput"``.
        factor : factor along the axis; also ``"operation"``, ``"workload"`` or ``"mode"``.
        by : factor that has a colour per level.

        Returns
        -------
        Chart : shown by a notebook; its ``save`` writes an ``.svg``, ``.html`` or ``.png`` file.

        Raises
        ------
        StudyError : the study has no such metric or factor, or no value of them.
        """
        from iolab.library.chart import chart_of
        from iolab.report.asked_chart import asked_chart

        return chart_of(self._data, self.path, asked_chart(self._data, metric, factor, by))

    def export(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write every value into a file, one row per value with the level of each factor.

        Parameters
        ----------
        path : the file, whose ending says the format: ``.csv``, ``.json`` or ``.parquet`` (with
            ``pip install 'iolab[parquet]'``).
        overwrite : replace a file that iolab did not write.

        Returns
        -------
        Path : the file.

        Raises
        ------
        RefusedError : a file of another origin has the name.
        IolabError : its ending means nothing, or it cannot be written.
        """
        from iolab.library.exported_values import kind_of, write_values

        place = Path(path)
        allowed = [str(place)] if overwrite else []
        kind = kind_of(place, None)
        return write_values(self.path, place, kind, allowed, lambda _: None).path

    def _place(self, path: str | Path | None) -> Path:
        if path is not None:
            return Path(path)
        if self.path.is_dir():
            return self.path
        if not is_archive(self.path):
            return self.path.parent
        raise RefusedError(
            f"{self.path} is an archive, in which no report can be put",
            "name a directory or a file",
        )

    @cached_property
    def _table(self) -> ResultTable:
        factors = [name for name, levels in self._data.study.factors.items() if len(levels) > 1]
        rows = dict[tuple[str, str], dict[str, Cell]]()
        metrics = set[str]()
        for one in self._data.measurements:
            row = rows.setdefault((one.trial_id, one.operation), _row_of(one, factors))
            row[one.metric] = one.value
            metrics.add(one.metric)
        from iolab.stats.metrics import METRICS

        measured = [metric.name for metric in METRICS if metric.name in metrics]
        return table_of([*_FIXED, *factors, *measured], list(rows.values()))

    def _repr_html_(self) -> str | None:
        """The answer, for a notebook; None of trials that do not allow a verdict."""
        from iolab.report.notebook import notebook_html

        try:
            return notebook_html(self._data, self.verdict)
        except AnalysisError:
            return None

    def __repr__(self) -> str:
        done = sum(trial.status == "ok" for trial in self._data.trials)
        return f"<iolab.Result '{self.name}': {done} of {len(self._data.trials)} trials done>"


def _row_of(one: Measurement, factors: list[str]) -> dict[str, Cell]:
    fixed: dict[str, Cell] = {
        "trial": one.trial_id,
        "round": one.round,
        "position": one.position,
        "workload": one.workload,
        "operation": one.operation,
        "is_direct": one.is_direct,
        "cache_share": one.cache_share,
    }
    return fixed | {name: one.levels.get(name) for name in factors}
