"""Rows of a dialect's plan as a study knows them.

Rows that differ in sizes or in the number of workers alone, as in IOzone's automatic mode, are one
workload at levels of these factors, so that everything that compares or draws levels knows them.
Other rows are workloads of their own, and the study has no factor: nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from iolab import units
from iolab.frozen import frozen_with_caches
from iolab.study.model import Factor, IozoneWorkload, Levels
from iolab.study.treatment import Place

_SIZES: Final = ("record_size", "file_size", "workers")
"""What rows of a table differ by; the first that does is compared."""
_FSYNC: Final = {"none": "none", "after": "after", "timed": "timed", "every": "after"}
_FLUSHES: Final = {"every": "1"}
Json = Mapping[str, Any]


@frozen_with_caches
class RowTable:
    """What is measured by a dialect's plan: at least one row."""

    dialect: str
    rows: Sequence[Json]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Sizes that rows differ by, the first is compared; none if nothing is."""
        return self._varied

    @property
    def settings(self) -> Levels:
        """Levels that all rows have in common."""
        return (("direct", self._direct),)

    @property
    def baseline(self) -> str:
        """Level of the compared factor that most rows have; empty if nothing is compared."""
        if not self._varied:
            return ""
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
        rows = [(_done(row), dict(_settings(row))) for row in self.rows]
        done, first = rows[0]
        names = {name for name in first if any(levels[name] != first[name] for _, levels in rows)}
        places = {tuple(levels[name] for name in _SIZES) for _, levels in rows}
        is_table = names <= set(_SIZES) and all(other == done for other, _ in rows)
        if not is_table or len(places) < len(rows):
            return ()
        return tuple(
            Factor(name, tuple(dict.fromkeys(levels[name] for _, levels in rows)))
            for name in _SIZES
            if name in names
        )

    @property
    def _direct(self) -> str:
        first: Json = self.rows[0]["workload"]["phases"][0]["tenants"][0]
        return "true" if first["access"] == "direct" else "false"

    def _place(self, row: Json) -> Place:
        if not self._varied:
            return row["name"], ()
        levels = dict(_settings(row))
        return self.dialect, tuple((factor.name, levels[factor.name]) for factor in self._varied)


def _tests(row: Json) -> tuple[str, ...]:
    return tuple(phase["name"] for phase in row["workload"]["phases"])


def _done(row: Json) -> list[tuple[str, list[str]]]:
    """Tests and who takes part: a reader more is another test, whatever it is called."""
    return [
        (phase["name"], [tenant["name"] for tenant in phase["tenants"]])
        for phase in row["workload"]["phases"]
    ]


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
