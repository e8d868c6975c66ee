"""The one question before a run: what can this testbed not do of what is asked?

Studies and command lines of dialects ask it of every lowered trial; the first answer is told, with
the number of the others.
"""

from __future__ import annotations

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

_CACHED: Final = frozenset({"page_cache", "mapping", "streams", "append"})
"""Codes of refusals that a dialect's own options for direct I/O avoid."""


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
    testbed: Testbed, spec: TrialSpec, core: RefusalCore, cached_hint: str | None = None
) -> None:
    """Refuse a trial of which the testbed cannot do something.

    Parameters
    ----------
    spec : trial spec of the agent protocol; only ``workload`` must be there.
    cached_hint : how its workload is made to bypass the page cache, in the words of its dialect.

    Raises
    ------
    StudyError : names what, where and why, and what to do instead.
    """
    found = refusals(testbed, spec, core)
    if not found:
        return
    first, others = found[0], {refusal.code for refusal in found} - {found[0].code}
    more = f" ({counted(len(others), 'other reason')} besides)" if others else ""
    hint = cached_hint if cached_hint and first.code in _CACHED else first.hint
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
        hint = _way_past_the_cache(workload) if isinstance(workload, DialectWorkload) else None
        check_possible(testbed, spec, core, hint)
        waits = workload.request.get("waits") if isinstance(workload, DialectWorkload) else None
        if testbed.is_simulated and waits:
            raise StudyError(f"-y on {testbed.text}: a simulation waits for nobody", "leave it out")


def _way_past_the_cache(workload: DialectWorkload) -> str:
    """Advice on words that would bypass the page cache; those of a file are not looked at."""
    own = find_dialect(workload.dialect)
    return own.way_past_the_cache(() if own.has_file else words_of(workload.text))
