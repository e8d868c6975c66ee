"""The history of a metric as text: the groups of comparable studies, changes, and what is apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from iolab.report.folding import clean_text, fold_text
from iolab.stats.diff import Difference
from iolab.stats.history import STUDIES_MIN, Entry, Group, LevelChange, MetricHistory
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.sentence import margin_text, size_text
from iolab.stats.verdict import Effect
from iolab.wording import counted, sentence_case

_DIFFERENCES_SHOWN: Final = 3
_VALUE_MAX: Final = 30
_CELLS_SHOWN: Final = 3


def history_text(history: MetricHistory, width: int = 80) -> str:
    """Return the history for a terminal, in lines of `width` columns."""
    metric = METRIC_BY_NAME[history.metric]
    direction = "higher" if metric.is_higher_better else "lower"
    n = sum(len(group.entries) for group in history.groups) + len(history.apart)
    lines = [
        fold_text(
            f"{sentence_case(metric.label)} over {counted(n, 'study', 'studies')}, oldest first;"
            f" {direction} is better. {_summary(history, metric)}",
            width,
        )
    ]
    for number, group in enumerate(history.groups, start=1):
        lines += ["", *_group_lines(history, number, group, metric, width)]
    if history.apart:
        lines += ["", "Not comparable with any other:"]
        for one in history.apart:
            told = f"  {one.name}: {'; '.join(one.reasons)}."
            lines.append(fold_text(told, width, "    "))
    return "\n".join(lines)


def _summary(history: MetricHistory, metric: Metric) -> str:
    """Say in a sentence what is comparable, and what changed."""
    if not history.groups:
        return "No two of these studies are comparable."
    sizes = [len(group.entries) for group in history.groups]
    first = f"{sizes[0]} are comparable with each other"
    if len(sizes) > 1:
        first = (
            f"They form {len(sizes)} groups of comparable studies"
            f" ({', '.join(map(str, sizes))} studies)"
        )
    if history.apart:
        first += f", {len(history.apart)} with no other"
    n_changes = sum(len(group.changes) for group in history.groups)
    if n_changes:
        return f"{first}. {counted(n_changes, 'change')} of level found."
    if max(sizes) >= STUDIES_MIN:
        return f"{first}. No change of level beyond {margin_text(history.margin)} found."
    return f"{first}."


def _group_lines(
    history: MetricHistory, number: int, group: Group, metric: Metric, width: int
) -> Iterator[str]:
    title = f"Group {number}: " if len(history.groups) > 1 else ""
    shown = ", ".join(group.cells[:_CELLS_SHOWN])
    more = len(group.cells) - _CELLS_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    yield fold_text(
        f"{title}{counted(len(group.entries), 'study', 'studies')}, {place_text(group)};"
        f" geometric mean over {counted(len(group.cells), 'common cell')} ({shown}{rest})",
        width,
    )
    texts = [value_text(entry, metric) for entry in group.entries]
    steps = [_step(entry.step, metric) for entry in group.entries]
    rooms = [max(map(len, column)) for column in (texts, steps)]
    starts = {change.at: change for change in group.changes}
    names = [clean_text(entry.name) for entry in group.entries]
    is_short = 24 + sum(rooms) + max(map(len, names)) <= width
    for entry, value, step in zip(group.entries, texts, steps, strict=True):
        if entry.name in starts:
            yield fold_text(f"  -- {change_text(starts[entry.name], metric)}", width, "     ")
        date, name = date_text(entry.created_at_unix_ns), clean_text(entry.name)
        if is_short:
            yield f"  {date}  {value:{rooms[0]}}  {step:{rooms[1]}}  {name}"
        else:
            yield f"  {date}  {name}"
            yield f"    {value:{rooms[0]}}  {step}".rstrip()
        if entry.differences:
            yield fold_text(f"    {differences_text(entry.differences)}", width, "    ")
    yield from _end(history, group, width)


def _end(history: MetricHistory, group: Group, width: int) -> Iterator[str]:
    """Say what the values cannot show."""
    n = len(group.entries)
    if n < STUDIES_MIN:
        yield fold_text(
            f"  {n} studies are too few to find changes of level: {STUDIES_MIN} comparable ones"
            " are needed, four before a change and four from it on. The words compare neighbours:"
            " with one session each, a real change cannot be told from the usual difference"
            " between two sessions.",
            width,
            "  ",
        )
    elif not group.changes:
        yield fold_text(
            f"  No change of level by more than {margin_text(history.margin)}, with four studies"
            " on each side.",
            width,
            "  ",
        )


def place_text(group: Group) -> str:
    """Name where the studies of a group ran: kind, testbeds, processor."""
    parts = [group.kind, *group.testbeds[:2], *([_cut(group.machine)] if group.machine else [])]
    return ", ".join(parts)


def value_text(entry: Entry, metric: Metric) -> str:
    """Write the value of a study with its interval."""
    if entry.interval is None:
        return f"{metric.format(entry.value)} (one round)"
    low, high = metric.format(entry.interval.low), metric.format(entry.interval.high)
    same = low.rpartition(" ")[2] == high.rpartition(" ")[2]
    return f"{metric.format(entry.value)} ({low.rpartition(' ')[0] if same else low} to {high})"


def change_text(change: LevelChange, metric: Metric) -> str:
    """Say where a level changed, by how much, and what else changed there."""
    word = "better" if change.ratio > 1 else "worse"
    factor = change.ratio if change.ratio > 1 else 1 / change.ratio
    bounds = ""
    if change.interval is not None:
        ends = sorted((change.interval.low, change.interval.high))
        if change.ratio < 1:
            ends = sorted(1 / end for end in ends)
        bounds = f" (95 % {ends[0]:.3g} to {ends[1]:.3g}, the search for the place left out)"
    text = (
        f"Change: {metric.label} {word} by a factor of {factor:.3g}{bounds}, in the"
        f" {change.after} studies from here on against the {change.before} before."
    )
    if change.differences:
        return f"{text} Here changed: {differences_text(change.differences)}"
    return f"{text} Nothing that iolab records changed here."


def differences_text(differences: Sequence[Difference]) -> str:
    """Name the first differences around two studies."""
    shown = [
        f"{d.name} {_cut(d.before)} -> {_cut(d.after)}" for d in differences[:_DIFFERENCES_SHOWN]
    ]
    more = len(differences) - _DIFFERENCES_SHOWN
    rest = f"; and {more} more (iolab diff)" if more > 0 else ""
    return f"{'; '.join(shown)}{rest}"


def date_text(unix_ns: int) -> str:
    """Write a time as date, hour and minute (UTC)."""
    return f"{datetime.fromtimestamp(unix_ns / 1e9, tz=UTC):%Y-%m-%d %H:%M}"


def _step(effect: Effect | None, metric: Metric) -> str:
    if effect is None or effect.ratio is None:
        return ""
    return f"{size_text(metric, effect)}: {effect.word}"


def _cut(text: str) -> str:
    plain = clean_text(text)
    return plain if len(plain) <= _VALUE_MAX else f"{plain[: _VALUE_MAX - 1]}…"
