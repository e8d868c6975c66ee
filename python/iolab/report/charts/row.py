"""What a row of `CHARTS` holds: a chart's name, its builder, and where it appears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from iolab.report.chart import ChartSpec
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

Sheet = Literal["Verdict", "Runs", "Percentiles", "TimeSeries"]


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One chart of the report."""

    name: str
    build: Callable[[StudyData, StudyVerdict], list[ChartSpec]]
    sheet: Sheet | None
    """Where Excel draws it natively; None = HTML only."""
    is_first_page: bool = False
