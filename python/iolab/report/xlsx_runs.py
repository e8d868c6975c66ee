"""The sheets that follow from single rounds: ratios (verdicts) and values (means), as formulas.

Rounds shows the sample behind every verdict: change a ratio or the margin, and ratio, interval and
word follow. Runs has the tables that people used to make by hand: per level, record size by
operation, every round and the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.report.charts.common import (
    group_title,
    levels_of,
    primary_summaries,
    summary_point,
)
from iolab.report.xlsx_cells import (
    COLUMNS_MAX,
    Links,
    Place,
    SheetWriter,
    log_half_width,
    log_mean,
    write_headers,
    write_value,
)
from iolab.stats.ledger import factor_head
from iolab.stats.lookups import of_metric
from iolab.stats.measured import ROUNDING
from iolab.stats.methods.verdict_rule import ROUNDS_MIN
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import kind_word
from iolab.stats.verdict import Comparison, StudyVerdict, TreatmentSummary, mode_word
from iolab.store.rows import Measurement, StudyData

MARGIN_ROW = 2
FIRST_MEAN = 2
"""Column of the first mean in a table of Runs."""
FIRST_ROUND = 7
"""Column of the first round there."""
ROUNDS_NOTE = (
    "One ratio per round, oriented: above 1 is better. Ratio, intervals and verdict are formulas:"
    " change a round or the margin, and they follow, here and in the chart of the first sheet."
)


# Ratios by round.


def write_rounds(out: SheetWriter, verdict: StudyVerdict, links: Links) -> list[int]:
    """Write the sample behind every comparison; return the line of each, in order."""
    lines = list[int]()
    out.columns(0, 1, 13)
    out.columns(2, 2, 24)
    out.columns(3, 13, 13)
    out.sheet.freeze_panes(0, 4)
    out.text(0, 0, "Ratios by round", "title")
    out.wrapped(1, (0, 8), ROUNDS_NOTE, "question", 120)
    out.text(MARGIN_ROW, 0, "margin", "bold")
    out.sheet.write_number(MARGIN_ROW, 1, verdict.margin, out.formats["percent"])
    row = MARGIN_ROW + 2
    for title, found in (
        ("Primary metric", verdict.pooled),
        ("Beside it, exploratory", verdict.secondary),
    ):
        if found:
            out.text(row, 0, title, "bold")
            lines += range(row + 2, row + 2 + len(found))
            row = _rounds_table(out, row + 1, verdict, found, links) + 1
    return lines


def _rounds_table(
    out: SheetWriter,
    row: int,
    verdict: StudyVerdict,
    found: Sequence[Comparison],
    links: Links,
) -> int:
    columns = (
        "workload",
        "mode",
        "metric",
        factor_head(verdict.compared_factor),
        "baseline",
        "rounds",
        "ratio",
        "95 % low",
        "95 % high",
        "90 % low",
        "90 % high",
        "confidence of 95 %",
        "confidence of 90 %",
        "verdict",
    )
    rounds = sorted({r for c in found for r in c.round_ratios})
    shown = rounds[: COLUMNS_MAX - len(columns)]
    write_headers(out, row, columns)
    write_headers(out, row, [f"round {r}" for r in shown], len(columns))
    for c in found:
        row += 1
        where = ", ".join(text for text in (c.workload, c.kind) if text)
        for column, text in enumerate((where, mode_word(c.is_direct), c.metric, c.level)):
            out.text(row, column, text)
        out.text(row, 4, c.baseline)
        for column, r in enumerate(shown, start=len(columns)):
            if r in c.round_ratios:
                out.sheet.write_number(row, column, c.round_ratios[r], out.formats["number"])
        is_whole = len(shown) == len(rounds) and len(c.round_ratios) == c.rounds_used
        # Words of exploratory comparisons depend on all of them (Benjamini-Hochberg).
        is_judged = is_whole and found is verdict.pooled
        _comparison_cells(out, row, c, len(columns), len(shown) if is_whole else 0)
        if is_judged and c.round_ratios:
            _word_formula(out, row, c, (len(columns), len(shown)))
        interval = c.effect.interval_95
        if c.effect.ratio is not None:
            low, high = (interval.low, interval.high) if interval else (None, None)
            links.add("", (c.effect.ratio, low, high), Place.of_row(out.name, row, 6))
    return row + 1


def _comparison_cells(out: SheetWriter, row: int, c: Comparison, first: int, rounds: int) -> None:
    """Write what follows from the rounds, as formulas where the sheet has all of them."""
    from xlsxwriter.utility import xl_range, xl_rowcol_to_cell

    effect = c.effect
    if effect.ratio is None or not rounds or not c.round_ratios:
        _comparison_values(out, row, c)
        return
    cells = xl_range(row, first, row, first + rounds - 1)
    out.formula(row, 5, f"COUNT({cells})", c.rounds_used, "rate")
    out.formula(row, 6, f"EXP({log_mean(cells)})", effect.ratio)
    for column, interval, confidence in (
        (7, effect.interval_95, 11),
        (9, effect.interval_90, 12),
    ):
        if interval is None:
            continue
        out.sheet.write_number(row, confidence, interval.confidence, out.formats["exact"])
        half = log_half_width(cells, f"1-{xl_rowcol_to_cell(row, confidence)}")
        half = f"({half}+{_rounding(c):.12g})"
        out.formula(row, column, f"EXP({log_mean(cells)}-{half})", interval.low)
        out.formula(row, column + 1, f"EXP({log_mean(cells)}+{half})", interval.high)
    out.text(row, 13, effect.word)


def _rounding(c: Comparison) -> float:
    return ROUNDING if METRIC_BY_NAME[c.metric].is_from_histogram else 0.0


def _word_formula(out: SheetWriter, row: int, c: Comparison, place: tuple[int, int]) -> None:
    """Write the verdict rule over the rounds of a line (docs/explanation/verdict-words.md).

    A word that rests on more than the rounds (`depends`, withheld) is written as it is.
    """
    from xlsxwriter.utility import xl_range, xl_rowcol_to_cell

    effect = c.effect
    if effect.interval_95 is None or effect.interval_90 is None:
        return
    if effect.reason or effect.word == "depends":
        out.text(row, 13, effect.word)
        return
    cells = xl_range(row, place[0], row, place[0] + place[1] - 1)
    mean, rounding = log_mean(cells), f"{_rounding(c):.12g}"
    halves = [
        f"({log_half_width(cells, f'{alpha:.15g}')}+{rounding})"
        for alpha in (0.05 / effect.divisor, 0.10 / effect.divisor_same)
    ]
    low, high, low_90, high_90 = (
        f"EXP({mean}{sign}{half})" for half in halves for sign in ("-", "+")
    )
    edge = f"(1+{xl_rowcol_to_cell(MARGIN_ROW, 1, row_abs=True, col_abs=True)})"
    inside = f'IF(OR({low}>1,{high}<1),"trivial","same")'
    beyond = f'IF({low}>{edge},"better",IF({high}<1/{edge},"worse","undecided"))'
    rule = f"IF(AND({low_90}>1/{edge},{high_90}<{edge}),{inside},{beyond})"
    rule = f'IF(COUNT({cells})<{ROUNDS_MIN},"undecided",{rule})'
    out.formula(row, 13, rule, c.effect.word)


def _comparison_values(out: SheetWriter, row: int, c: Comparison) -> None:
    effect = c.effect
    ends = [
        value
        for interval in (effect.interval_95, effect.interval_90)
        for value in ((interval.low, interval.high) if interval else (None, None))
    ]
    for column, value in enumerate((c.rounds_used, effect.ratio, *ends), start=5):
        write_value(out, row, column, value)
    out.text(row, 13, effect.word)


# Values by round.

Values = dict[tuple[object, ...], dict[int, list[float]]]


def write_runs(out: SheetWriter, data: StudyData, verdict: StudyVerdict, links: Links) -> int:
    """Write one table per level: cells down, the means, then rounds across; return a free row.

    The means stand first, so that they are on paper however many rounds there are.
    """
    rounds = sorted({t.round for t in data.trials})
    out.columns(0, 1, 22)
    out.columns(2, min(len(rounds), COLUMNS_MAX) + FIRST_ROUND - 1, 15)
    groups = primary_summaries(verdict)
    values = _values_by_cell(data, {t.metric for found in groups.values() for t in found})
    row = 0
    for group, summaries in groups.items():
        metric = METRIC_BY_NAME[summaries[0].metric]
        for level in [*levels_of(data), None]:
            found = [t for t in summaries if t.level == level]
            if not found:
                continue
            name = level or "all trials"
            kind = kind_word(data.study)
            name = f"{name} ({kind})" if kind else name
            title = f"{name}: {metric.label} in {metric.unit}, {group_title(verdict, group)}"
            out.text(row, 0, title, "title")
            row = _runs_table((out, links), row + 1, found, values, rounds) + 1
    return row


def _values_by_cell(data: StudyData, metrics: set[str]) -> Values:
    ok = {t.trial_id for t in data.trials if t.status == "ok"}
    found: Values = {}
    # Trials of a treatment share their levels: the cell is looked up once for all of them.
    cells: dict[tuple[str, str, bool | None, int], dict[int, list[float]]] = {}
    for metric in metrics:
        cells.clear()
        for m in of_metric(data, metric):
            if m.trial_id not in ok:
                continue
            place = (m.workload, m.operation, m.is_direct, id(m.levels))
            by_round = cells.get(place)
            if by_round is None:
                by_round = cells[place] = found.setdefault(_cell_of(m), {})
            by_round.setdefault(m.round, []).append(m.value)
    return found


def _cell_of(item: Measurement | TreatmentSummary) -> tuple[object, ...]:
    levels = tuple(sorted(item.levels.items()))
    return (item.workload, item.operation, item.is_direct, item.metric, levels)


def _runs_table(
    sheet: tuple[SheetWriter, Links],
    row: int,
    found: list[TreatmentSummary],
    values: Values,
    rounds: list[int],
) -> int:
    """Write the table of one level; what follows from the rounds are formulas over them."""
    out, links = sheet
    unit = METRIC_BY_NAME[found[0].metric].unit
    shown = rounds[: COLUMNS_MAX - 8]
    is_maximum = METRIC_BY_NAME[found[0].metric].is_maximum
    after = ("mean", "maximum" if is_maximum else "geometric mean", "95 % low", "95 % high")
    headers = [
        "record size / cell",
        "operation",
        *(f"{name} ({unit})" for name in after),
        "n",
        *(f"round {r} ({unit})" for r in shown),
    ]
    write_headers(out, row, headers)
    labels = [t.cell_label for t in found]
    for t in sorted(found, key=lambda t: labels.index(t.cell_label)):
        row += 1
        by_round = values.get(_cell_of(t), {})
        out.text(row, 0, t.cell_label or t.levels.get("record_size", ""))
        out.text(row, 1, t.operation)
        for column, r in enumerate(shown, start=FIRST_ROUND):
            if r in by_round:
                mean = sum(by_round[r]) / len(by_round[r])
                out.sheet.write_number(row, column, mean, out.formats["rate"])
        _mean_cells(out, row, t, {r: by_round[r] for r in shown if r in by_round}, len(shown))
        scale = METRIC_BY_NAME[t.metric].display_scale
        place = Place.of_row(out.name, row, FIRST_MEAN + 1, scale)
        point = summary_point(t, None, 0)
        links.add(point.title, (point.x, point.low, point.high), place)
    return row + 1


def _possible(t: TreatmentSummary, formula: str) -> str:
    """Return a formula without values that no share can have, as the verdict's own intervals."""
    highest = METRIC_BY_NAME[t.metric].highest
    return formula if highest is None else f"MIN({highest:.12g},{formula})"


