"""The closer look as tables of the page; plain HTML, folded away below the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.report.chart import Value
from iolab.report.markup import Markup, tag
from iolab.report.tables import plain_table
from iolab.stats.ledger import Group
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.secondary_types import Bounds, CloserLook, FactorEffect
from iolab.stats.verdict import StudyVerdict
from iolab.wording import counted

ROWS_MAX = 200
Rows = list[tuple[Value, ...]]


def closer_parts(verdict: StudyVerdict) -> list[tuple[str, Markup]]:
    """Return title and content of every table that has rows."""
    look = verdict.closer
    found = (
        _winners(look),
        _pairs(look),
        _factors(look),
        _quantiles(look),
        _joint(look),
        _robust(look),
        _time(look),
    )
    return [part for part in found if part is not None]


def factor_text(effects: Sequence[FactorEffect], group: Group) -> str:
    """Say how much of the variance the factors and their interactions explain."""
    shown = [
        f"{' × '.join(e.factors)} {e.share * 100:.0f} %"
        for e in effects
        if e.group == group and e.share >= 0.01 and e.p < 0.05
    ]
    return f"variance explained by {', '.join(shown)}" if shown else ""


def bounds_cell(bounds: Bounds | None) -> str:
    """Write an interval of ratios."""
    return "–" if bounds is None else f"{bounds.low:.3f} to {bounds.high:.3f}"


def _part(title: str, note: str, columns: tuple[str, ...], rows: Rows) -> tuple[str, Markup] | None:
    if not rows:
        return None
    rest = len(rows) - ROWS_MAX
    more = tag("p", f"{rest} more rows are in verdict.json.", class_="soft") if rest > 0 else None
    folded = tag(
        "details",
        tag("summary", f"{title} ({counted(len(rows), 'row')})"),
        tag("p", note, class_="soft"),
        plain_table(columns, tuple(rows[:ROWS_MAX])),
        more,
    )
    return title, folded


def _mode(is_direct: bool | None, kind: str) -> str:
    mode = "–" if is_direct is None else "direct" if is_direct else "buffered"
    return f"{mode}, {kind}" if kind else mode


def _winners(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            w.workload,
            _mode(w.is_direct, w.kind),
            level.level,
            f"{level.ratio:.3f}",
            bounds_cell(level.interval),
            "may be the best" if level.may_be_best else "ruled out",
        )
        for w in look.winner_sets
        for level in w.levels
    ]
    return _part(
        "Winner set",
        "Every level against the best of the others, jointly (Hsu): who cannot be ruled out.",
        ("workload", "mode", "level", "ratio to the best of the others", "interval", ""),
        rows,
    )


def _pairs(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            p.workload,
            _mode(p.is_direct, p.kind),
            f"{p.first} / {p.second}",
            f"{p.ratio:.3f}",
            bounds_cell(p.interval),
            p.p_adjusted,
            p.p_exact,
            p.superiority,
            p.hedges_g,
        )
        for p in look.pairs
    ]
    return _part(
        "All pairs of levels",
        "Paired by round, p adjusted over all pairs (Shaffer), intervals 95 % each; exact p by sign"
        " flips (unadjusted); in which share"
        " of rounds the first is better; Hedges' g.",
        (
            *("workload", "mode", "pair", "ratio", "interval"),
            *("adjusted p", "exact p", "first better", "g"),
        ),
        rows,
    )


def _factors(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            e.workload,
            _mode(e.is_direct, e.kind),
            " × ".join(e.factors),
            f"{e.share * 100:.1f} %",
            f"{e.f:.3g} ({e.degrees_of_freedom}, {e.error_degrees_of_freedom})",
            f"{e.p:.2g}",
            e.stratum,
        )
        for e in look.factor_effects
    ]
    return _part(
        "Main effects and interactions",
        "Share of the variance of ln-values, rounds taken off (omega squared). Factors that are"
        " hard to change are judged against the spread of whole plots.",
        ("workload", "mode", "effect", "share", "F (df)", "p", "judged against"),
        rows,
    )


def _quantiles(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            q.workload,
            _mode(q.is_direct, q.kind),
            METRIC_BY_NAME[q.metric].label,
            f"{q.level} / {q.baseline}",
            f"{q.ratio:.3f}",
            bounds_cell(q.interval),
            q.n_rounds,
        )
        for q in look.quantile_effects
    ]
    return _part(
        "Quantiles of latency",
        "Each trial's own quantile, compared by round (Hodges-Lehmann, Wilcoxon's interval); above"
        " 1 is better, that is lower.",
        ("workload", "mode", "quantile", "levels", "ratio", "interval", "rounds"),
        rows,
    )


def _joint(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            j.workload,
            _mode(j.is_direct, j.kind),
            f"{j.level} / {j.baseline}",
            f"{j.ratio:.3f}",
            bounds_cell(j.interval),
            j.p_adjusted,
        )
        for j in look.joint
    ]
    return _part(
        "Against the baseline, jointly",
        "Intervals that all cover in 95 % of studies (Bonferroni), each with its own spread.",
        ("workload", "mode", "levels", "ratio", "interval", "adjusted p"),
        rows,
    )


def _robust(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            r.workload,
            _mode(r.is_direct, r.kind),
            r.level,
            f"{r.median_ratio:.3f}",
            bounds_cell(r.median_interval),
            bounds_cell(r.bca_interval),
        )
        for r in look.robust
    ]
    return _part(
        "Without normality",
        "The pooled ratios by the median (order statistics, six rounds or more) and by the BCa"
        " bootstrap over rounds (ten or more). If they tell another story than the verdict's"
        " interval, look at the rounds.",
        ("workload", "mode", "level", "median ratio", "interval of the median", "BCa interval"),
        rows,
    )


def _time(look: CloserLook) -> tuple[str, Markup] | None:
    rows: Rows = [
        (
            c.workload,
            c.operation,
            c.level,
            c.n_trials,
            ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in c.shapes.items()),
            c.steady_trials,
            c.stalled_trials,
            format_ns(c.stall_ns_longest) if c.stalled_trials else "–",
        )
        for c in look.time_courses
    ]
    columns = ("trials", "shapes", "steady at the end", "stalled", "longest stall")
    return _part(
        "Trials over time",
        "Shape of each stored series; steady by SNIA's rule over ten equal parts; a stall is a"
        " slice with less than a tenth of the median slice's completions.",
        ("workload", "operation", "level", *columns),
        rows,
    )
