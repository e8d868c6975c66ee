"""The list of charts, in the order of the report; each builder is a pure function."""

from __future__ import annotations

from typing import Final

from iolab.report.charts import (
    by_level,
    by_record_size,
    forest,
    latency_ladder,
    latency_over_time,
    over_time,
    request_time,
    run_order,
)
from iolab.report.charts.row import ChartRow

CHARTS: Final[tuple[ChartRow, ...]] = (
    ChartRow("forest", forest.build, "Verdict", is_first_page=True),
    ChartRow("run_order", run_order.build, None, is_first_page=True),
    ChartRow("by_level", by_level.build, "Runs"),
    ChartRow("by_record_size", by_record_size.build, "Runs"),
    ChartRow("request_time", request_time.build, "Runs"),
    ChartRow("latency_ladder", latency_ladder.build, "Percentiles"),
    ChartRow("over_time", over_time.build, "TimeSeries"),
    ChartRow("latency_over_time", latency_over_time.build, "TimeSeries"),
)

__all__ = ["CHARTS", "ChartRow"]
