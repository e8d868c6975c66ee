"""The plan of an entry: rows to measure, as the compiled half reads them from words or a file.

What a command asks for beside measuring stays what crosses (`iolab.protocol.CommandPlan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.frozen import frozen
from iolab.json_text import read_json
from iolab.study.demand import DiskDemand, demand_of
from iolab.study.model import WorkerGroup

if TYPE_CHECKING:
    from typing import Protocol

    from iolab.json_text import JsonText
    from iolab.protocol import (
        CommandPlan,
        CommandRow,
        Demand,
        IozoneRow,
        RecordedIdentity,
        Tenant,
        Workload,
    )

    class DialectCore(Protocol):
        """Functions of `iolab._core` that are needed."""

        def dialect_parse(self, dialect: str, words: list[str], /) -> JsonText[CommandPlan]:
            """Plan of a command line."""
            ...

        def workload_file(self, subject: str, text: str, /) -> JsonText[Workload]:
            """Workload description of a native workload file."""
            ...

        def workload_demand(self, workload_json: JsonText[Workload], /) -> JsonText[Demand | None]:
            """Space that the programs of a workload may take."""
            ...

    class RecordingCore(Protocol):
        """Function of `iolab._core` that looks at a recorded stream."""

        def recording_identity(self, path: str, /) -> JsonText[RecordedIdentity]:
            """Size and digest of the file of a recorded stream."""
            ...

    class FileCore(DialectCore, RecordingCore, Protocol):
        """Functions of `iolab._core` that reading a study file needs."""

        def workload_file_anchored(self, folder: str, text: str, /) -> str:
            """Text of a workload file with whole names of its recorded streams."""
            ...


@frozen
class PlannedRow:
    """Row that is measured at once."""

    name: str
    workload: Workload
    row: IozoneRow | CommandRow | None = None
    """The row of a command; None of a file, where only the workload says sizes."""
    demand: DiskDemand | None = None
    """Space that its programs may take of a disk."""
    control_groups: tuple[WorkerGroup, ...] = ()
    """Control groups of its tenants."""

    @property
    def tenants(self) -> list[Tenant]:
        """Tenants of all phases."""
        return [tenant for phase in self.workload["phases"] for tenant in phase["tenants"]]


@frozen
class EntryPlan:
    """Meaning of the words, or the file, of an entry."""

    rows: Sequence[PlannedRow]
    cache: str
    """State of the page cache, as levels of the factor have it."""
    files: tuple[str, ...] = ()
    command: CommandPlan | None = None
    """The whole plan of a command; None of a file."""


def plan_of_command(core: DialectCore, dialect: str, words: Sequence[str]) -> EntryPlan:
    """Plan of a command line.

    Parameters
    ----------
    words : without the dialect's name.

    Raises
    ------
    DialectError : the dialect refuses the words; says where.
    """
    return entry_plan(core, read_json(core.dialect_parse(dialect, list(words))))


def entry_plan(core: DialectCore | None, plan: CommandPlan) -> EntryPlan:
    """Plan of a command line that was read.

    Parameters
    ----------
    core : knows demands; None if nobody asks for them.
    """
    rows = [
        PlannedRow(
            row["name"],
            row["workload"],
            row,
            demand=None if core is None else demand_of(core, row["workload"]),
            control_groups=tuple(
                WorkerGroup(tuple(group["tenants"]), group.get("weight"))
                for group in row.get("control_groups", ())
            ),
        )
        for row in plan["rows"]
    ]
    return EntryPlan(rows, plan["cache"], tuple(plan["files"]), plan)


def plan_of_file(core: DialectCore, subject: str, text: str) -> EntryPlan:
    """Plan of a workload file.

    Parameters
    ----------
    subject : name of the file, for messages.
    text : what the file holds.

    Raises
    ------
    DialectError : it is no workload; says in which line.
    """
    workload = read_json(core.workload_file(subject, text))
    row = PlannedRow(workload["name"], workload, demand=demand_of(core, workload))
    return EntryPlan([row], "as_is")
