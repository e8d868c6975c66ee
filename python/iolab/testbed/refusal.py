"""What a testbed cannot do of what a trial asks for: a list of typed refusals, before any run.

The comparison is that of crates/iolab-drive/src/needs.rs; this module only asks for it and reads
the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from iolab.frozen import frozen

Abilities: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Name of an engine to what its target says of itself."""


class RefusalCore(Protocol):
    """What is needed of `iolab._core`."""

    def sim_refusals(self, stack_json: str, trial_json: str, /) -> str:
        """Everything in a trial that a simulated stack cannot do, as JSON."""
        ...

    def workload_refusals(self, abilities_json: str, workload_json: str, /) -> str:
        """Everything in a workload that its engines cannot do, as JSON."""
        ...


@frozen
class Refusal:
    """Something that a testbed cannot do.

    `code` is snake_case and stable (``page_cache``, ``control_groups`` ...); `what` is what the
    workload does; `phase` and `tenant` say where, and are empty if it is the whole trial.
    """

    code: str
    what: str
    phase: str
    tenant: str
    reason: str
    hint: str

    def text(self, where: str) -> str:
        """One line without the hint; `where` names the testbed."""
        who = f"{self.phase} on {where}" if self.phase else f"a trial on {where}"
        return f"{who} {self.what}, and {self.reason}"


def parse_refusals(text: str) -> tuple[Refusal, ...]:
    """Refusals of the JSON that the core answers with."""
    return tuple(Refusal(**row) for row in json.loads(text))
