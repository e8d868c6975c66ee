"""Rows of a dialect's plan as a study knows them.

Rows that differ in sizes or in the number of workers alone, as in IOzone's automatic mode, are one
workload at levels of these factors, so that everything that compares or draws levels knows them.
Other rows are workloads of their own, and the study is one of a single configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from iolab import units
from iolab.study.model import Factor, IozoneWorkload, Levels
from iolab.study.treatment import Place

NAMED_FACTOR: Final = "direct"
"""What a study of one configuration is called by."""
_SIZES: Final = ("record_size", "file_size", "workers")
"""What rows of a table differ by; the first that does is compared."""
_OF_FILES: Final = ("mkfile",)
"""Dialects whose rows are files that are wanted, whatever their sizes."""
_FSYNC: Final = {"none": "none", "after": "after", "timed": "timed", "every": "after"}
_FLUSHES: Final = {"every": "1"}
Json = Mapping[str, Any]


@dataclass(frozen=True)
class RowTable:
    """What is measured by a dialect's plan: at least one row."""

    dialect: str
    rows: Sequence[Json]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """What rows differ by, then what they have in common; the first is compared."""
        first: Json = self.rows[0]["workload"]["phases"][0]["tenants"][0]
        direct = "true" if first["access"] == "direct" else "false"
        return (*self._varied, Factor(NAMED_FACTOR, (direct,)))

    @property
    def baseline(self) -> str:
        """Of the compared factor, the level that most rows have: others meet it most often."""
        name = self.factors[0].name
        levels = [dict(levels)[name] for _, levels in self.places]
        return max(self.factors[0].levels, key=levels.count)

    @property
    def workloads(self) -> tuple[IozoneWorkload, ...]:
        """One for all rows, or one for each."""
        if not self._varied:
            return tuple(
                IozoneWorkload(name=row["name"], tests=_tests(row), settings=_settings(row))
                for row in self.rows
            )
        names = {factor.name for factor in self._varied}
        row = self.rows[0]
        held = tuple(pair for pair in _settings(row) if pair[0] not in names)
        return (IozoneWorkload(name=self.dialect, tests=_tests(row), settings=held),)

    @cached_property
    def places(self) -> list[Place]:
        """Where each row is among the treatments of the study."""
        return [self._place(row) for row in self.rows]

    @cached_property
    def _varied(self) -> tuple[Factor, ...]:
        rows = [(_tests(row), dict(_settings(row))) for row in self.rows]
        tests, first = rows[0]
        names = {name for name in first if any(levels[name] != first[name] for _, levels in rows)}
        places = {tuple(levels[name] for name in _SIZES) for _, levels in rows}
        is_table = names <= set(_SIZES) and all(other == tests for other, _ in rows)
        if self.dialect in _OF_FILES or not is_table or len(places) < len(rows):
            return ()
        return tuple(
            Factor(name, tuple(dict.fromkeys(levels[name] for _, levels in rows)))
            for name in _SIZES
            if name in names
        )

    def _place(self, row: Json) -> Place:
        levels = dict(_settings(row))
        *varied, direct = self.factors
        name = self.dialect if varied else row["name"]
        sizes = tuple((factor.name, levels[factor.name]) for factor in varied)
        return name, (*sizes, (direct.name, direct.levels[0]))


def _tests(row: Json) -> tuple[str, ...]:
    return tuple(phase["name"] for phase in row["workload"]["phases"])


def _settings(row: Json) -> Levels:
    workload: Json = row["workload"]
    tenants = [tenant for phase in workload["phases"] for tenant in phase["tenants"]]
    first: Json = tenants[0]
    fsync = str(first["fsync"]["kind"])
    levels = {
        "record_size": units.format_bytes(row["record_kb"] << 10 or first["io_size_bytes"]),
        "file_size": units.format_bytes(row["file_kb"] << 10 or first["file_bytes"]),
        "workers": str(row["children"]),
        "depth": str(max(int(tenant["depth"]) for tenant in tenants)),
        "engine": str(workload["engine"]),
        "workers_as": str(workload["workers_as"]),
        "durability": str(first["durability"]),
        "fsync": _FSYNC[fsync],
        "fsync_every": _FLUSHES.get(fsync, "never"),
        "flush": str(first.get("flush", "fsync")),
        "lock": str(first.get("lock", "none")),
        "verify": str(workload.get("verify", "none")),
    }
    return tuple(levels.items())
