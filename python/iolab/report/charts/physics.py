"""Physics check: what was measured against bounds that have a name, cell by cell.

Bounds: the generator (what the same program submits to a null target), memory (what all processors
copy together; where the agent did not measure that, the fastest result of this study that the page
cache served), a device's specification where one is known. What is above a bound cannot be right;
what is near the generator's measures the generator.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import cell_name, cells_in_order, operations_first
from iolab.stats import upper_bound
from iolab.stats.effect_words import percent
from iolab.stats.lookups import of_metric
from iolab.stats.methods.log_ratio import geometric_interval, geometric_mean
from iolab.stats.metrics.metric import format_bytes_per_s, in_rate_unit, rate_unit
from iolab.stats.verdict import StudyVerdict, mode_word
from iolab.store.derived import PAGE_CACHE_SHARE
from iolab.store.rows import Measurement, StudyData, TrialRow
from iolab.wording import counted, sentence_case

ROWS_MAX: Final = 40
DEPTH_SHARE: Final = 0.9
"""Less than this share of the depth asked for is worth a word."""
SPECIFICATION: Final = ("device.specification_bytes_per_s", "sim.bandwidth_bytes_per_s")
"""Facts that name what a device can do at most."""
COLUMNS: Final = (
    "workload",
    "cell",
    "mode",
    "fastest level",
    "throughput (bytes/s)",
    "95 % low (bytes/s)",
    "95 % high (bytes/s)",
    "n",
    "generator's ceiling (bytes/s)",
    "share of it",
    "memory (bytes/s)",
    "device specification (bytes/s)",
    "page-cache share",
    "depth asked",
    "depth reached",
)


Bound = tuple[str, float]
"""Name, and bytes/s."""


@dataclass(slots=True)
class Cell:
    """One cell with the values of its fastest level."""

    workload: str
    name: str
    is_direct: bool | None
    level: str
    values: list[float]
    ceiling: float | None
    cache_share: float | None
    depth_asked: str
    depth_reached: float | None

    @property
    def mean(self) -> float:
        """Geometric mean, bytes/s."""
        return geometric_mean(self.values)

    @property
    def is_cached(self) -> bool:
        """Tell whether memory served most of it."""
        return self.cache_share is not None and self.cache_share >= PAGE_CACHE_SHARE


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one figure for the study: a row per cell, a mark per bound."""
    cells = _cells(data, verdict)
    if not cells or data.study.kind == "imported":
        return []
    memory = _memory(data, cells)
    device = _device(data, verdict)
    names = [_name(c, data) for c in cells]
    kept = set(operations_first(names)[:ROWS_MAX])
    shown = [c for c, name in zip(cells, names, strict=True) if name in kept][:ROWS_MAX]
    note = f" Drawn: {len(shown)} of {len(cells)} cells; the table has all."
    return [
        ChartSpec(
            name="physics",
            kind="rows",
            title="Measured against upper bounds",
            caption=_caption(cells, memory, device) + (note if len(shown) < len(cells) else ""),
            x=Axis("throughput of the fastest level", rate_unit(), "log"),
            y=Axis("cell", categories=tuple(_name(c, data) for c in shown)),
            panels=(Panel("", _series(shown, memory, device)),),
            table=Table(COLUMNS, tuple(_row(c, memory, device) for c in cells)),
        )
    ]


def _memory(data: StudyData, cells: list[Cell]) -> Bound | None:
    """Bound that memory sets: as measured, else as the page cache once did."""
    measured = upper_bound.memory_bytes_per_s(data)
    if measured is not None:
        return upper_bound.MEMORY, measured
    cached = max((c.mean for c in cells if c.is_cached), default=None)
    return None if cached is None else ("memory: fastest cached result", cached)


def _device(data: StudyData, verdict: StudyVerdict) -> float | None:
    """Bound that the device sets: by a fact, else the larger of what the study's file says."""
    for fact in SPECIFICATION:
        if _is_number(text := data.facts.get(fact, "")):
            return float(text)
    told = [b.bytes_per_s for b in verdict.upper_bounds if b.name == upper_bound.SPECIFICATION]
    return max(told, default=None)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _name(cell: Cell, data: StudyData) -> str:
    return cell.name if len(data.study.workloads) == 1 else f"{cell.workload}: {cell.name}"


def _cells(data: StudyData, verdict: StudyVerdict) -> list[Cell]:
    """Group throughputs by cell and level; keep the fastest level of each cell."""
    trials = {trial.trial_id: trial for trial in data.trials if trial.status == "ok"}
    details = {(d["trial_id"], d["operation"]): d for d in data.phase_details}
    found: dict[tuple[str, str, bool | None], dict[str, list[Measurement]]] = {}
    for m in of_metric(data, upper_bound.METRIC):
        trial = trials.get(m.trial_id)
        if trial and m.value > 0 and "@" not in m.operation:
            key = (m.workload, cell_name(data, verdict, trial, m.operation), m.is_direct)
            level = m.levels.get(verdict.compared_factor, "all")
            found.setdefault(key, {}).setdefault(level, []).append(m)
    cells: list[Cell] = []
    asked = _stream_depths(data.study.spec_toml)
    for (workload, name, is_direct), by_level in found.items():
        level = max(by_level, key=lambda v: geometric_mean([m.value for m in by_level[v]]))
        rows = by_level[level]
        seen = [d for m in rows if (d := details.get((m.trial_id, m.operation)))]
        shares = [m.cache_share for m in rows if m.cache_share is not None]
        reached = [d.get("depth_reached_mean") for d in seen]
        depths = [depth for depth in reached if depth is not None]
        ceilings = [c for d in seen if (c := upper_bound.generator_ceiling(d)) is not None]
        cells.append(
            Cell(
                workload,
                name,
                is_direct,
                level,
                [m.value for m in rows],
                fmean(ceilings) if ceilings else None,
                fmean(shares) if shares else None,
                asked.get(rows[0].operation, _depth(trials[rows[0].trial_id], data)),
                fmean(depths) if depths else None,
            )
        )
    order = cells_in_order(data, list(dict.fromkeys(cell.name for cell in cells)))
    workloads = data.study.workloads
    return sorted(cells, key=lambda c: (workloads.index(c.workload), order.index(c.name)))


