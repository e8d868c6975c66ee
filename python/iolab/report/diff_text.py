"""The comparison of two studies as text, as Markdown for a pull request, and its gate."""

from __future__ import annotations

from typing import Final

from iolab.report.folding import clean_text, fold_text
from iolab.stats.diff import KIND, CellChange, StudyDiff
from iolab.stats.gate import GateResult
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import bounds_text, margin_text, rounds_text, size_text
from iolab.stats.verdict import Effect
from iolab.wording import sentence_case

ENVIRONMENT_MAX: Final = 20
VALUE_MAX: Final = 60
OTHER_KINDS: Final = (
    "one of the two is simulated and the other is not: what follows compares a model with something"
    " measured, and says nothing about any change of yours"
)
"""Said before anything else where it is so."""


def diff_text(diff: StudyDiff, width: int = 80) -> str:
    """Return the comparison for a terminal."""
    lines = [fold_text(summary(diff), width), ""]
    lines += _environment_lines(diff, width)
    if diff.cells:
        lines += ["", f"Cells, {diff.after} against {diff.before} (above 1 = better)"]
        room = min(max(len(_name(c)) for c in diff.cells), width - 42)
        lines += [f"  {_cut(_name(c), room):{room}} {_numbers(c)}" for c in diff.cells]
    lines += _unmatched(diff, width)
    return "\n".join(lines)


