"""The report as text for a terminal: 80 columns, aligned, interval bars in unicode or ASCII.

Sections: the sentence, pooled table, cells (compact), caveats. No colour, no control codes: level
names are cleaned of unprintable characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from iolab.frozen import frozen
from iolab.report.device_work import work_text
from iolab.report.findings import terminal_blocks, terminal_list
from iolab.report.folding import FIXED_SPACES, clean_text, fit_text, fold_text
from iolab.report.labels import fitted
from iolab.report.limit import limit_text
from iolab.report.metric_label import metric_label
from iolab.report.scope import device_text, duration_text, not_tested, workload_text
from iolab.report.secondary_tables import factor_text
from iolab.report.streams import stream_table
from iolab.report.why import why_text
from iolab.stats.effect_words import no_interval
from iolab.stats.ledger import is_segment, level_text, unaffected_text
from iolab.stats.longest_latencies import longest_sentence
from iolab.stats.methods.verdict_rule import FURTHER_ROUNDS_LIMIT
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import (
    is_order_unknown,
    kind_word,
    level_shown,
    margin_text,
    mode_text,
    source_text,
    unit_of,
)
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict, TreatmentSummary
from iolab.stats.winners import winner_text
from iolab.store.rows import StudyData
from iolab.visible import to_ascii

_C = TypeVar("_C", Comparison, CellComparison)
CELLS_MAX: Final = 40
POOLED_MAX: Final = 40
SECONDARY_MAX: Final = 12
TREATMENTS_MAX: Final = 40
WIDTH_MIN: Final = 60
NAME_MIN: Final = 8
"""Columns of a workload's name in the head of a table; with fewer it is left out."""
BAR_SPAN_MIN: Final = 1.25
"""The bars show at least ratios from 1/1.25 to 1.25."""
BAR_SPAN_MAX: Final = 4.0
"""Span that the bars have at most for intervals alone: 1/4 to 4; longer ones end in an arrow."""
BAR_POINT_SHARE: Final = 2.0
"""The bars reach so many times further than the farthest point, so that its interval is seen."""
BAR_SPAN_LIMIT: Final = 1000.0
"""Ratios beyond are an arrow: the numbers beside it say as little of them (``>999``)."""
_SMALL: Final = {
    "same": "Same: any difference is below the margin.",
    "trivial": "Trivial: there is a difference, and it is below the margin.",
}
"""Words for differences that do not matter."""


@frozen
class Glyphs:
    """Characters of an interval bar."""

    line: str
    point: str
    one: str
    band: str
    left: str
    right: str


UNICODE: Final = Glyphs("─", "●", "│", "░", "◂", "▸")
PLAIN: Final = Glyphs("-", "o", "|", ":", "<", ">")


def render(
    data: StudyData, verdict: StudyVerdict, *, width: int = 80, is_unicode: bool = True
) -> str:
    """Return the report as lines of at most `width` columns.

    Parameters
    ----------
    data, verdict : one judged study.
    width : columns, at least 60.
    is_unicode : False gives pure ASCII.
    """
    width = max(WIDTH_MIN, width)
    glyphs = UNICODE if is_unicode else PLAIN
    blocks = [
        with_limit(data, verdict, fold_text(verdict.sentence, width), width),
        *why_lines(data, verdict, width),
        _pooled(data, verdict, width, glyphs)
        if data.study.is_comparison
        else alone(verdict, width),
        legend(verdict, width) if data.study.is_comparison else "",
        streams(verdict, width),
        _cells(verdict, width, glyphs),
        _closer(verdict, width),
        work_text(data, verdict, width),
        *terminal_blocks(data, verdict, width),
        _caveats(data, verdict, width),
    ]
    text = FIXED_SPACES.sub(" ", "\n\n".join(block for block in blocks if block)) + "\n"
    return text if is_unicode else to_ascii(text)


def with_limit(data: StudyData, verdict: StudyVerdict, sentence: str, width: int) -> str:
    """Add to a folded sentence, on a line of its own, the limit of the results, if it is known."""
    said = limit_text(data, verdict, " ".join(sentence.split()), width)
    return f"{sentence}\n{said}" if said else sentence


def why_lines(data: StudyData, verdict: StudyVerdict, width: int) -> list[str]:
    """Write the reason for a difference, if anything tells it."""
    said = why_text(data, verdict)
    return [fold_text(f"Why: {said}.", width, "  ")] if said else []


