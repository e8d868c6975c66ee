"""The one question before a run: what can this testbed not do of what is asked?

Studies and command lines of dialects ask it of every lowered trial; the first answer is told, with
the number of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iolab.errors import StudyError
from iolab.study.names import ENGINES
from iolab.testbed.model import Testbed
from iolab.testbed.refusal import Refusal, RefusalCore
from iolab.wording import counted


def refusals(testbed: Testbed, spec: Mapping[str, Any], core: RefusalCore) -> tuple[Refusal, ...]:
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


def check_possible(testbed: Testbed, specs: Iterable[Mapping[str, Any]], core: RefusalCore) -> None:
    """Refuse trials of which the testbed cannot do something.

    Raises
    ------
    StudyError : names what, where and why, and what to do instead.
    """
    for spec in specs:
        found = refusals(testbed, spec, core)
        if found:
            first, others = found[0], {refusal.code for refusal in found} - {found[0].code}
            more = f" ({counted(len(others), 'other reason')} besides)" if others else ""
            raise StudyError(first.text(testbed.text) + more, first.hint)