def diff_markdown(diff: StudyDiff) -> str:
    """Return the comparison as Markdown."""
    lines = [_escape(summary(diff)), "", "### Environment", ""]
    if diff.environment:
        lines += [
            f"| what | {_escape(diff.before)} | {_escape(diff.after)} |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| {_escape(d.name)} | {_escape(_cut(d.before))} | {_escape(_cut(d.after))} |"
            for d in diff.environment
        ]
    else:
        lines += ["No difference is known."]
    lines += ["", "### Cells", "", "| cell | before | after | ratio | 95 % interval | verdict |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for c in diff.cells:
        metric = METRIC_BY_NAME[c.metric]
        lines.append(
            f"| {_escape(_name(c))} | {metric.format(c.before)} | {metric.format(c.after)} |"
            f" {_ratio(c.effect.ratio)} | {_interval(c.effect)} | {word_text(c.effect)} |"
        )
    for names, which in ((diff.only_before, diff.before), (diff.only_after, diff.after)):
        if names:
            lines += ["", f"Only in {_escape(which)}: {_escape(', '.join(names))}."]
    return "\n".join(lines)


def summary(diff: StudyDiff) -> str:
    """Say what happened in one or two sentences."""
    if not diff.cells:
        return (
            f"{diff.after} and {diff.before} have no cell in common: operations or levels differ."
        )
    how = (
        "paired by round (one seed)"
        if diff.is_paired
        else "two independent samples, since their rounds were not interleaved"
    )
    parts = [f"Mind that {OTHER_KINDS}."] if diff.has_other_kinds else []
    parts.append(
        f"{diff.after} against {diff.before}: {_count(diff)}; {how}; margin"
        f" {margin_text(diff.margin)}."
    )
    for name, effect in diff.overall.items():
        metric = METRIC_BY_NAME[name]
        label = sentence_case(metric.label)
        if effect.ratio is None:
            continue
        size, bounds = size_text(metric, effect), bounds_text(metric, effect)
        parts.append(f"{label} over all cells: {size} ({bounds}): {word_text(effect)}.")
    if not diff.has_session_variance:
        parts.append(
            "From one session a side it cannot be known how much two sessions differ anyway: the"
            " intervals hold for these two."
        )
    if diff.has_other_kinds:
        kind = next(d for d in diff.machines if d.name == KIND)
        parts.append(f"{diff.before} is {kind.before}, {diff.after} is {kind.after}.")
    elif diff.machines:
        said = "; ".join(f"{d.name}: {_cut(d.before)} -> {_cut(d.after)}" for d in diff.machines)
        parts.append(
            f"They ran on different machines ({said}): a difference is that of machines first."
        )
    elif diff.environment:
        parts.append(
            "A difference may come from whatever else differs around the studies"
            f" ({len(diff.environment)} found)."
        )
    return " ".join(parts)


def _count(diff: StudyDiff) -> str:
    n = len(diff.cells)
    return "1 cell matches" if n == 1 else f"{n} cells match"


def gate_text(diff: StudyDiff, result: GateResult, width: int = 80) -> str:
    """Return one line per cell and a summary."""
    room = min(max((len(_name(c)) for c, _ in result.cells), default=0), width - 46)
    lines = [
        f"{outcome:10} {_cut(_name(cell), room):{room}} {_numbers(cell, is_word_shown=False)}"
        + (
            f"  {rounds_text(cell.effect)}"
            if cell.effect.further_rounds is not None
            and outcome == "undecided"
            and not result.obstacle
            else ""
        )
        for cell, outcome in result.cells
    ]
    lines += [f"{'missing':10} {clean_text(name)}" for name in result.missing]
    counts = ", ".join(f"{result.count(o)} {o}" for o in ("pass", "undecided", "regression"))
    margin = margin_text(diff.margin)
    if result.missing:
        counts += f", {len(result.missing)} missing"
    if result.obstacle and result.cells:
        said = f"cannot gate: {result.obstacle}"
    elif not result.cells:
        said = "undecided: the two have no cell in common"
    elif result.outcome == "regression":
        said = f"regression: shown to be worse by more than {margin}"
    elif result.outcome == "undecided":
        said = f"undecided: not shown to be within {margin}, nor to be worse"
    else:
        said = f"pass: no cell is worse by more than {margin}"
    if result.obstacle and result.cells:
        return "\n".join([*lines, fold_text(f"{said}.", width)])
    return "\n".join([*lines, f"{said} ({counts})"])


def word_text(effect: Effect) -> str:
    """Write the verdict word, with what would decide it."""
    return f"{effect.word} ({rounds_text(effect)})" if effect.word == "undecided" else effect.word


def _environment_lines(diff: StudyDiff, width: int) -> list[str]:
    if not diff.environment:
        return ["Environment: no difference is known."]
    lines = ["Environment"]
    for d in diff.environment[:ENVIRONMENT_MAX]:
        text = f"- {d.name}: {_cut(d.before)} -> {_cut(d.after)}"
        lines.append(fold_text(text, width, "    "))
    rest = len(diff.environment) - ENVIRONMENT_MAX
    return [*lines, *([f"  {rest} more; --json and --md have all"] if rest > 0 else [])]


def _unmatched(diff: StudyDiff, width: int) -> list[str]:
    lines: list[str] = []
    for names, which in ((diff.only_before, diff.before), (diff.only_after, diff.after)):
        if names:
            shown = ", ".join(names[:8])
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            lines += ["", fold_text(f"Only in {which}: {shown}{more}.", width, "  ")]
    return lines


def _name(cell: CellChange) -> str:
    return f"{cell.label} · {METRIC_BY_NAME[cell.metric].label}"


def _numbers(cell: CellChange, *, is_word_shown: bool = True) -> str:
    ratio, interval = _ratio(cell.effect.ratio), _interval(cell.effect)
    runs = f"n={cell.runs_before}/{cell.runs_after}"
    word = f" {cell.effect.word}" if is_word_shown else ""
    return f"{ratio:>6} {interval:16} {runs}{word}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(effect: Effect) -> str:
    if effect.interval_95 is None:
        return "no interval"
    return f"[{effect.interval_95.low:.3f}, {effect.interval_95.high:.3f}]"


def _cut(text: str, room: int = VALUE_MAX) -> str:
    text = clean_text(text)
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _escape(text: str) -> str:
    """Keep Markdown tables whole and names literal."""
    for character in "\\|`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return clean_text(text)
