"""Collects the findings of a study: each kind once, recorded ones counted by place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from iolab.frozen import replace
from iolab.stats.finding import About, Finding, Scope
from iolab.stats.findings import FINDINGS, kind_of
from iolab.stats.ledger import Ledger
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import Caveat
from iolab.wording import counted, percent_range

DURING: Final = " during the trial"
"""Ending of what the agent says of one trial."""
SAID_MAX: Final = 2
"""Operations whose text of one kind is said, where they differ."""


def find_caveats(ledger: Ledger, verdict: StudyVerdict) -> list[Finding]:
    """Return doubts and notes of a judged study, by kind, those found by judging first.

    A recorded caveat whose kind judging found too (`page_cache`) gives way: cells are counted
    then, not trials.
    """
    finders = dict.fromkeys(kind.find for kind in FINDINGS if kind.find is not None)
    judged = {f.kind: f for find in finders for f in find(ledger, verdict)}
    found, recorded = dict(judged), dict[str, list[Finding]]()
    for finding in _recorded(ledger):
        if finding.kind in judged or kind_of(finding.kind).is_of_plan:
            continue
        recorded.setdefault(finding.kind, []).append(finding)
    found |= {kind: _together(ledger, mine) for kind, mine in recorded.items()}
    return list(found.values())


def _together(ledger: Ledger, found: list[Finding]) -> Finding:
    """Make one finding of those of a kind: what it says is true of every place, or names it."""
    first = replace(found[0], count=sum(f.count for f in found))
    first = replace(first, says=_of_trials(ledger, found))
    shortest = _shortest(ledger, found) if kind_of(first.kind).is_of_shortest else None
    if shortest is not None:
        return replace(first, says=shortest)
    by_operation: dict[str, str] = {}
    for f in found:
        by_operation.setdefault(f.about.operation, f.says)
    if "" in by_operation or len(set(by_operation.values())) < 2:
        return first
    told = [f"{operation}: {text.rstrip('.')}" for operation, text in by_operation.items()]
    rest = len(told) - SAID_MAX
    more = f"; and {counted(rest, 'more operation')}" if rest > 0 else ""
    return replace(first, says="; ".join(told[:SAID_MAX]) + more)


def _of_trials(ledger: Ledger, found: list[Finding]) -> str:
    """Say what a warning of single trials is of all of them: from the least to the most."""
    says = found[0].says
    if not says.endswith(DURING):
        return says
    ran = sum(trial.status is not None for trial in ledger.data.trials)
    trials = len({f.about.trial_id for f in found})
    text = percent_range([f.says for f in found])
    return f"{text.removesuffix(DURING)} during {trials} of {counted(ran, 'trial')}"


def is_count_said(says: str, count: int) -> bool:
    """Tell whether a text has the number of trials itself: ``during 4 of 12 trials``."""
    return re.search(rf"\b{count} of \d+ (planned )?trials?\b", says) is not None


def _shortest(ledger: Ledger, found: list[Finding]) -> str | None:
    """Say which of several timed regions was the shortest; None of one, or if none is known."""
    places = {(f.about.trial_id, f.about.operation) for f in found}
    rows = [
        (elapsed_ns, row["operation"])
        for row in ledger.data.phase_details
        if (row["trial_id"], row["operation"]) in places and (elapsed_ns := row.get("elapsed_ns"))
    ]
    if len(places) < 2 or not rows:
        return None
    elapsed_ns, operation = min(rows)
    return f"timed regions were short: the shortest, {operation}, lasted {format_ns(elapsed_ns)}"


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
