"""Collects the findings of a study: each kind once, recorded ones counted by place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from iolab.stats.finding import About, Finding, Scope
from iolab.stats.findings import FINDINGS, kind_of
from iolab.stats.ledger import Ledger
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import Caveat


def find_caveats(ledger: Ledger, verdict: StudyVerdict) -> list[Finding]:
    """Return doubts and notes of a judged study, by kind, those found by judging first.

    A recorded caveat whose kind judging found too (`page_cache`) gives way: cells are counted
    then, not trials.
    """
    finders = dict.fromkeys(kind.find for kind in FINDINGS if kind.find is not None)
    judged = {f.kind: f for find in finders for f in find(ledger, verdict)}
    found = dict(judged)
    for finding in _recorded(ledger):
        if finding.kind in judged or kind_of(finding.kind).is_of_plan:
            continue
        known = found.setdefault(finding.kind, dataclasses.replace(finding, count=0))
        found[finding.kind] = dataclasses.replace(known, count=known.count + finding.count)
    return list(found.values())


def all_findings(verdict: StudyVerdict) -> list[Finding]:
    """Return caveats and estimates of a judged study, the latter in the units shown now."""
    derived = (f for kind in FINDINGS if kind.derive is not None for f in kind.derive(verdict))
    return [*verdict.caveats, *derived]


def _recorded(ledger: Ledger) -> Iterator[Finding]:
    """Yield what study, trials and measurements carried; each place counts once per kind."""
    places: set[tuple[str, str, str]] = set()
    for caveat in ledger.data.caveats:
        yield _as_finding(caveat, "study")
    for trial in ledger.data.trials:
        for caveat in trial.caveats:
            if (caveat.code, trial.trial_id, "") not in places:
                places.add((caveat.code, trial.trial_id, ""))
                yield _as_finding(caveat, "trial", trial.workload, trial_id=trial.trial_id)
    for m in ledger.data.measurements:
        for caveat in m.caveats:
            place = (caveat.code, m.trial_id, m.operation)
            if place in places or (caveat.code, m.trial_id, "") in places:
                continue
            places.add(place)
            yield _as_finding(caveat, "cell", m.workload, m.operation, m.trial_id)


def _as_finding(
    caveat: Caveat, scope: Scope, workload: str = "", operation: str = "", trial_id: str = ""
) -> Finding:
    about = About(scope, workload=workload, operation=operation, trial_id=trial_id)
    return Finding(caveat.code, caveat.message, caveat.hint, about=about)
