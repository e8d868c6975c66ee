"""A stored study, to be judged by another metric than it named."""

from __future__ import annotations

from typing import Final

from iolab.errors import StudyError
from iolab.frozen import replace
from iolab.store.rows import StudyData
from iolab.study.metric_names import parse_metric
from iolab.wording import nearest

IN_PYTHON: Final = ("metric", "of")
ON_COMMAND_LINE: Final = ("--metric", "--metric-of")


def rejudged(
    data: StudyData, metric: str | None, part: str | None, names: tuple[str, str] = IN_PYTHON
) -> StudyData:
    """The same data with another metric.

    Parameters
    ----------
    data : a stored study.
    metric : name or short form of the metric; None leaves that of the study.
    part : stream or test whose metric it is; None, with a metric, is all of them.
    names : what the caller calls the two, for messages.

    Raises
    ------
    StudyError : there is no such metric, or no such part was measured.
    """
    study = data.study
    if metric is not None:
        try:
            study = replace(study, metric=parse_metric(metric), metric_of=None)
        except ValueError as error:
            raise StudyError(f"{names[0]}: {error}", "a short name such as p99 is enough") from None
    if part is not None:
        study = replace(study, metric_of=_checked_part(data, part, names[1]))
    return replace(data, study=study)


def _checked_part(data: StudyData, part: str, name: str) -> str:
    """Name of a stream or test that was measured."""
    operations = dict.fromkeys(m.operation for m in data.measurements)
    parts = list(
        dict.fromkeys(operation.rpartition("/")[2].partition("@")[0] for operation in operations)
    )
    if part not in parts:
        raise StudyError(
            f"{name}: '{part}' was not measured{nearest(part, parts)}",
            f"measured were {', '.join(parts)}",
        )
    return part
