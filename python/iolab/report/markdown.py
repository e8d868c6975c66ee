"""The report as Markdown for a pull request: sentence, verdicts, caveats, and what a paper needs.

Tables as GitHub and GitLab draw them; what is long is folded away. Names come from other people's
files: nothing in them is taken for markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.chart import Value
from iolab.report.charts.common import group_title
from iolab.report.collect import trust_figures
from iolab.report.findings import markdown_blocks, markdown_list
from iolab.report.folding import clean_text
from iolab.report.methods import citation_bibtex, environment_rows, methods_paragraph
from iolab.report.metric_label import metric_label
from iolab.report.tables import cell_text
from iolab.report.terminal import UNICODE, bar, bar_span
from iolab.report.why import why_text
from iolab.stats.effect_words import no_interval
from iolab.stats.ledger import factor_head, level_text
from iolab.stats.longest_latencies import trial_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import kind_word, level_shown, mode_text, rounds_text, unit_of
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.stats.winners import winner_rows
from iolab.store.rows import StudyData

CELLS_MAX: Final = 200
TREATMENTS_MAX: Final = 200
BAR_COLUMN: Final = 3
BAR_WIDTH: Final = 15
MARKS: Final = {
    "better": "▲",
    "worse": "▼",
    "same": "=",
    "trivial": "≈",
    "depends": "±",
    "undecided": "?",
}
_ACTIVE: Final = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|#~@!"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def render_markdown(data: StudyData, verdict: StudyVerdict) -> str:
    """Return the report as Markdown."""
    kind = kind_word(data.study)
    title = f"{data.study.name} ({kind})" if kind else data.study.name
    blocks = [
        f"### {escape(title)}",
        f"**{escape(verdict.sentence)}**",
        _why(data, verdict),
        _verdicts(verdict) if data.study.is_comparison else "",
        *(f"- {escape(text)}" for text in verdict.trade_offs),
        _values(verdict) if not data.study.is_comparison else "",
        _cells(verdict),
        *(
            _folded(title, f"{table(found.columns, found.rows)}\n\n{escape(closing)}".rstrip())
            for title, found, closing in markdown_blocks(data, verdict)
        ),
        _folded("How far to trust this", _trust(data, verdict)),
        _folded("Values of every treatment", _values(verdict)) if data.study.is_comparison else "",
        _folded("Methods", escape(methods_paragraph(data, verdict))),
        _folded("Environment", table(("what", "value"), environment_rows(data))),
        _folded("Citation (BibTeX)", f"```bibtex\n{_fenced(citation_bibtex(data))}```"),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _why(data: StudyData, verdict: StudyVerdict) -> str:
    said = why_text(data, verdict)
    return escape(f"Why: {said}.") if said else ""


def escape(text: str) -> str:
    """Write a text so that Markdown shows it as it is, on one line."""
    return clean_text(text).translate(_ACTIVE)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Value]], *, code: int | None = None
) -> str:
    """Write a table; numbers to the right, column `code` in a font of fixed width."""
    numeric = [
        bool(rows) and all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        for i in range(len(columns))
    ]
    lines = [
        f"| {' | '.join(escape(c) for c in columns)} |",
        f"| {' | '.join('---:' if n else '---' for n in numeric)} |",
    ]
    for row in rows:
        cells = [_code(str(v)) if i == code else escape(cell_text(v)) for i, v in enumerate(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """Set a drawing whose places mean something; browsers keep this kind of space only."""
    kept = text.replace(" ", "\N{NO-BREAK SPACE}")
    return f"`{kept}`"


def _verdicts(verdict: StudyVerdict) -> str:
    rows = [*verdict.pooled, *verdict.secondary]
    if not rows:
        return ""
    unit = "rounds" if verdict.is_paired else "runs"
    shown = f"ratio [{level_shown(verdict)}]"
    columns = ("workload", "metric", verdict.compared_factor, "", shown, "verdict", unit)
    spans = {c.metric: bar_span([o.effect for o in rows if o.metric == c.metric]) for c in rows}
    body = [
        (
            _where(verdict, c),
            metric_label(verdict, [c]),
            level_text(verdict.compared_factor, c.level),
            bar(c.effect, verdict.margin, BAR_WIDTH, UNICODE, spans[c.metric]),
            _ratio(c.effect),
            _word(c.effect, unit_of(verdict)),
            c.rounds_used,
        )
        for c in rows
    ]
    note = f"Ratios to {verdict.baseline}, oriented: above 1 is better. ░ is the margin."
    return f"{table(columns, body, code=BAR_COLUMN)}\n\n{escape(note)}{_best(verdict)}"


def _best(verdict: StudyVerdict) -> str:
    """Say per group who wins or may win."""
    lines = [
        f"- {escape(group_title(verdict, group))}: {escape(text)}."
        for group, text in winner_rows(verdict)
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def _where(verdict: StudyVerdict, c: Comparison | CellComparison) -> str:
    mode = mode_text(verdict.compared_factor, c.is_direct)
    return ", ".join(text for text in (c.workload, mode, c.kind) if text)


def _ratio(effect: Effect) -> str:
    if effect.ratio is None:
        return "no pair"
    if effect.interval_95 is None:
        return f"{effect.ratio:.3f}"
    return f"{effect.ratio:.3f} [{effect.interval_95.low:.3f}, {effect.interval_95.high:.3f}]"


def _word(effect: Effect, unit: str) -> str:
    rest = f" ({rounds_text(effect, unit)})" if effect.word == "undecided" else ""
    return f"{MARKS[effect.word]} {effect.word}{rest}"


def _cells(verdict: StudyVerdict) -> str:
    known = [c for c in verdict.cells if c.effect.ratio is not None]
    if len(known) < 2:
        return ""
    columns = (
        "cell",
        verdict.compared_factor,
        verdict.baseline,
        "value",
        "ratio [95 %]",
        "verdict",
    )
    rows = [
        (
            f"{c.workload}: {c.label}",
            level_text(verdict.compared_factor, c.level),
            _value(c.metric, c.baseline_value),
            _value(c.metric, c.value),
            _ratio(c.effect),
            _word(c.effect, unit_of(verdict)),
        )
        for c in known[:CELLS_MAX]
    ]
    rest = (
        f"\n\n{len(known) - CELLS_MAX} more are in verdict.json." if len(known) > CELLS_MAX else ""
    )
    return _folded(f"Single cells, exploratory ({len(known)})", table(columns, rows) + rest)


def _value(metric: str, value: float | None) -> str:
    return "–" if value is None else METRIC_BY_NAME[metric].format(value)


def _values(verdict: StudyVerdict) -> str:
    found = verdict.treatments
    columns = (
        "operation",
        factor_head(verdict.compared_factor),
        "metric",
        "geometric mean [95 %], or longest",
        "n",
    )
    rows: list[tuple[Value, ...]] = []
    for t in found[:TREATMENTS_MAX]:
        metric = METRIC_BY_NAME[t.metric]
        text = metric.format(t.value)
        if t.value_interval is not None:
            ends = (t.value_interval.low, t.value_interval.high)
            useless = no_interval(t.n, ends, unit_of(verdict))
            low, high = map(metric.format, ends)
            text += f" ({useless})" if useless else f" [{low}, {high}]"
        elif t.statistic == "maximum":
            text += f" ({trial_text(t.maximum_round, t.maximum_trial)})"
        name = " · ".join(part for part in (t.workload, t.operation, t.cell_label) if part)
        rows.append((name, t.level or "–", metric.label, text, t.n))
    rest = len(found) - len(rows)
    more = f"\n\n{rest} more are in verdict.json." if rest > 0 else ""
    return table(columns, rows) + more


def _trust(data: StudyData, verdict: StudyVerdict) -> str:
    lines = [table(("", ""), trust_figures(data, verdict)), ""]
    return "\n".join([*lines, *markdown_list(verdict, escape)]).rstrip()


def _folded(title: str, content: str) -> str:
    if not content:
        return ""
    return f"<details><summary>{escape(title)}</summary>\n\n{content}\n\n</details>"


def _fenced(text: str) -> str:
    """Keep a text from ending the code block it stands in."""
    return text.replace("```", "'''")
