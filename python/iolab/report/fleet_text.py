"""The verdict over hosts as text: the sentence, hosts that stand apart, a line for each host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.report.folding import clean_text, fold_text
from iolab.stats.effect_words import size_of_effect
from iolab.stats.fleet import FleetComparison, FleetVerdict, HostEffect
from iolab.stats.ledger import level_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import Interval
from iolab.wording import counted

_NAMED: Final = 4
"""Hosts that the sentence names."""


def fleet_text(fleet: FleetVerdict, width: int = 80) -> str:
    """Return a fleet's answer for a terminal, in lines of `width` columns."""
    sentences = [fleet.verdict.sentence, *apart_texts(fleet)]
    lines = [fold_text(" ".join(sentences), width)]
    for row in fleet.comparisons:
        lines += ["", *_table(fleet, row, width)]
    lines += ["", *(fold_text(text, width, "  ") for text in _notes(fleet))]
    return "\n".join(lines)


def apart_texts(fleet: FleetVerdict) -> Iterator[str]:
    """Say in a sentence for each comparison which hosts stand apart."""
    for row in fleet.comparisons:
        apart = [one for one in row.hosts if one.is_apart]
        if not apart:
            continue
        level = level_text(fleet.verdict.compared_factor, row.comparison.level)
        told = "; ".join(_apart(row, one) for one in apart[:_NAMED])
        more = len(apart) - _NAMED
        rest = f"; and {more} more" if more > 0 else ""
        yield f"Not on every host, for {level}: {told}{rest}."


def _apart(row: FleetComparison, one: HostEffect) -> str:
    metric = METRIC_BY_NAME[row.comparison.metric]
    ours = size_of_effect(metric, one.ratio or 1.0)
    others = size_of_effect(metric, one.others_ratio or 1.0)
    return f"{clean_text(one.host)} is {ours}, the others {others}"


def _table(fleet: FleetVerdict, row: FleetComparison, width: int) -> Iterator[str]:
    c, factor = row.comparison, fleet.verdict.compared_factor
    metric = METRIC_BY_NAME[c.metric]
    what = ", ".join(part for part in (c.workload, c.kind, metric.label) if part)
    yield fold_text(
        f"{what}: {level_text(factor, c.level)} against {level_text(factor, c.baseline)}"
        " (above 1 is better) [95 %]",
        width,
    )
    names = [*(clean_text(one.host) for one in row.hosts), "all hosts", "another host"]
    room = min(max(map(len, names)), 40)
    for name, one in zip(names, row.hosts, strict=False):
        word = f"{one.word}{', stands apart' if one.is_apart else ''}"
        yield _line(
            name, room, one.ratio, one.interval_95, f"{counted(one.rounds, 'round')}  {word}"
        )
    word = f"{counted(c.rounds_used, 'host')}  {c.word}"
    yield _line("all hosts", room, c.effect.ratio, c.effect.interval_95, word)
    if row.next_host is not None:
        yield _line("another host", room, c.effect.ratio, row.next_host, "to be expected")


def _line(name: str, room: int, ratio: float | None, bounds: Interval | None, end: str) -> str:
    shown = "-" if ratio is None else f"{ratio:.3f}"
    interval = "-" if bounds is None else f"[{bounds.low:.3f}, {bounds.high:.3f}]"
    return f"  {name:{room}}  {shown:>6}  {interval:16}  {end}"


def _notes(fleet: FleetVerdict) -> Iterator[str]:
    yield (
        "The interval over hosts is for hosts of this kind: it narrows with hosts, not with rounds."
        " Absolute values of different hosts are never compared."
    )
    silent = {one.host for row in fleet.comparisons for one in row.hosts if one.rounds == 0}
    if silent:
        shown = ", ".join(clean_text(name) for name in sorted(silent))
        yield (
            f"Without a complete round in a line above: {shown}. Trials failed there, or their"
            " values are zero, of which no ratio can be made: `iolab report` of such a host says"
            " which."
        )
    if not fleet.are_told_apart:
        yield (
            "Nothing that is stored tells these hosts apart (processor, model, virtualization): if"
            " they are one machine, this is a verdict over its sessions."
        )
