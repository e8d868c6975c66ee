"""Space that the programs of a row may take of a disk, as the compiled half says (`Demand`
there).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.frozen import frozen
from iolab.json_text import read_json, write_json

if TYPE_CHECKING:
    from typing import Protocol

    from iolab.json_text import JsonText
    from iolab.protocol import Demand, Workload

    class DemandCore(Protocol):
        """Functions of `iolab._core` that are needed."""

        def workload_demand(self, workload_json: JsonText[Workload], /) -> JsonText[Demand | None]:
            """Space that the programs of a workload may take."""
            ...


@frozen
class DiskDemand:
    """Upper bounds by the workload's own words, in bytes; None: as much as the time allows."""

    file_bytes: int
    """Space that files take at the same time."""
    is_file_bound: bool
    """True if they never take more."""
    laid_bytes: int
    """Written before anything is measured."""
    written_bytes: int | None
    moved_bytes: int | None
    """Read and written."""
    time_ns: int
    """Length of what the clock ends."""
    main_bytes: int
    """The part of `file_bytes` that lies in no place that a set of files names."""
    places: tuple[tuple[str, int], ...]
    """The part of it in each place that sets of files name."""


def demand_of(core: DemandCore, workload: Workload) -> DiskDemand | None:
    """Space that the programs of a workload may take; None if it has none."""
    tenants = [tenant for phase in workload["phases"] for tenant in phase["tenants"]]
    if not any(tenant.get("program") for tenant in tenants):
        return None
    demand = read_json(core.workload_demand(write_json(workload)))
    if demand is None:
        return None
    places = tuple(sorted(demand["places"].items()))
    return DiskDemand(**{**demand, "places": places})  # type: ignore[arg-type]
