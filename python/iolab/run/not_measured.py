"""Cells that a study that ran to its end did not measure: an error, not a remark below the
report.
"""

from __future__ import annotations

from iolab.errors import IolabError, TestbedError
from iolab.run.conduct import FAILS_AGAIN
from iolab.store.db import Store
from iolab.store.rows import StudyData, TrialRow
from iolab.study.model import Study
from iolab.wording import counted


def not_measured(store: Store, study: Study, way_on: str) -> IolabError | None:
    """Reason why a study, or a treatment of it, has no number at all, by its first failure.

    A treatment that failed now and then is told by the report; one that never worked was asked for
    in vain, and nothing that is said of the others answers for it. `way_on` is the command that
    continues it.
    """
    data = store.load_data()
    if not data.measurements:
        return _nothing(data, study, way_on)
    tried: dict[tuple[object, ...], list[TrialRow]] = {}
    for trial in data.trials:
        if trial.status in ("ok", "failed"):
            tried.setdefault((trial.workload, *trial.levels.items()), []).append(trial)
    failed = [group for group in tried.values() if all(it.status == "failed" for it in group)]
    if not failed:
        return None
    first = failed[0][0]
    levels = " ".join(first.levels.values())
    count = f"{len(failed)} of {counted(len(tried), 'treatment')}"
    return TestbedError(
        f"{count} could not be measured: every trial failed; first {first.workload} {levels}, "
        f"{first.trial_id}: {first.error}",
        f"{_again(study, way_on)}; what cannot work here is left out in a new study",
    )


def _again(study: Study, way_on: str) -> str:
    """Way to go on: failed trials are repeated, as far as the budget of all starts allows."""
    if study.testbed.row.is_simulated:
        return FAILS_AGAIN
    more = " and a larger --budget" if study.budget_ns is not None else ""
    return f"correct the cause, then continue with {way_on}{more}"


def _nothing(data: StudyData, study: Study, way_on: str) -> IolabError:
    first = next((trial for trial in data.trials if trial.status == "failed"), None)
    if first is None:
        more = "give a larger --budget" if study.budget_ns is not None else "let trials take longer"
        return TestbedError("nothing was measured: no trial has given a value", more)
    return TestbedError(
        f"nothing was measured: no trial has finished; first {first.trial_id}: {first.error}",
        _again(study, way_on),
    )
