"""What the programs of a row may take of a disk, as the compiled half says (`Demand` there)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from iolab.errors import StudyError
from iolab.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class DemandCore(Protocol):
        """What is needed of `iolab._core`."""

        def workload_demand(self, workload_json: str, /) -> str:
            """What the programs of a workload may take, as JSON."""
            ...


@frozen
class DiskDemand:
    """Upper bounds by the workload's own words, in bytes; None: as much as the time allows."""

    file_bytes: int
    """Space that files take at the same time."""
    is_file_bound: bool
    """Whether they never take more."""
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


def demand_of(core: DemandCore, workload: Mapping[str, Any]) -> DiskDemand | None:
    """What the programs of a workload may take; None if it has none.

    Raises
    ------
    StudyError : the compiled half is older than this one.
    """
    tenants = [tenant for phase in workload["phases"] for tenant in phase["tenants"]]
    if not any(tenant.get("program") for tenant in tenants):
        return None
    ask = getattr(core, "workload_demand", None)
    if ask is None:
        raise StudyError("the compiled half does not know what programs take", "install both anew")
    found: dict[str, Any] = json.loads(ask(json.dumps(workload)))
    return DiskDemand(**{**found, "places": tuple(sorted(found["places"].items()))})


def add_demands(core: DemandCore, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan of a command, each row with its demand.

    Raises
    ------
    StudyError : as :func:`demand_of`.
    """
    for row in plan["rows"]:
        row["demand"] = demand_of(core, row["workload"])
    return plan
