"""The one question before a run: what can this testbed not do of what is asked?

Studies and command lines of dialects ask it of every lowered trial; the first answer is told, with
the number of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from iolab.errors import StudyError
from iolab.run.core import Core
from iolab.run.places import check_places
from iolab.run.trial import check_specs
from iolab.study.dialects import find_dialect, words_of
from iolab.study.model import DialectWorkload
from iolab.study.names import ENGINES
from iolab.study.plan import Plan
from iolab.testbed.model import Testbed
from iolab.testbed.refusal import Refusal, RefusalCore
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import TrialSpec

_CACHED: Final = frozenset({"page_cache", "append"})
"""Codes of refusals that a dialect's own options for direct I/O avoid."""
_STREAMS: Final = "streams"
_STORE: Final = "key_value"
"""Need that is told before those of files, of which its users say nothing."""
_TOLD_MAX: Final = 2
_WITH_FILES: Final = (
    'name a file system in a stack file ([files] with fs = "ext4", docs/how-to/simulate-files.md)'
)


def refusals(testbed: Testbed, spec: TrialSpec, core: RefusalCore) -> tuple[Refusal, ...]:
    """Everything that `testbed` cannot do of a trial.

    Parameters
    ----------
    spec : trial spec of the agent protocol; only ``workload`` must be there.

    Returns
    -------
    tuple of Refusal : in the order of phases; empty if it can run.
    """
    abilities = {engine.name: engine.abilities for engine in ENGINES}
    return testbed.refusals(core, spec, abilities)


def check_possible(
    testbed: Testbed,
    spec: TrialSpec,
    core: RefusalCore,
    hints: Mapping[str, str] | None = None,
) -> None:
    """Refuse a trial of which the testbed cannot do something.

    Parameters
    ----------
    spec : trial spec of the agent protocol; only ``workload`` must be there.
    hints : advice in the words of its dialect, by code of refusals, where there is any.

    Raises
    ------
    StudyError : names what, where and why, and what to do instead; up to `_TOLD_MAX` reasons.
    """
    found = dict[str, Refusal]()
    for refusal in refusals(testbed, spec, core):
        found.setdefault(refusal.code, refusal)
    if not found:
        return
    hints = hints or {}
    first, *others = sorted(
        found.values(), key=lambda one: (one.code != _STORE, one.code not in hints)
    )
    told = [f"{other.phase or 'the trial'} {other.what}" for other in others[: _TOLD_MAX - 1]]
    left = len(others) - len(told)
    told += [counted(left, "other reason")] if left else []
    more = f" (besides: {'; '.join(told)})" if told else ""
    hint = hints.get(first.code, first.hint)
    raise StudyError(first.text(testbed.text) + more, hint)


def check_plan(testbed: Testbed, plan: Plan, core: Core) -> None:
    """Refuse a study that cannot be lowered, or of which the testbed cannot do something.

    Raises
    ------
    StudyError : names what, where and why, and what to do instead.
    """
    check_places(testbed, plan)
    for trial, spec in zip(plan.round_trials(1), check_specs(plan, core), strict=True):
        workload = trial.treatment.workload
        hints = _hints(testbed, workload) if isinstance(workload, DialectWorkload) else None
        check_possible(testbed, spec, core, hints)
        waits = workload.request.get("waits") if isinstance(workload, DialectWorkload) else None
        if testbed.is_simulated and waits:
            raise StudyError(f"-y on {testbed.text}: a simulation waits for nobody", "leave it out")


def _hints(testbed: Testbed, workload: DialectWorkload) -> dict[str, str]:
    """Advice by code of refusals: on words of the command; those of a file are not looked at."""
    own = find_dialect(workload.dialect)
    hint = own.way_past_the_cache(() if own.has_file else words_of(workload.text))
    hints = dict.fromkeys(_CACHED, hint)
    if own.streams_hint:
        hints[_STREAMS] = own.streams_hint
    if not testbed.is_simulated:
        return hints
    return {code: f"{_WITH_FILES}, or {hint}" for code, hint in hints.items()}
