"""Everything that several renderers show: charts, trust figures, throughput-mode rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from iolab.frozen import frozen
from iolab.report.chart import ChartSpec, Table, Value
from iolab.report.charts import CHARTS, ChartRow
from iolab.report.shown_text import shown_text
from iolab.report.side_by_side import tidied
from iolab.stats.sentence import source_text
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StoredWorker, StudyData


@frozen
class DrawnChart:
    """A row of `CHARTS` with what it built."""

    row: ChartRow
    built: tuple[ChartSpec, ...]

    @property
    def specs(self) -> tuple[ChartSpec, ...]:
        """Charts that the workbook draws too: nothing folded, and the first of several views."""
        views: set[str] = set()
        kept: list[ChartSpec] = []
        for spec in self.built:
            figure = spec.tab[0] if spec.tab else spec.name
            if not spec.is_folded and figure not in views and spec.kind in ("rows", "plane"):
                kept.append(spec)
            views.add(figure)
        return tuple(kept)


def draw_all(data: StudyData, verdict: StudyVerdict) -> list[DrawnChart]:
    """Build every chart of the report once, for HTML and Excel alike."""
    return [DrawnChart(row, tuple(map(tidied, row.build(data, verdict)))) for row in CHARTS]


def trust_figures(data: StudyData, verdict: StudyVerdict) -> list[tuple[str, str]]:
    """Return the short facts of the trust box: label and value."""
    headline = verdict.headline
    rounds = [c.rounds_used for c in headline]
    excluded = max((c.rounds_excluded for c in headline), default=0)
    figures = [
        *kind_figures(data)[:1],
        (
            "rounds used" if verdict.is_paired else "runs a side",
            _span(rounds) + (f" ({excluded} left out)" if excluded else ""),
        ),
        *_trials(verdict),
        ("order", _order(data)),
        ("margin", f"{verdict.margin * 100:.3g} %"),
        ("cells from the page cache", _cached_cells(verdict)),
        ("cells limited by the generator", _bound_cells(verdict)),
    ]
    cost = harness_cost_ns(data)
    if cost is not None:
        figures.insert(-2, ("harness cost per op", f"{cost:.0f} ns"))
    return figures


def _trials(verdict: StudyVerdict) -> list[tuple[str, str]]:
    trials = verdict.trials
    if not verdict.is_paired:
        return [("runs in the table", str(trials.ok))]
    return [
        ("trials ok / planned", f"{trials.ok} / {trials.planned}"),
        ("trials failed", str(trials.failed)),
    ]


def _order(data: StudyData) -> str:
    if data.study.kind == "imported":
        return "not known"
    if data.study.command:
        return "that of the table, in each round"
    return f"random in each round, seed {data.study.seed}"


def kind_figures(data: StudyData) -> list[tuple[str, str]]:
    """Return where the numbers of a study that did not run come from; real: nothing."""
    if data.study.kind == "imported":
        told = [shown_text(c.code, c.message) for c in data.caveats if c.code == "imported"]
        return [("results", source_text(data.study)), *(("source", message) for message in told)]
    if not data.study.is_simulated:
        return []
    said = [shown_text(c.code, c.message) for c in data.caveats if c.code == "simulated"]
    return [("results", "simulated"), *(("model", message) for message in said[:1])]


def harness_cost_ns(data: StudyData) -> float | None:
    """Return the median cost of the harness per op over all phases, in ns."""
    costs = [cost for d in data.phase_details if (cost := d.get("harness_ns_per_op"))]
    return float(median(costs)) if costs else None


def throughput_mode(data: StudyData) -> Table | None:
    """Return IOzone's throughput-mode table of all phases with several workers; None if none.

    Children is the sum of each worker's own rate; parent is all bytes over the longest worker
    time. Min xfer is the least that one worker moved.
    """
    trials = {trial.trial_id: trial for trial in data.trials}
    rows: list[tuple[Value, ...]] = []
    for detail in data.phase_details:
        workers = [w for w in detail.get("workers") or [] if w.get("elapsed_ns")]
        trial = trials.get(detail.get("trial_id", ""))
        if len(workers) < 2 or trial is None:
            continue
        levels = ", ".join(f"{k}={v}" for k, v in trial.levels.items())
        rows.append(
            (
                trial.round,
                levels,
                str(detail.get("operation", "")),
                len(workers),
                *_worker_figures(workers),
            )
        )
    if not rows:
        return None
    return Table(
        (
            "round",
            "treatment",
            "operation",
            "workers",
            "children (bytes/s)",
            "parent (bytes/s)",
            "min per worker (bytes/s)",
            "max per worker (bytes/s)",
            "mean per worker (bytes/s)",
            "min xfer (bytes)",
        ),
        tuple(sorted(rows, key=lambda row: (str(row[1]), str(row[2]), row[0]))),
    )


def _worker_figures(workers: Sequence[StoredWorker]) -> tuple[float, ...]:
    rates = [w["bytes"] / w["elapsed_ns"] * 1e9 for w in workers]
    total = sum(w["bytes"] for w in workers)
    parent = total / max(w["elapsed_ns"] for w in workers) * 1e9
    least = min(w["bytes"] for w in workers)
    return (sum(rates), parent, min(rates), max(rates), sum(rates) / len(rates), least)


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _cached_cells(verdict: StudyVerdict) -> str:
    if all(c.cache_share is None for c in verdict.cells):
        return "not known"
    return _cells(verdict, "is_page_cache")


def _bound_cells(verdict: StudyVerdict) -> str:
    return _cells(verdict, "is_generator_bound") if verdict.is_paired else "not known"


def _cells(verdict: StudyVerdict, flag: str) -> str:
    cells = {(c.workload, c.is_direct, c.label): False for c in verdict.cells}
    for c in verdict.cells:
        cells[c.workload, c.is_direct, c.label] |= bool(getattr(c, flag))
    return f"{sum(cells.values())} of {len(cells)}"
