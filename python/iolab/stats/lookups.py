"""Tables of a study's measurements that many parts look up, made once: there may be millions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.store.rows import Measurement, StudyData

_ByMetric = dict[str, list[Measurement]]
_Modes = dict[tuple[str, str], bool | None]


def of_metric(data: StudyData, metric: str) -> Sequence[Measurement]:
    """Return the measurements of one metric, in the order of all."""
    found: _ByMetric | None = data.derived.get("of_metric")
    if found is None:
        found = data.derived["of_metric"] = _ByMetric()
        for m in data.measurements:
            known = found.get(m.metric)
            if known is None:
                found[m.metric] = [m]
            else:
                known.append(m)
    return found.get(metric, ())


def modes(data: StudyData) -> Mapping[tuple[str, str], bool | None]:
    """Return whether operations were direct, by trial and operation."""
    found: _Modes | None = data.derived.get("modes")
    if found is None:
        found = data.derived["modes"] = _Modes()
        trial_id = operation = ""
        for m in data.measurements:
            if m.operation != operation or m.trial_id != trial_id:
                trial_id, operation = m.trial_id, m.operation
                found[trial_id, operation] = m.is_direct
    return found