def _mean_cells(
    out: SheetWriter, row: int, t: TreatmentSummary, by_round: dict[int, list[float]], rounds: int
) -> None:
    """Write the means; formulas where each round is one trial and all of them are in the row."""
    from xlsxwriter.utility import xl_range

    column = FIRST_MEAN
    cells = xl_range(row, FIRST_ROUND, row, FIRST_ROUND + rounds - 1)
    if by_round:
        means = [sum(found) / len(found) for found in by_round.values()]
        mean = sum(means) / len(means)
        out.sheet.write_formula(row, column, f"=AVERAGE({cells})", out.formats["rate"], mean)
    if not (t.n == len(by_round) == sum(map(len, by_round.values()))):
        out.sheet.write_number(row, column + 1, t.value, out.formats["rate"])
        if t.value_interval is not None:
            out.sheet.write_number(row, column + 2, t.value_interval.low, out.formats["rate"])
            out.sheet.write_number(row, column + 3, t.value_interval.high, out.formats["rate"])
        out.sheet.write_number(row, column + 4, t.n)
        return
    middle = f"MAX({cells})" if t.statistic == "maximum" else f"EXP({log_mean(cells)})"
    out.formula(row, column + 1, middle, t.value, "rate")
    if t.value_interval is not None:
        half = log_half_width(cells, f"{1 - t.value_interval.confidence:.12g}")
        low, high = (_possible(t, f"EXP({log_mean(cells)}{sign}{half})") for sign in "-+")
        out.formula(row, column + 2, low, t.value_interval.low, "rate")
        out.formula(row, column + 3, high, t.value_interval.high, "rate")
    out.formula(row, column + 4, f"COUNT({cells})", t.n, "rate")
