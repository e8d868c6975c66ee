"""Row of `CHARTS`: a chart's name, its builder, and where it appears."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from iolab.frozen import frozen
from iolab.report.chart import ChartSpec
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

Sheet = Literal["Verdict", "Runs", "Percentiles", "TimeSeries"]


@frozen
class ChartRow:
    """One chart of the report."""

    name: str
    build: Callable[[StudyData, StudyVerdict], list[ChartSpec]]
    sheet: Sheet | None
    """Sheet in which Excel draws it natively; None = HTML only."""
    first_screen: Literal["", "first figure", "all figures"] = ""
    """Part of it that stands on the first screen of the page, and not below."""
    is_annexed: bool = False
    """True if the page draws it in the annex."""
    annexed: tuple[str, ...] = ()
    """Single figures of it that the annex has."""
