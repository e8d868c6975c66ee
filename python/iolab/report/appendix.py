"""The last sections of the page: environment, configuration, raw data."""

from __future__ import annotations

from iolab.report.chart import Table
from iolab.report.facts import same_rows, setting_rows, varying_rows
from iolab.report.markup import Markup, join, tag
from iolab.report.methods import environment_rows
from iolab.report.tables import data_table, plain_table
from iolab.store.rows import StudyData

RAW_ROWS_MAX = 8000
"""Measurements offered as CSV; more are in the database alone."""


def environment(data: StudyData) -> Markup:
    """Draw what a paper names, then the facts: what differed between trials first."""
    parts = [
        tag("h3", "For a paper"),
        plain_table(("what", "value"), tuple(environment_rows(data))),
    ]
    if data.varying_facts:
        parts.append(tag("h3", "Changed between trials"))
        parts.append(plain_table(("fact", "value", "trials"), tuple(varying_rows(data))))
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
    same = plain_table(("fact", "value"), tuple(same_rows(data)))
    title = tag("h3", "The same in all trials")
    if len(data.facts) > 12:
        same = tag("details", tag("summary", f"{len(data.facts)} facts"), same)
    return join(*parts, title, same)


def configuration(data: StudyData) -> Markup:
    """Draw factors and settings, and the knobs as they were read back."""
    rows = tuple(setting_rows(data.study))
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