def _depth(trial: TrialRow, data: StudyData) -> str:
    return trial.levels.get("depth", data.study.settings.get("depth", ""))


def _stream_depths(spec_toml: str) -> dict[str, str]:
    """Return what the streams of mixed workloads ask for, by operation."""
    try:
        workloads = tomllib.loads(spec_toml).get("workloads", [])
        return {
            f"{workload['name']}/{stream['name']}": str(stream.get("depth", 1))
            for workload in workloads
            for stream in workload.get("streams", [])
        }
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError):
        return {}


def _series(shown: list[Cell], memory: Bound | None, device: float | None) -> tuple[Series, ...]:
    measured: list[Point] = []
    ceilings: list[Point] = []
    for row, cell in enumerate(shown):
        interval = geometric_interval(cell.values)
        measured.append(
            Point(
                in_rate_unit(cell.mean),
                row,
                in_rate_unit(interval[0]) if interval else None,
                in_rate_unit(interval[1]) if interval else None,
                f"{cell.name}: {format_bytes_per_s(cell.mean)} ({cell.level},"
                f" n = {len(cell.values)}{', page cache' if cell.is_cached else ''})",
                is_hollow=cell.is_cached,
            )
        )
        if cell.ceiling:
            text = f"generator's ceiling: {format_bytes_per_s(cell.ceiling)}"
            ceilings.append(Point(in_rate_unit(cell.ceiling), row, title=text))
    series = [Series("measured, fastest level", tuple(measured), 0)]
    if ceilings:
        series.append(Series("generator (null target)", tuple(ceilings), 9))
    for (name, bound), slot in (
        (memory or ("", None), 18),
        ((upper_bound.SPECIFICATION, device), 27),
    ):
        if bound is not None:
            points = (Point(in_rate_unit(bound), row, title=name) for row in range(len(shown)))
            series.append(Series(name, tuple(points), slot))
    return tuple(series)


def _caption(cells: list[Cell], memory: Bound | None, device: float | None) -> str:
    near = [(c.mean / c.ceiling, c) for c in cells if c.ceiling]
    parts: list[str] = []
    if near:
        share, cell = max(near, key=lambda item: item[0])
        verb = "is the limit" if share >= 0.8 else "is no limit"
        parts.append(
            f"The generator {verb}: at most {percent(share)} of what it submits to a null target"
            f" ({cell.name})"
        )
    above = [c for c in cells if device is not None and not c.is_cached and c.mean > device]
    if above:
        parts.append(f"{len(above)} cells are faster than the device can be: look for a cache")
    if memory is not None and memory[0] == upper_bound.MEMORY:
        fastest = max(cells, key=lambda c: c.mean)
        parts.append(
            f"{sentence_case(fastest.name)} reached {percent(fastest.mean / memory[1])} of the"
            f" {format_bytes_per_s(memory[1])} that all processors copy in memory"
        )
    parts += [text for text in (_cached_text(cells), _depth_text(cells)) if text]
    unknown = (("memory", memory), ("the device", device))
    missing = [name for name, bound in unknown if bound is None]
    if missing:
        parts.append(f"How fast {' and '.join(missing)} can be at most is not known")
    return " ".join(f"{part}." for part in parts or ["Nothing is known of the generator"])


def _cached_text(cells: list[Cell]) -> str:
    """Say how many cells the page cache served, where shares are known."""
    if all(c.cache_share is None for c in cells):
        return ""
    cached = sum(c.is_cached for c in cells)
    if not cached:
        return "No cell came from the page cache"
    shares = [c.cache_share for c in cells if c.cache_share is not None]
    return (
        f"{cached} of {counted(len(cells), 'cell')} came from the page cache (of all bytes"
        f" {percent(fmean(shares))}, mean of the cells)"
    )


def _depth_text(cells: list[Cell]) -> str:
    """Say whether as many operations were in flight as were asked for."""
    asked = [
        (c.depth_reached, int(c.depth_asked), c.name)
        for c in cells
        if c.depth_reached is not None and c.depth_asked.isdigit()
    ]
    if not asked:
        return ""
    short = [found for found in asked if found[0] < DEPTH_SHARE * found[1]]
    if short:
        least, wanted, name = min(short, key=lambda found: found[0] / found[1])
        return (
            f"The depth asked for was not reached in {len(short)} of {counted(len(asked), 'cell')}"
            f" (farthest below it: {name}, {least:.3g} of {wanted})"
        )
    where = {1: "in the only cell", 2: "in both cells"}.get(
        len(asked), f"in all {len(asked)} cells"
    )
    return f"The depth asked for was reached {where}"


def _row(c: Cell, memory: Bound | None, device: float | None) -> tuple[Value, ...]:
    interval = geometric_interval(c.values)
    return (
        c.workload,
        c.name,
        mode_word(c.is_direct),
        c.level,
        c.mean,
        interval[0] if interval else None,
        interval[1] if interval else None,
        len(c.values),
        c.ceiling or None,
        c.mean / c.ceiling if c.ceiling else None,
        memory[1] if memory else None,
        device or None,
        c.cache_share,
        c.depth_asked or None,
        c.depth_reached,
    )
