"""Conditions under which a study may be continued here: the kernel and the processor must be those
it began on.

What the stored trials said of them is compared with what the opened testbed says now. Another one
is refused unless the user insists; then the report says so (caveat `environment_changed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.errors import StudyError
from iolab.store.db import Store

FACTS: Final = ("kernel.release", "cpu.model")
FLAG: Final = "--allow-other-machine"


def check_same_machine(store: Store, now: Mapping[str, str]) -> None:
    """Refuse to continue a study on another kernel or processor.

    Raises
    ------
    StudyError : a stored trial ran on another one; names both.
    """
    stored = store.fact_values(FACTS)
    for fact in FACTS:
        known = stored.get(fact, [])
        if fact in now and known and now[fact] not in known:
            raise StudyError(
                f"the study was begun with {fact} = {', '.join(known)}; here it is {now[fact]}",
                f"continue it there, begin a new one with another --out, or insist with {FLAG}"
                " (the report will say so)",
            )
