"""The sheet of raw values: one row per value with the level of each factor, ready to be filtered.

Columns are those of `iolab export`, and the unit of each value. A study with more values than a
sheet is pleasant with names the command instead.
"""

from __future__ import annotations

from typing import Final

from iolab.report.xlsx_cells import SheetWriter, write_headers, write_value
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.store.long_form import AFTER, BEFORE, factor_columns
from iolab.store.rows import Nature, StudyData

VALUE_WIDTH: Final = 22
"""Characters that hold 10 TB/s with its groups and four decimals."""
VALUES_MAX: Final = 20_000
"""More would make a workbook that takes long to open."""


def write_long_form(out: SheetWriter, data: StudyData) -> None:
    """Write the values of all finished trials."""
    factors = factor_columns(data.study.kind, data.study.factors)
    columns = (*BEFORE, *factors.values(), *AFTER, "unit")
    if len(data.measurements) > VALUES_MAX:
        text = (
            f"{len(data.measurements)} values are too many for a sheet: "
            "iolab export DIR --out values.csv writes them."
        )
        out.text(0, 0, text, "soft")
        return
    write_headers(out, 0, columns)
    natures = {(d["trial_id"], d["operation"]): d["nature"] for d in data.phase_details}
    for row, m in enumerate(data.measurements, start=1):
        nature = natures.get((m.trial_id, m.operation), Nature())
        metric = METRIC_BY_NAME.get(m.metric)  # A newer iolab may have others.
        values = (
            *(m.trial_id, m.round, m.position, m.workload),
            *(m.levels.get(name) for name in factors),
            *(m.operation, nature.kind, nature.access, nature.io_size_bytes),
            *(m.cache_share, m.metric, m.value, metric.unit if metric else None),
        )
        for column, value in enumerate(values):
            write_value(out, row, column, value)
    out.columns(0, len(columns) - 1, 13)
    for column, name in enumerate(columns):
        if name == "metric":
            out.columns(column, column, 28)
        elif name == "value" or name.endswith("bytes"):
            out.columns(column, column, VALUE_WIDTH)
    out.sheet.freeze_panes(1, 0)
    out.sheet.repeat_rows(0)
    if data.measurements:
        out.sheet.autofilter(0, 0, len(data.measurements), len(columns) - 1)
