"""Length of the slices of a study, the time around them, and that of a balanced unit.

The agent chooses the length of a slice between limits, from what it measures. Short slices follow
from operations and from what a change of a knob costs; long ones from the time constants of the
schedulers that are compared. Estimates are made before anything runs: they assume that slices are
as short as they may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.frozen import frozen
from iolab.study.estimate import ASSUMED_BYTES_PER_S, Cost, cost_of
from iolab.study.model import IozoneWorkload, MixedWorkload, Study, WorkloadPlan
from iolab.study.operations import operations_of
from iolab.study.treatment import Treatment
from iolab.study.validity import (
    SCHEDULERS_WITHOUT_STATE,
    TIME_CONSTANTS_NS,
    devices_of,
    is_long,
    program_of,
    twins_of,
)
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.study.plan import Plan

NS_PER_MS: Final = 1e6
NS_PER_S: Final = 1e9
SLICE_MIN_NS: Final = 12_000_000
SLICE_MAX_NS: Final = 65_000_000
SWITCHED_SLICE_MAX_NS: Final = 130_000_000
"""A change of a knob may cost some 30 ms: longer slices pay it less often."""
LONG_SLICE_MIN_NS: Final = 500_000_000
LONG_SLICE_MAX_NS: Final = 2_000_000_000
TIME_CONSTANTS: Final = 4
"""A long slice is so many times the longest time constant of the compared schedulers."""
LONG_WASHOUT_NS: Final = 100_000_000
TWIN_SETTLE_NS: Final = 50_000_000
"""Driven and not counted on a device whose knobs were exchanged just before."""
EXCHANGE_NS: Final = 60_000_000
"""Cost of writing a knob on two devices; only estimates use it."""
UNIT_NS: Final = 2_500_000_000
IMAGE_UNITS: Final = 2
"""Balanced units on a set of images; together they are one round."""
IMAGE_NS: Final = 1_500_000_000
"""Cost of making an image with its files; only estimates use it."""
SDS_ASSUMED: Final = (0.01, 0.03, 0.10)
"""Of the ln-ratio of a balanced unit, where no A/A study has measured it: a quiet machine, one
in use and a busy one (docs/explanation/design-of-a-study.md says how they were measured)."""


@frozen
class SliceLimits:
    """Between which lengths the agent chooses, and what surrounds slices; all in ns."""

    min_ns: int
    max_ns: int
    washout_ns: int
    settle_ns: int
    """In place of the washout, on a device whose knobs were just changed."""
    places: int
    """Devices made alike that are exchanged; 1 where images are made anew instead."""
    is_long: bool
    images: int = 0
    """File systems made anew for each round, one on each device; 0: they share one."""

    @property
    def unit_ns(self) -> int:
        """Length of a balanced unit, unless its slices take longer."""
        return self.places * UNIT_NS


def slice_limits(study: Study, treatments: Sequence[Treatment]) -> SliceLimits:
    """Limits of the slices of a study that `check_pairs` accepts."""
    places, images = twins_of(study, treatments), 0
    if devices_of(study) == "images":
        places, images = 1, places
    if not is_long(study):
        is_switched = devices_of(study) == "switched"
        max_ns = SWITCHED_SLICE_MAX_NS if is_switched else SLICE_MAX_NS
        settle_ns = TWIN_SETTLE_NS if places > 1 else 0
        return SliceLimits(SLICE_MIN_NS, max_ns, 0, settle_ns, places, is_long=False, images=images)
    constant = longest_constant_ns(study, treatments)
    wanted = max(LONG_SLICE_MIN_NS, TIME_CONSTANTS * constant)
    settle_ns = max(LONG_WASHOUT_NS, constant)
    max_ns = max(wanted, LONG_SLICE_MAX_NS)
    return SliceLimits(
        wanted, max_ns, LONG_WASHOUT_NS, settle_ns, places, is_long=True, images=images
    )


def unit_estimate_ns(limits: SliceLimits, cells: int) -> int:
    """Approximate time of a balanced unit.

    Parameters
    ----------
    cells : phases of all treatments.
    """
    least = (1 if limits.places > 1 else 2) * cells * (limits.min_ns + limits.washout_ns)
    if limits.images:
        return IMAGE_UNITS * max(limits.unit_ns, least) + limits.images * IMAGE_NS
    around = EXCHANGE_NS + limits.places * limits.settle_ns if limits.places > 1 else 0
    return limits.places * (max(limits.unit_ns // limits.places, least) + around)


def longest_constant_ns(study: Study, treatments: Sequence[Treatment]) -> int:
    """Longest time constant of the schedulers in use, those left out that a workload cannot meet.

    Deadlines are met where streams compete; a lone stream's requests never wait that long.
    """
    is_contended = any(program_of(workload) == "contention" for workload in study.workloads)
    in_use = {treatment.effective.get("scheduler", "") for treatment in treatments}
    ignored = () if is_contended else SCHEDULERS_WITHOUT_STATE
    constants = [TIME_CONSTANTS_NS.get(name, 0) for name in in_use if name not in ignored]
    return max(constants, default=0)


def unit_cost(study: Study, treatments: Sequence[Treatment]) -> Cost:
    """Guessed cost of a balanced unit; what writes does so as fast as the device takes it."""
    cells = [cell for treatment in treatments for cell in _writes(treatment.workload)]
    duration_ns = unit_estimate_ns(slice_limits(study, treatments), len(cells))
    moved = int(ASSUMED_BYTES_PER_S * duration_ns / NS_PER_S)
    costs = [cost_of(treatment) for treatment in treatments]
    return Cost(
        written_bytes=moved * sum(cells) // max(1, len(cells)),
        moved_bytes=moved,
        file_bytes=max(cost.file_bytes for cost in costs),
        duration_ns=duration_ns,
        is_bound=not any(cells),
        is_file_bound=all(cost.is_file_bound for cost in costs),
    )


def _writes(workload: WorkloadPlan) -> list[bool]:
    """Tell whether each phase of a workload writes."""
    if isinstance(workload, IozoneWorkload):
        return [operation.writes for operation in operations_of(workload)]
    if isinstance(workload, MixedWorkload):
        return [any(stream.read_share < 1 for stream in workload.streams)]
    return [True]


def limits_text(limits: SliceLimits) -> str:
    """Name the design before it runs: ``alternating slices of 12 to 65 ms on 2 twin devices``."""
    twins = f" on {limits.places} twin devices" if limits.places > 1 else ""
    if limits.images:
        twins = f" on sets of {limits.images} images, each set made anew"
    least, most = length_text(limits.min_ns), length_text(limits.max_ns)
    if least == most:
        return f"alternating slices of {least}{twins}"
    number, unit = least.split()
    shared = number if most.endswith(unit) else least
    return f"alternating slices of {shared} to {most}{twins}"


def unit_noun(study: Study) -> str:
    """Name of a round of a study in slices."""
    return "set" if devices_of(study) == "images" else "balanced unit"


def announcement(plan: Plan) -> str:
    """Say in one sentence how a study in slices is arranged, and what it may decide."""
    study = plan.study
    limits, unit_ns = slice_limits(study, plan.treatments), plan.round_cost().duration_ns
    text = (
        f"{limits_text(limits)}; a {unit_noun(study)} takes about"
        f" {units.format_duration_rounded(unit_ns)}"
    )
    if limits.images:
        return text  # Nobody has measured how much layouts scatter.
    fit = None if study.budget_ns is None else study.budget_ns // unit_ns
    count = study.rounds if fit is None else min(fit, study.rounds or fit)
    if not count:
        return text
    widths = [math.expm1(2 * sd / math.sqrt(count)) for sd in (SDS_ASSUMED[0], SDS_ASSUMED[-1])]
    least, most = (f"{width * 100:.2g}" for width in widths)
    return (
        f"{text}, {counted(count, 'unit')} in all: intervals of about ±{least} % on a quiet machine"
        f" to ±{most} % on a busy one"
    )


def length_text(slice_ns: float) -> str:
    """Length of a slice, as sentences have it: ``26 ms``, ``1.2 s``."""
    if slice_ns < NS_PER_S / 2:
        return f"{slice_ns / NS_PER_MS:.0f} ms"
    return f"{slice_ns / NS_PER_S:.2g} s"


def design_text(slice_ns: float, sessions: int, places: int = 1, images: int = 0) -> str:
    """Name the design as sentences and tables do."""
    if images:
        sets = counted(sessions, "set")
        return f"alternating slices of {length_text(slice_ns)} on {sets} of {images} fresh images"
    twins = f" on {places} twin devices" if places > 1 else ""
    text = f"alternating slices of {length_text(slice_ns)}{twins}"
    if sessions == 1:
        return f"{text}, one session, one layout"
    return f"{text}, {sessions} sessions, each with a layout of its own"
