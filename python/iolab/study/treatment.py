"""Treatments: the combinations of levels that a study compares, per workload."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Final

from iolab.errors import StudyError
from iolab.frozen import frozen_with_caches
from iolab.study.factors import FACTORS, Scope, find_factor, is_factor
from iolab.study.model import (
    DialectRow,
    DialectWorkload,
    Factor,
    Levels,
    MixedWorkload,
    Study,
    WorkloadPlan,
)
from iolab.study.names import ENGINES
from iolab.study.testbeds import NO_FILE_SYSTEM, testbed_kind
from iolab.units import grouped

_ASYNCHRONOUS: Final = tuple(engine.name for engine in ENGINES if engine.is_asynchronous)
DEEP_ENGINE: Final = "io_uring"
"""Engine that keeps several operations in flight if none was chosen."""
TREATMENTS_MAX: Final = 10_000
"""At a second each, three hours for one round."""
Place = tuple[str, Levels]
"""A workload's name and the varied levels: what a treatment is known by inside its study."""


@frozen_with_caches
class Treatment:
    """One workload under one combination of levels.

    ``levels`` holds what is varied on purpose (and followed by the workload), ``stack_levels``
    everything that applies, held levels and defaults included.
    """

    workload: WorkloadPlan
    levels: Levels
    effective_levels: Levels

    @cached_property
    def effective(self) -> dict[str, str]:
        """Every level that applies, by factor."""
        return dict(self.effective_levels)

    @cached_property
    def name(self) -> str:
        """Unique inside a study; stable, for messages and for grouping times."""
        pairs = ", ".join(f"{name}={level}" for name, level in self.levels)
        return f"{self.workload.name} ({pairs})" if pairs else self.workload.name

    @cached_property
    def row(self) -> DialectRow | None:
        """Row that a dialect measures here; None of other workloads."""
        workload = self.workload
        return workload.row(self.levels) if isinstance(workload, DialectWorkload) else None

    @property
    def place(self) -> Place:
        """Place among the others."""
        return (self.workload.name, self.levels)

    @cached_property
    def whole_plot(self) -> Levels:
        """Levels that are hard to change; treatments that share them run together."""
        return tuple(
            (name, level)
            for name, level in self.effective_levels
            if find_factor(name).is_hard_to_change
        )

    @property
    def is_deep(self) -> bool:
        """Tell whether its engine can keep several operations in flight."""
        return self.effective["engine"] in _ASYNCHRONOUS

    @property
    def is_direct(self) -> bool:
        """Tell whether its operations bypass the page cache."""
        return self.effective.get("direct") == "true"


def treatments_of(study: Study) -> tuple[Treatment, ...]:
    """Full factorial of each workload over the factors it follows, in the order written.

    Raises
    ------
    StudyError : more than any machine could run.
    """
    found = list[Treatment]()
    for workload in study.workloads:
        followed = [factor for factor in study.factors if is_varied_by(workload, factor.name)]
        rows: tuple[Levels, ...] = ((),)
        if isinstance(workload, DialectWorkload):  # Its rows need not be all combinations.
            followed = [factor for factor in followed if factor.name not in workload.own_factors]
            rows = tuple(row.levels for row in workload.rows)
        _check_count(len(found), followed, len(rows))
        order = [factor.name for factor in study.factors]
        for levels in itertools.product(*(factor.levels for factor in followed)):
            chosen = tuple(zip((factor.name for factor in followed), levels, strict=True))
            for own in rows:
                place = tuple(sorted([*chosen, *own], key=lambda pair: order.index(pair[0])))
                found.append(Treatment(workload, place, _effective(study, workload, place)))
    return tuple(found)


def _check_count(n_before: int, followed: list[Factor], n_rows: int) -> None:
    count = n_before + n_rows * math.prod(len(factor.levels) for factor in followed)
    if count > TREATMENTS_MAX:
        product = " x ".join(f"{len(factor.levels)} {factor.name}" for factor in followed)
        raise StudyError(
            f"a round would have {grouped(count)} treatments ({product}), more than"
            f" {grouped(TREATMENTS_MAX)}",
            "drop levels, or split the study",
        )


def _effective(study: Study, workload: WorkloadPlan, levels: Levels) -> Levels:
    """Defaults, then the study's settings, the treatment's levels, the workload's own."""
    has_stack = study.testbed.has_file_system
    is_dialect = isinstance(workload, DialectWorkload)
    asked = dict(study.settings) | dict(levels) | dict(workload.settings)
    result = dict[str, str]()
    for definition in FACTORS:
        is_own = _has_own(workload, definition.scope)
        is_missing_stack = definition.scope is Scope.STACK and not has_stack
        if is_own or (is_missing_stack and definition.name not in asked):
            continue
        default = definition.default
        if definition.name == "fs" and testbed_kind(study.testbed.kind).is_bare_by_default:
            # A stack file may have a file system of its own.
            default = None if study.testbed.argument.endswith(".toml") else NO_FILE_SYSTEM
        if definition.name == "cache" and is_dialect:
            default = workload.cache
        level = asked.get(definition.name, default)
        if level is not None:
            result[definition.name] = level
    if is_dialect:
        return tuple((result | dict(workload.row(levels).facts)).items())
    if "engine" not in asked and depth_max(workload, result) > 1:
        result["engine"] = DEEP_ENGINE
    return tuple(result.items())


def depth_max(workload: WorkloadPlan, effective: dict[str, str]) -> int:
    """Largest number of operations that one worker keeps in flight."""
    if isinstance(workload, MixedWorkload):
        return max(stream.depth for stream in workload.streams)
    return int(effective["depth"])


def is_varied_by(workload: WorkloadPlan, factor: str) -> bool:
    """Tell whether `workload` follows the levels of a varied factor.

    It does not if it holds the factor itself, or describes such things in its own words.
    """
    if isinstance(workload, DialectWorkload) and factor in workload.own_factors:
        return True
    if any(name == factor for name, _ in workload.settings) or not is_factor(factor):
        return False
    return not _has_own(workload, find_factor(factor).scope)


def _has_own(workload: WorkloadPlan, scope: Scope) -> bool:
    """Tell whether a workload says itself what factors of a scope would say."""
    if isinstance(workload, DialectWorkload):
        return scope in (Scope.PATTERN, Scope.ACCESS)
    return isinstance(workload, MixedWorkload) and scope is Scope.PATTERN
