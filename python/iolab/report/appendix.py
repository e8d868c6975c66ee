"""The last sections of the page: environment, configuration, raw data, citation."""

from __future__ import annotations

from datetime import UTC, datetime

from iolab.report.chart import Table
from iolab.report.markup import Markup, join, tag
from iolab.report.tables import data_table, plain_table
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData

VALUES_SHOWN = 4
"""Values of a fact that are listed; of the others their number is."""
RAW_ROWS_MAX = 8000
"""Measurements offered as CSV; more are in the database alone."""


def environment(data: StudyData) -> Markup:
    """Draw the facts: what differed between trials first, the rest folded."""
    parts: list[Markup] = []
    if data.varying_facts:
        rows = [_varying(name, values) for name, values in sorted(data.varying_facts.items())]
        parts.append(tag("h3", "Changed between trials"))
        parts.append(plain_table(("fact", "values", "value (trials)"), tuple(rows)))
        if sum(map(len, data.varying_facts.values())) <= RAW_ROWS_MAX:
            whole = Table(
                ("fact", "trial", "value"),
                tuple(
                    (name, trial_id, value)
                    for name, values in sorted(data.varying_facts.items())
                    for trial_id, value in values.items()
                ),
            )
            parts.append(data_table(whole, "facts_that_changed", rows_max=0))
    same = plain_table(("fact", "value"), tuple(sorted(data.facts.items())))
    title = tag("h3", "The same in all trials")
    if len(data.facts) > 12:
        same = tag("details", tag("summary", f"{len(data.facts)} facts"), same)
    return join(*parts, title, same)


def _varying(name: str, values: dict[str, str]) -> tuple[str, int, str]:
    counts: dict[str, int] = {}
    for value in values.values():
        counts[value] = counts.get(value, 0) + 1
    shown = sorted(counts.items(), key=lambda item: -item[1])[:VALUES_SHOWN]
    text = "; ".join(f"{_short(value)} ({count})" for value, count in shown)
    rest = len(counts) - len(shown)
    return name, len(counts), text + (f"; {rest} more" if rest else "")


def _short(value: str, limit: int = 60) -> str:
    return value if len(value) <= limit else f"{value[: limit - 1]}…"


def configuration(data: StudyData) -> Markup:
    """Draw factors and settings, and the knobs as they were read back."""
    rows = tuple(
        [
            (name, ", ".join(levels), "varied" if len(levels) > 1 else "named")
            for name, levels in data.study.factors.items()
        ]
        + [(name, level, "held") for name, level in data.study.settings.items()]
    )
    parts = [tag("h3", "Factors and settings"), plain_table(("name", "levels", "role"), rows)]
    knobs = [
        (trial_id, name, str(value))
        for trial_id, found in data.knobs.items()
        for name, value in sorted(found.items())
    ]
    if knobs:
        table = plain_table(("trial", "knob", "read back"), tuple(knobs[:200]))
        title = f"Knobs as read back, first round ({len(knobs)})"
        parts.append(tag("details", tag("summary", title), table))
    return join(*parts)


def raw_data(data: StudyData) -> Markup:
    """Say where each kind of number lies, and offer the measurements themselves."""
    rows = (
        ("one value per trial, operation and metric", "measurement", len(data.measurements)),
        ("trials as planned and as they went", "trial, record", len(data.trials)),
        ("operations of trials: CPU, device, depth", "phase", len(data.phase_details)),
        ("slices over time", "series", sum(len(s.ops) for s in data.series)),
        ("whole records with histograms", "record.record_zlib", len(data.trials)),
        ("facts of the machine", "fact", len(data.facts) + len(data.varying_facts)),
    )
    note = "Tables of study.db, beside this page; docs/reference/files.md describes them."
    parts = [
        plain_table(("what", "table", "rows read"), rows),
        tag("p", note, class_="soft"),
    ]
    if data.measurements and len(data.measurements) <= RAW_ROWS_MAX:
        table = Table(
            ("trial", "round", "place", "workload", "operation", "levels", "metric", "value"),
            tuple(
                (
                    m.trial_id,
                    m.round,
                    m.position + 1,
                    m.workload,
                    m.operation,
                    "; ".join(f"{k}={v}" for k, v in m.levels.items()),
                    m.metric,
                    m.value,
                )
                for m in data.measurements
            ),
        )
        parts.append(data_table(table, "measurements", rows_max=0))
    return join(*parts)


def citation(data: StudyData) -> Markup:
    """Write the entry with which to cite this study."""
    study = data.study
    made = datetime.fromtimestamp(study.created_at_unix_ns / 1e9, tz=UTC)
    key = f"iolab-{study.study_id[:12]}"
    entry = "\n".join(
        (
            f"@misc{{{key},",
            f"  title        = {{{_bibtex(study.name)}}},",
            f"  howpublished = {{Study made with iolab {study.iolab_version}}},",
            f"  year         = {{{made:%Y}}},",
            f"  month        = {{{made.month}}},",
            f"  note         = {{Study {study.study_id}, plan {study.plan_digest},"
            f" {study.kind}, {_bibtex(machine_text(data))}}}",
            "}",
        )
    )
    return tag("pre", entry)


def _bibtex(text: str) -> str:
    """Escape what LaTeX would take for commands."""
    escaped = "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text)
    return escaped.replace("~", "\\textasciitilde{}").replace("^", "\\textasciicircum{}")