def _pooled(data: StudyData, verdict: StudyVerdict, width: int, glyphs: Glyphs) -> str:
    """Draw one line per pooled comparison, grouped by workload and metric."""
    return "\n\n".join("\n".join(t.lines()) for t in pooled_tables(data, verdict, width, glyphs))


@frozen
class PooledTable:
    """Comparisons of one group by one metric, ready to be drawn."""

    header: str
    label: str
    """Metric, for people."""
    members: list[Comparison]
    most: int
    """Rows that are drawn at most."""
    is_primary: bool
    draw: Callable[[list[Comparison]], list[str]]

    def lines(self, most: int | None = None) -> list[str]:
        """Draw the header and the rows, the largest differences if there are too many."""
        most = self.most if most is None else min(most, self.most)
        shown, note = self.members, list[str]()
        if len(shown) > most:
            shown = _strongest(shown, most)
            note = [f"  the {most} largest differences of {len(self.members)}:"]
        return [self.header, *note, *self.draw(shown)]


def pooled_tables(
    data: StudyData, verdict: StudyVerdict, width: int, glyphs: Glyphs
) -> list[PooledTable]:
    """Group the pooled comparisons by workload and metric."""
    found: list[PooledTable] = []
    rows = [*verdict.pooled, *verdict.secondary]
    for group in dict.fromkeys(c.group for c in rows):
        workload, is_direct, kind = group
        for metric in dict.fromkeys(c.metric for c in rows if c.group == group):
            members = [c for c in rows if (c.group, c.metric) == (group, metric)]
            # A simulation has no other mode, and a line has 80 columns.
            mode = kind_word(data.study) or mode_text(verdict.compared_factor, is_direct)
            label = metric_label(verdict, members)
            rest = f", above 1 = better) [{level_shown(verdict)}]"
            base = fit_text(verdict.baseline, max(NAME_MIN, width // 2 - len(rest) - 5))
            said = f"(1 = {base.rstrip()}{rest}"
            header = _header((workload, mode, kind, label), said, width)
            span = bar_span([c.effect for c in rows if c.metric == metric])
            is_primary = members[0] in verdict.pooled

            def draw(shown: list[Comparison], span: float = span) -> list[str]:
                return _effect_lines(verdict, shown, width, glyphs, span)

            found.append(
                PooledTable(
                    header,
                    label,
                    members,
                    POOLED_MAX if is_primary else SECONDARY_MAX,
                    is_primary,
                    draw,
                )
            )
    return found


def _header(parts: tuple[str, str, str, str], said: str, width: int) -> str:
    """Head of a table: workload, mode, class and metric, cut so that the explanation is whole."""
    workload, mode, kind, label = parts
    room = width - len(said) - 1
    title = ", ".join(dict.fromkeys(t for t in parts if t))
    if len(title) > room and mode:
        title = ", ".join(dict.fromkeys(t for t in (workload, kind, label) if t))
    if len(title) > room:
        rest = ", ".join(dict.fromkeys(t for t in (kind, label) if t))
        rest = rest if len(rest) <= room else label
        left = room - len(rest) - 2
        title = f"{fit_text(workload, left).rstrip()}, {rest}" if left >= NAME_MIN else rest
    return f"{fit_text(title, min(len(title), room)).rstrip()} {said}"


def legend(verdict: StudyVerdict, width: int) -> str:
    """Say what the bars beside the numbers are; nothing where nothing is compared."""
    if not verdict.pooled:
        return ""
    margin = margin_text(verdict.margin)
    text = (
        "Bars: ─ interval, ● ratio, │ equal, ░ within the margin of"
        f" {margin}, ▸ goes on; logarithmic, each table with a scale of its own."
    )
    return fold_text(text, width, "  ")


def alone(verdict: StudyVerdict, width: int) -> str:
    """Draw what the only configuration did: every metric of every operation, with its interval."""
    shown = verdict.treatments[:TREATMENTS_MAX]
    if not shown:
        return ""
    labels = [METRIC_BY_NAME[row.metric].label for row in shown]
    room = max(map(len, labels))
    unit = unit_of(verdict)
    useless = {_without_interval(row, unit) for row in shown if row.value_interval is not None}
    # Said once where it is the same everywhere.
    reason = useless.pop() if len(useless) == 1 else ""
    title = f"Geometric mean of the {unit}s [{reason or '95 % interval'}]"
    if any(row.statistic == "maximum" for row in shown):
        title += f"; longest: of all {unit}s"
    if all(row.n == 1 for row in shown):
        title = f"Values of the only {unit}"
    lines = [fit_text(title, width).rstrip()]
    is_one_workload = len({row.workload for row in verdict.treatments}) == 1
    if len(shown) < len(verdict.treatments):
        lines.append(f"The first {len(shown)} of {len(verdict.treatments)} rows:")
    name_room = max(12, width - room - 46)
    names = fitted([clean_text(_summary_name(row, is_one_workload)) for row in shown], name_room)
    for row, label, name in zip(shown, labels, names, strict=True):
        metric = METRIC_BY_NAME[row.metric]
        text = metric.format(row.value)
        if row.value_interval is not None and not reason:
            low, high = (
                metric.format(row.value_interval.low),
                metric.format(row.value_interval.high),
            )
            useless_here = _without_interval(row, unit)
            text += f" ({useless_here})" if useless_here else f" [{low}, {high}]"
        line = f"  {name:{name_room}} {fit_text(label, room)} {text}".rstrip()
        lines.append(line if len(line) <= width else fold_text(line, width, " " * 6))
    return "\n".join(lines)


def _without_interval(row: TreatmentSummary, unit: str) -> str:
    """Reason why the interval of a row says nothing; empty if it does, or if there is none."""
    if row.value_interval is None:
        return ""
    return no_interval(row.n, (row.value_interval.low, row.value_interval.high), unit)


def _summary_name(row: TreatmentSummary, is_one_workload: bool) -> str:
    name = row.operation if is_one_workload else f"{row.workload} {row.operation}"
    return f"{name} {row.cell_label}" if row.cell_label else name


def _strongest(rows: list[_C], count: int) -> list[_C]:
    """Return the `count` largest differences, in the order given."""
    ranked = sorted(range(len(rows)), key=lambda i: (-abs(math.log(rows[i].effect.ratio or 1)), i))
    return [rows[i] for i in sorted(ranked[:count])]


def _effect_lines(
    verdict: StudyVerdict,
    members: Sequence[Comparison | CellComparison],
    width: int,
    glyphs: Glyphs,
    span: float,
) -> list[str]:
    """Align name, ratio, interval, bar, word."""
    names = [clean_text(_name(verdict, c)) for c in members]
    words = [_word(verdict, c) for c in members]
    word_room, number_room = max(map(len, words)), 20
    name_room = min(max(len(name) for name in names), max(12, width - number_room - word_room - 16))
    # The baseline has no line, and is not to be taken for the level that has one.
    base = clean_text(level_text(verdict.compared_factor, verdict.baseline))
    texts = fitted([*(name[2:] for name in names), base], name_room - 2)[: len(names)]
    names = [f"  {name}" for name in texts]
    name_room = max(map(len, names))
    bar_room = max(9, min(25, width - name_room - number_room - word_room - 4))
    bar_room -= 1 - bar_room % 2
    lines: list[str] = []
    for name, word, c in zip(names, words, members, strict=True):
        drawn = bar(c.effect, verdict.margin, bar_room, glyphs, span)
        line = f"{fit_text(name, name_room)} {_numbers(c.effect):<{number_room}} {drawn} {word}"
        lines.append(line[:width].rstrip())
    withheld = (c.effect.reason for c in members if c.effect.word == "undecided")
    for reason in dict.fromkeys(reason for reason in withheld if reason):
        lines.append(fold_text(f"  withheld: {reason}", width, " " * 4))
    return lines


def _name(verdict: StudyVerdict, c: Comparison | CellComparison) -> str:
    level = level_text(verdict.compared_factor, c.level)
    if isinstance(c, CellComparison):
        return f"  {c.label.removesuffix(f' · {unaffected_text(verdict.compared_factor)}')}"
    return f"  {level}"


def _numbers(effect: Effect) -> str:
    if effect.ratio is None:
        return "no pair"
    if effect.interval_95 is None:
        return _ratio(effect.ratio)
    low, high = _ratio(effect.interval_95.low), _ratio(effect.interval_95.high)
    return f"{_ratio(effect.ratio)} [{low}, {high}]"


def _ratio(value: float) -> str:
    if value >= 1000 or value < 0.001:
        return ">999" if value >= 1 else "<.001"
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _word(verdict: StudyVerdict, c: Comparison | CellComparison) -> str:
    if isinstance(c, CellComparison) and not c.is_affected:
        return unaffected_text(verdict.compared_factor)
    effect = c.effect
    text: str = effect.word
    least = effect.further_rounds_least
    if effect.reason and effect.word == "undecided":
        text += ", withheld"
    elif effect.is_further_rounds_at_least:
        text += f": too few {unit_of(verdict)}s"
    elif effect.is_further_rounds_above_limit:
        text += f", >{FURTHER_ROUNDS_LIMIT} more"
    elif effect.further_rounds is not None:
        first = f"{least}-" if least is not None and least != effect.further_rounds else ""
        text += f", {first}{effect.further_rounds} more"
    if isinstance(c, CellComparison) and c.is_page_cache:
        text += " cache"
    return text


def bar_span(effects: Sequence[Effect]) -> float:
    """Return the largest ratio (or its inverse) that the bars show: no point is beyond."""
    points = [abs(math.log(e.ratio)) for e in effects if e.ratio]
    ends = points + [
        abs(math.log(end))
        for e in effects
        if e.interval_95
        for end in (e.interval_95.low, e.interval_95.high)
    ]
    farthest = math.exp(min(max(points, default=0.0), math.log(BAR_SPAN_LIMIT)))
    most = min(BAR_SPAN_LIMIT, max(BAR_SPAN_MAX, farthest * BAR_POINT_SHARE))
    longest = math.exp(min(max(ends, default=0.0), math.log(BAR_SPAN_LIMIT)))
    return min(most, max(BAR_SPAN_MIN, longest))


def bar(effect: Effect, margin: float, room: int, glyphs: Glyphs, span: float) -> str:
    """Draw an interval on a log scale centred at 1, with the margin as background."""
    half = room // 2

    def column(ratio: float) -> int:
        return half + round(half * math.log(ratio) / math.log(span))

    edge = column(1 + margin) - half
    cells = [glyphs.band if abs(i - half) <= edge else " " for i in range(room)]
    cells[half] = glyphs.one
    if effect.ratio is None:
        return "".join(cells)
    if effect.interval_95 is not None:
        low, high = column(effect.interval_95.low), column(effect.interval_95.high)
        for i in range(max(0, low), min(room - 1, high) + 1):
            cells[i] = glyphs.line
        if low < 0:
            cells[0] = glyphs.left
        if high > room - 1:
            cells[-1] = glyphs.right
    place = column(effect.ratio)
    if place < 0 or place > room - 1:  # Beyond: the arrow says so, the point stands before it.
        cells[0 if place < 0 else -1] = glyphs.left if place < 0 else glyphs.right
    first = 0 if cells[0] != glyphs.left else 1
    last = room - 1 if cells[-1] != glyphs.right else room - 2
    cells[min(last, max(first, place))] = glyphs.point
    return "".join(cells)


def _cells(verdict: StudyVerdict, width: int, glyphs: Glyphs) -> str:
    """Draw the cells, those with the largest differences if there are too many."""
    known = [c for c in verdict.cells if c.effect.ratio is not None]
    if len(known) < 2:
        return ""
    shown = known
    title = "Single cells (exploratory)"
    if len(known) > CELLS_MAX:
        shown = _strongest(known, CELLS_MAX)
        title += f": the {CELLS_MAX} largest differences of {len(known)}"
    lines = [title]
    span = bar_span([c.effect for c in shown])
    levels = list(dict.fromkeys(c.level for c in shown))
    texts = [clean_text(level_text(verdict.compared_factor, level)) for level in levels]
    for level, text in zip(levels, fitted(texts, width - 1), strict=True):
        members = [c for c in shown if c.level == level]
        lines.append(f"{text}:")
        lines += _effect_lines(verdict, members, width, glyphs, span)
    return "\n".join(lines)


def _closer(verdict: StudyVerdict, width: int) -> str:
    """Say in a line per group who may be the best, and what the factors explain."""
    lines: list[str] = []
    for group in dict.fromkeys(c.group for c in verdict.pooled):
        workload, is_direct, kind = group
        found = (
            winner_text(verdict, group),
            factor_text(verdict.closer.factor_effects, group),
        )
        said = "; ".join(text for text in found if text)
        if said:
            mode = mode_text(verdict.compared_factor, is_direct)
            name = ", ".join(text for text in (workload, mode, kind) if text)
            lines.append(fold_text(f"{name}: {said}.", width, "  "))
    return "\n".join(["A closer look", *lines]) if lines else ""


def streams(verdict: StudyVerdict, width: int) -> str:
    """Write the ladder of every competing stream, one line per level, and its fairness."""
    table = stream_table(verdict)
    if table is None:
        return ""
    wanted = [
        (name, header)
        for name, header in (
            ("throughput_bytes_per_s", "rate"),
            ("latency_ns_p50", "p50"),
            ("latency_ns_p99", "p99"),
            ("latency_ns_p999", "p99.9"),
            ("latency_ns_max", "longest"),
            ("flush_ns_p50", "flush p50"),
            ("flush_ns_p99", "flush p99"),
            ("completion_ns", "done in"),
            ("on_time_share", "on time"),
            ("fairness_jain", "fair"),
            ("fairness_jain_shares", "shares"),
        )
        if any(t.metric == name for t in verdict.treatments)
    ]
    values = {
        (t.operation, t.cell_label, t.level or "all", t.metric): METRIC_BY_NAME[t.metric].format(
            t.value
        )
        for t in verdict.treatments
    }
    keys = dict.fromkeys(
        (t.operation, t.cell_label, t.level or "all")
        for t in verdict.treatments
        if not is_segment(t.operation) and any(t.operation in str(row[0]) for row in table.rows)
    )
    rooms = {
        name: 2 + max(len(header), *(len(values.get((*key, name), "-")) for key in keys))
        for name, header in wanted
    }
    name_room = max(len("Streams"), *(len(level) + 2 for *_, level in keys))
    shown = list[tuple[str, str]]()
    for name, header in wanted:
        if name_room + sum(rooms[known] for known, _ in shown) + rooms[name] <= width:
            shown.append((name, header))
    title = "".join(f"{header:>{rooms[name]}}" for name, header in shown)
    lines = [f"{'Streams':{name_room}}{title}"]
    place: tuple[str, str] | None = None
    for operation, label, level in keys:
        if (operation, label) != place:
            place = (operation, label)
            lines.append(fit_text(" · ".join(part for part in place if part), width).rstrip())
        cells = ((values.get((operation, label, level, name), "-"), name) for name, _ in shown)
        row = "".join(f"{cell:>{rooms[name]}}" for cell, name in cells)
        lines.append(f"{fit_text('  ' + level, name_room)}{row}"[:width].rstrip())
    streams = [t for t in verdict.treatments if any(t.operation == key[0] for key in keys)]
    said = longest_sentence(verdict, streams)
    return "\n".join([*lines, *([fold_text(said, width)] if said else [])])


def _caveats(data: StudyData, verdict: StudyVerdict, width: int) -> str:
    """Say what was measured and what was not; list the caveats, each once, with what to do."""
    said = (
        trials_text(data, verdict),
        words_text(verdict),
        scope_text(data, None),
        untested_text(data),
    )
    return "\n".join(
        [*(fold_text(text, width, "  ") for text in said if text), *terminal_list(verdict, width)]
    )


def trials_text(data: StudyData, verdict: StudyVerdict) -> str:
    """Say how many trials ran in which time, and what the words of the tables rest on."""
    trials = verdict.trials
    margin = f"margin {margin_text(verdict.margin)}{_within(verdict)}"
    if data.study.kind == "imported":
        runs = "run" if trials.ok == 1 else "runs"
        order = "order not known" if is_order_unknown(data) else "in order of their start times"
        return f"{source_text(data.study)}: {trials.ok} {runs}, {order}; {margin}."
    name = f"{kind_word(data.study)} trials".strip().capitalize()
    failed = f", {trials.failed} failed" if trials.failed else ""
    took = duration_text(data)
    time = f" in {took}" if took else ""
    ok = f"{trials.ok} of {trials.planned} ok{failed}{time}"
    return f"{name}: {ok}; {margin}, seed {data.study.seed}."


def _within(verdict: StudyVerdict) -> str:
    """Explain the words for differences that do not matter, where a table has them."""
    found = {c.effect.word for c in verdict.pooled}
    words = [word for word in _SMALL if word in found]
    return f" ({', '.join(words)}: within)" if words else ""


def words_text(verdict: StudyVerdict) -> str:
    """Say what the words for small differences mean, where a table has them."""
    rows = (*verdict.pooled, *verdict.secondary, *verdict.cells)
    found = {c.effect.word for c in rows}
    return " ".join(text for word, text in _SMALL.items() if word in found)


def scope_text(data: StudyData, most: int | None) -> str:
    """Say what ran on what; of more than `most` workloads the first are described."""
    if data.study.kind == "imported":
        return ""
    device = device_text(data, is_short=most is not None)
    return f"Tested: {workload_text(data, most)}; on {device}."


def untested_text(data: StudyData) -> str:
    """Say what was not measured, as far as it is known."""
    said = not_tested(data)
    return f"Not tested: {said}." if said else ""
