"""The list of charts, in the order of the report; each builder is a pure function."""

from __future__ import annotations

from typing import Final

from iolab.report.charts import (
    by_level,
    by_record_size,
    forest,
    interaction_map,
    latency_ladder,
    latency_over_time,
    main_effects,
    noise,
    over_time,
    physics,
    request_stages,
    request_time,
    residuals,
    run_order,
    steady_state,
    surface,
)
from iolab.report.charts.row import ChartRow

CHARTS: Final[tuple[ChartRow, ...]] = (
    ChartRow("forest", forest.build, "Verdict", "first figure", annexed=("forest_cells",)),
    ChartRow("run_order", run_order.build, None, "all figures"),
    ChartRow("interaction_map", interaction_map.build, None),
    ChartRow("surface", surface.build, None),
    ChartRow("by_level", by_level.build, "Runs"),
    ChartRow("by_record_size", by_record_size.build, "Runs"),
    ChartRow("request_time", request_time.build, "Runs"),
    ChartRow("request_stages", request_stages.build, None),
    ChartRow("latency_ladder", latency_ladder.build, "Percentiles"),
    ChartRow("steady_state", steady_state.build, None),
    ChartRow("over_time", over_time.build, "TimeSeries"),
    ChartRow("latency_over_time", latency_over_time.build, "TimeSeries"),
    ChartRow("noise", noise.build, None),
    ChartRow("physics", physics.build, None),
    ChartRow("main_effects", main_effects.build, None, is_annexed=True),
    ChartRow("residuals", residuals.build, None, is_annexed=True),
)

__all__ = ["CHARTS", "ChartRow"]
