"""The first screen: question, answer, verdict table, ratios, and how far to trust them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.answer import Answer, Take, answer
from iolab.report.chart import ChartSpec
from iolab.report.column_help import explained
from iolab.report.conditions import (
    P99,
    Condition,
    amount_text,
    condition_table,
    conditions,
    interval_text,
    stall_texts,
)
from iolab.report.figures import DIR_NOTE, command, figure
from iolab.report.findings import caveat_line, first_screen_list
from iolab.report.markup import Markup, join, tag, text
from iolab.report.metric_label import share_of_cells
from iolab.report.scope import (
    day_text,
    device_text,
    duration_text,
    machine_line,
    not_tested,
    workload_text,
)
from iolab.report.tables import data_table, head_cell, word_cell
from iolab.report.trust import SIGNS, reasons
from iolab.report.why import why_text
from iolab.stats.ledger import Group, level_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.sentence import bounds_text, mode_text, size_text, unit_of
from iolab.stats.shared import shared_cells
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.continuing import PLACE, command_again, is_continuable
from iolab.store.rows import StudyData
from iolab.wording import counted, sentence_case

ROWS_FIRST = 8
"""More rows than this are folded; shown are winners, the baseline and the farthest."""
_WIDE = ("Why", "Workload", "Machine", "Not tested", "Caveats")
"""Row of the scope that has a line of its own; the others stand in pairs."""
_CPU_TIME: Final = "CPU per I/O"
"""Column of the verdict table that is left out where no level has a value."""


def answer_part(
    data: StudyData, verdict: StudyVerdict, forest: Sequence[ChartSpec]
) -> tuple[Markup, Markup | None]:
    """Return what stands below the sentence, and the whole verdict table if it was cut."""
    drawn = [figure([spec]) for spec in forest]
    rows = conditions(data, verdict) if data.study.is_comparison else []
    if not rows:
        return join(_scope(data, verdict), *drawn), None
    shown = _strongest(rows)
    whole = _table(rows, verdict) if len(shown) < len(rows) else None
    saved = data_table(
        condition_table(rows, verdict.compared_factor), "verdicts", command("verdicts")
    )
    more = None
    if whole is not None:
        text = f"{len(shown)} of {len(rows)} rows; all of them are under Verdicts."
        more = tag("p", text, class_="soft")
    return join(
        _columns(answer(data, verdict, rows)),
        _scope(data, verdict),
        tag("div", _table(shown, verdict), more, saved, class_="verdicts", id="verdicts"),
        *drawn,
    ), whole


def _scope(data: StudyData, verdict: StudyVerdict) -> Markup:
    """Say what was measured, on what, for how long, what was not, and where the values are."""
    took = duration_text(data)
    trials = sum(trial.status is not None for trial in data.trials)
    rows = (
        ("Why", sentence_case(why_text(data, verdict))),
        ("Workload", workload_text(data)),
        ("Machine", machine_line(data)),
        ("Device", device_text(data)),
        ("Time taken", f"{took}, {counted(trials, 'trial')}, {day_text(data)}" if took else ""),
        ("Not tested", sentence_case(not_tested(data))),
        ("Caveats", caveat_line(verdict)),
        ("All values", join(tag("code", f"iolab export {PLACE} --csv"), text(f" ({DIR_NOTE})"))),
        ("Repeat", _repeated(data)),
    )
    shown = (
        tag("div", tag("dt", name), tag("dd", said), class_="wide" if name in _WIDE else None)
        for name, said in rows
        if said
    )
    return tag("dl", *shown, class_="scope")


def _repeated(data: StudyData) -> Markup:
    """Return the command that measures the same again, elsewhere if need be."""
    if data.study.kind == "imported":
        return Markup()
    if is_continuable(data.study):
        return tag("code", f"iolab run {PLACE} --out NEW")
    return tag("code", command_again(data.study))


def _columns(found: Answer) -> Markup:
    return tag(
        "div",
        tag("section", tag("h3", "Take"), _takes(found.take)),
        tag("section", tag("h3", "How sure"), tag("ul", *(tag("li", s) for s in found.sure))),
        tag(
            "section",
            tag("h3", "Next"),
            tag("ol", *(_step(*step) for step in found.steps)) if found.steps else tag("p", "–"),
        ),
        class_="answer",
    )


def _takes(takes: Sequence[Take]) -> Markup:
    """Draw the choices with their reasons; for several workloads as a table without them."""
    places = list(dict.fromkeys(take.where for take in takes))
    if len(places) < 2:
        return tag("dl", *(_take(take) for take in takes))
    purposes = list(dict.fromkeys(take.purpose for take in takes))
    found = {(take.where, take.purpose): take for take in takes}
    head = tag("tr", head_cell("for"), *map(head_cell, purposes))
    body = (
        tag("tr", tag("td", place), *(_choice(found.get((place, p))) for p in purposes))
        for place in places
    )
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def _choice(take: Take | None) -> Markup:
    if take is None:
        return tag("td", "–")
    css = "choice open" if take.is_open else "choice"
    return tag("td", tag("b", take.choice, class_=css), _but(take), title=take.reason)


def _but(take: Take) -> Markup | None:
    return tag("span", f" but: {take.cost}", class_="soft small") if take.cost else None


def _take(take: Take) -> Markup:
    css = "choice open" if take.is_open else "choice"
    return tag(
        "div",
        tag("dt", f"for {take.purpose} ({take.where})"),
        tag("dd", tag("b", take.choice, class_=css), tag("span", f" {take.reason}", class_="soft")),
        tag("dd", tag("b", "but: "), take.cost) if take.cost else None,
    )


def _step(text: str, typed: str) -> Markup:
    note = f" ({DIR_NOTE})" if PLACE in typed.split() else None
    return tag("li", f"{text} " if typed else text, tag("code", typed) if typed else None, note)


def _strongest(rows: list[Condition]) -> list[Condition]:
    """Keep the best, the baseline and the worst of each group, the best first."""
    if len(rows) <= ROWS_FIRST:
        return rows
    groups = list(dict.fromkeys(row.group for row in rows))[: ROWS_FIRST // 2]
    room = ROWS_FIRST // len(groups)
    kept: list[Condition] = []
    for group in groups:
        mine = [row for row in rows if row.group == group]
        ranked = sorted(mine, key=_rank)
        kept += ranked[:room] if room < 3 else _ends(ranked, mine, room)
    return sorted(kept, key=lambda row: (groups.index(row.group), _rank(row)))


def _rank(row: Condition) -> float:
    """Order by the ratio to the baseline, the best first."""
    ratio = row.comparison.effect.ratio if row.comparison else 1.0
    return -(ratio or 0.0)


def _ends(ranked: list[Condition], mine: list[Condition], room: int) -> list[Condition]:
    baseline = [row for row in mine if row.comparison is None]
    rest = [row for row in ranked if row.comparison is not None]
    top = room - len(baseline) - max(1, room // 4)
    return baseline + rest[:top] + rest[top:][-max(1, room // 4) :]


def _table(rows: Sequence[Condition], verdict: StudyVerdict) -> Markup:
    groups = dict.fromkeys(row.group for row in rows)
    label = rows[0].metric.label if len({row.metric.name for row in rows}) == 1 else "metric"
    has_cpu, factor = _has_cpu(rows), verdict.compared_factor
    head = (
        f"against {verdict.baseline}",
        "verdict",
        "p99",
        "p99 verdict",
        "stalls",
        *((_CPU_TIME,) if has_cpu else ()),
    )
    table = tag(
        "table",
        tag(
            "thead",
            tag(
                "tr",
                head_cell(factor.replace("_", " "), explained(factor)),
                _value_head(label, are_pooled=_are_pooled(verdict, rows)),
                *map(head_cell, head),
            ),
        ),
        tag("tbody", *(line for group in groups for line in _lines(group, rows, verdict))),
    )
    note = (
        "★ shown to be within the margin of the best, ☆ not ruled out as the best. Values are"
        f" {_means(verdict, rows)} with 95 % intervals over rounds"
        f" (n = {max((r.primary.n for r in rows if r.primary), default=0)}); stalls: series with"
        " one, of those long enough to show one. p99 and what follows are exploratory."
    )
    return join(tag("div", table, class_="scroll"), tag("p", note, class_="soft small"))


def _has_cpu(rows: Sequence[Condition]) -> bool:
    return any(row.cpu_ns_per_op is not None for row in rows)


def _value_head(label: str, *, are_pooled: bool) -> Markup:
    """Name the values; below, what they are where several tests or sizes are in one."""
    below = tag("span", "geometric mean", class_="interval") if are_pooled else None
    return tag("th", label, below, title=explained(label))


def _means(verdict: StudyVerdict, rows: Sequence[Condition]) -> str:
    """Say what a value is a mean of: cells of ratios may be more."""
    if not _are_pooled(verdict, rows):
        return "geometric means"
    shared, total = shared_cells(verdict, rows[0].group, rows[0].metric.name)
    if 0 < shared < total:
        return (
            f"geometric means over the {shared} of {total} cells (tests or sizes) that every level"
            " has (ratios: over those that both have)"
        )
    return "geometric means over cells (tests or sizes)"


def _are_pooled(verdict: StudyVerdict, rows: Sequence[Condition]) -> bool:
    """Tell whether a value is a mean over several tests or sizes."""
    return any(shared_cells(verdict, row.group, row.metric.name)[1] > 1 for row in rows)


def _lines(group: Group, rows: Sequence[Condition], verdict: StudyVerdict) -> list[Markup]:
    """Draw the rows of a group, below its name if there are several groups."""
    mine, has_cpu = [row for row in rows if row.group == group], _has_cpu(rows)
    lines = [_row(row, verdict, has_cpu=has_cpu) for row in mine]
    if len(mine) == len(rows):
        return lines
    mode = mode_text(verdict.compared_factor, group[1])
    name = ", ".join(text for text in (group[0], mode, group[2]) if text)
    return [tag("tr", tag("td", name, colspan=8 if has_cpu else 7), class_="group"), *lines]


def _row(row: Condition, verdict: StudyVerdict, *, has_cpu: bool) -> Markup:
    star = "★ " if row.is_winner else "☆ " if row.may_be_best else ""
    name = level_text(verdict.compared_factor, row.level)
    label = METRIC_BY_NAME[row.metric.name]
    tail = METRIC_BY_NAME["latency_ns_p99"]
    cpu = "–" if row.cpu_ns_per_op is None else format_ns(row.cpu_ns_per_op)
    return tag(
        "tr",
        tag("td", tag("span", star, class_="star"), tag("b", name), _word_below(row)),
        _two(amount_text(row.primary, label), interval_text(row.primary, label)),
        *_against(row.comparison, unit_of(verdict)),
        _two(
            amount_text(row.p99, tail),
            ", ".join(
                text
                for text in (
                    interval_text(row.p99, tail) or _without_p99(row, verdict),
                    _share_of_p99(row, verdict),
                )
                if text
            ),
        ),
        _word(row.p99_comparison),
        _two(*stall_texts(row.stalled)),
        *((tag("td", cpu),) if has_cpu else ()),
        class_="best" if row.is_winner else None,
    )


def _word_below(row: Condition) -> Markup | None:
    """Repeat the verdict below the name, where a narrow screen has no room for its column."""
    if row.comparison is None:
        return None
    word = row.comparison.effect.word
    return tag("span", word, class_=f"word {word} if-narrow")


def _share_of_p99(row: Condition, verdict: StudyVerdict) -> str:
    """Say how many cells have a p99, where fewer have one than have the metric beside it."""
    every = [*verdict.pooled, *verdict.secondary]
    found = [c for c in every if (c.group, c.metric) == (row.group, P99)]
    return share_of_cells(verdict, found) if found and row.p99 is not None else ""


def _without_p99(row: Condition, verdict: StudyVerdict) -> str:
    """Say why a level has no p99."""
    if row.p99 is not None or row.metric.name == P99:
        return ""
    mine = [
        t
        for t in verdict.treatments
        if (t.workload, t.is_direct, t.level) == (*row.group[:2], row.level)
    ]
    if any(t.metric == P99 for t in mine):
        return "of each stream alone: see Streams"
    is_timed = any(t.metric.startswith("latency_ns_") for t in mine)
    return "too few operations (needs 1 000)" if is_timed else "not recorded"


def _two(value: str, interval: str) -> Markup:
    return tag("td", value, tag("span", interval, class_="interval") if interval else None)


def _against(c: Comparison | None, unit: str) -> list[Markup]:
    if c is None:
        return [tag("td", "baseline", class_="soft"), tag("td", "")]
    if c.effect.ratio is None:
        return [tag("td", "–"), word_cell(c.effect, unit)]
    metric = METRIC_BY_NAME[c.metric]
    size = size_text(metric, c.effect)
    return [_two(size, bounds_text(metric, c.effect)), word_cell(c.effect, unit)]


def _word(c: Comparison | None) -> Markup:
    if c is None:
        return tag("td", "–", class_="soft")
    word = c.effect.word
    return tag("td", tag("span", word, class_=f"word {word}"))


def trust_box(data: StudyData, verdict: StudyVerdict, order: Sequence[ChartSpec]) -> Markup:
    """Draw the reasons, the order of the trials and the first caveats."""
    lines = (
        tag(
            "div",
            tag("dt", reason.label, title=reason.about or None),
            tag("dd", tag("span", SIGNS[reason.sign], class_=f"sign {reason.sign}"), reason.value),
        )
        for reason in reasons(data, verdict)
    )
    return tag(
        "section",
        tag("h3", "How far to trust this"),
        tag("dl", *lines),
        *(figure([spec]) for spec in order),
        first_screen_list(verdict),
        class_="trust",
    )
