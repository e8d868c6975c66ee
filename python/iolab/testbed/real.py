"""Common part of testbeds on the running kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from iolab import units
from iolab.errors import TestbedError
from iolab.json_text import write_json
from iolab.testbed.refusal import Abilities, Refusal, RefusalCore, parse_refusals

if TYPE_CHECKING:
    from iolab.protocol import TrialSpec


class RealTestbed:
    """Common part of testbeds on the running kernel."""

    __slots__ = ()

    can_need_root: ClassVar[bool] = True
    """True if factors such as knobs need root here."""
    has_knobs_on_paper: ClassVar[bool] = False
    is_simulated: ClassVar[bool] = False
    """True if trials run in this process, on models, in virtual time."""
    has_null_target: ClassVar[bool] = False
    """True if its operations complete at once and reach nothing."""
    record_kind: ClassVar[Literal["real", "simulated"]] = "real"
    """Kind of its records; a report never mixes the two in one comparison."""

    def round_text(self, written_bytes: int, duration_ns: int, ops: int | None) -> str:
        """Sentence about the effects of a round on the device, and the time that it may take."""
        del ops
        return (
            f"a round writes about {units.format_bytes_rounded(written_bytes)} (roughly "
            f"{units.format_duration_rounded(duration_ns)})"
        )

    def refusals(
        self, core: RefusalCore, spec: TrialSpec, abilities: Abilities
    ) -> tuple[Refusal, ...]:
        """Everything in a trial spec that its engines cannot do, in the order of phases."""
        workload = write_json(spec["workload"])
        return parse_refusals(core.workload_refusals(write_json(abilities), workload))

    def expected_ns(self, duration_ns: int) -> int | None:
        """Time that a round takes that was guessed to take `duration_ns`; None if unknown."""
        return duration_ns


def only(options: Mapping[str, str], kind: str, known: tuple[str, ...]) -> None:
    """Refuse options that a kind of testbed does not have.

    Raises
    ------
    TestbedError : names the option and those that there are.
    """
    for name in options:
        if name not in known:
            raise TestbedError(f"a {kind} testbed has no {name}", f"it has {', '.join(known)}")
