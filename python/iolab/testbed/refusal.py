"""Requests of a trial that a testbed cannot fulfil: a list of typed refusals, before any run.

The comparison is that of crates/iolab-drive/src/needs.rs; this module only asks for it and reads
the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from iolab.frozen import frozen
from iolab.json_text import read_json

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.json_text import JsonText
    from iolab.protocol import Capabilities, TrialSpec, Workload

Abilities: TypeAlias = "Mapping[str, Capabilities]"
"""Name of an engine to what its target says of itself."""


class RefusalCore(Protocol):
    """Functions of `iolab._core` that are needed."""

    def sim_refusals(
        self, stack_json: str, trial_json: JsonText[TrialSpec], /
    ) -> JsonText[list[protocol.Refusal]]:
        """Everything in a trial that a simulated stack cannot do, as JSON."""
        ...

    def workload_refusals(
        self, abilities_json: JsonText[Abilities], workload_json: JsonText[Workload], /
    ) -> JsonText[list[protocol.Refusal]]:
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


def parse_refusals(text: JsonText[list[protocol.Refusal]]) -> tuple[Refusal, ...]:
    """Refusals of the JSON that the core answers with."""
    return tuple(Refusal(**row) for row in read_json(text))
