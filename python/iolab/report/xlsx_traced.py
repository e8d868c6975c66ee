"""The sheet of the block layer: what the page shows of the traces of a study, as tables.

Work of the devices, and the stages of a block request, workload by workload. Left out: the charts
of the stages, which are stacked bars with intervals, and the pictures of single traces; the page
has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.chart import ChartSpec
from iolab.report.device_work import NOTE, TITLE, work_table
from iolab.report.why import why_text
from iolab.report.xlsx_cells import SheetWriter, write_table
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData
from iolab.wording import sentence_case

NAME: Final = "BlockLayer"
CHART: Final = "request_stages"
"""Charts whose tables stand here."""
_NAMES: Final = 2
"""Columns of names, which are wider."""
_WIDE: Final = 15


def write_traced(
    out: SheetWriter, data: StudyData, verdict: StudyVerdict, stages: Sequence[ChartSpec]
) -> None:
    """Write the sheet of a study that was traced.

    Parameters
    ----------
    out : the sheet.
    data, verdict : the study and its verdict.
    stages : charts of the stages; the views of a workload share a table.
    """
    out.columns(0, _NAMES - 1, 28)
    out.columns(_NAMES, _WIDE, 13)
    out.sheet.freeze_panes(0, _NAMES)
    why = sentence_case(why_text(data, verdict))
    if why:
        out.text(0, 0, f"Why: {why}.")
    row = 2 if why else 0
    work = work_table(data, verdict)
    if work is None:
        out.text(row, 0, "No trial with a trace tells of one level alone.", "soft")
        return
    read = work.for_reading()
    out.text(row, 0, TITLE, "title")
    row = write_table(out, row + 1, read.columns, read.rows)
    out.text(row, 0, NOTE, "soft")
    row += 2
    for spec in {spec.title: spec for spec in stages}.values():
        out.text(row, 0, spec.title, "title")
        row = write_table(out, row + 1, spec.table.columns, spec.table.rows)
        out.text(row, 0, spec.caption, "soft")
        row += 2
