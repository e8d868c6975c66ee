"""Studies that stand for another program's command line: they are exported from that line.

What was typed is kept with the study (`command`); read again it gives the workloads that were run,
also of a store in which the study does not hold them as data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from iolab.json_text import read_json
from iolab.study import dialects

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import CommandPlan, Phase, Tenant, Workload


class DialectReader(Protocol):
    """Reads another program's command line."""

    def dialect_parse(self, dialect: str, words: list[str], /) -> JsonText[CommandPlan]:
        """Plan of a command line, as JSON."""
        ...


def without_ours(command: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line that the program knows which it begins with."""
    name, *words = command
    kept = dialects.without_ours(dialects.find_dialect(name), words)
    return (name, *(word for word in kept if word != "--compat"))


def planned(core: DialectReader, command: Sequence[str]) -> CommandPlan:
    """The plan of a stored command line, its files named one by one.

    Raises
    ------
    DialectError : it names a file (a telemetry file, a list of names) that is there no more.
    """
    dialect, *words = command
    plan = read_json(core.dialect_parse(dialect, list(words)))
    for row in plan["rows"]:
        row["workload"] = one_by_one(row["workload"])
    return plan


def one_by_one(workload: Workload) -> Workload:
    """A workload description in which each file that has a name has a tenant of its own."""
    phases: list[Phase] = [
        {**phase, "tenants": [one for tenant in phase["tenants"] for one in _each(tenant)]}
        for phase in workload["phases"]
    ]
    return {**workload, "phases": phases}


def _each(tenant: Tenant) -> Iterator[Tenant]:
    """A tenant whose files have names of their own as one tenant per worker."""
    files = tenant.get("files", [])
    if not files:
        yield tenant
        return
    plain = tenant.copy()
    del plain["files"]
    for index, file in enumerate(files):
        name = tenant["name"] if len(files) == 1 else f"{tenant['name']}{index}"
        yield {**plain, "name": name, "file": file, "is_file_shared": True, "workers": 1}
