"""Terminal text of published figures beside simulated ones."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from iolab.reproduced.compared import ComparedNumber, Reproduced
from iolab.reproduced.model import Document
from iolab.reproduced.page import number, percent


def title(document: Document) -> str:
    """The line that a document begins with."""
    return f"{document.key.upper()}: {document.title}"


def lines(found: Reproduced, width: int) -> Iterator[str]:
    """A row per number, reasons, counts and what follows."""
    document = found.document
    if found.outcomes:
        room = max(len(outcome.row.name) for outcome in found.outcomes)
        yield f"{'':{room}} {'unit':>8} {'published':>9} {'simulated':>9} {'differs':>8}  outcome"
        yield from (_row(outcome, room) for outcome in found.outcomes)
        reasons = dict.fromkeys(
            outcome.row.why for outcome in found.outcomes if outcome.word == "missed"
        )
        for reason in filter(None, reasons):
            yield from textwrap.wrap(f"missed: {reason}", width, subsequent_indent="  ")
        yield from textwrap.wrap(f"{found.summary}. Rules: {_rules(found)}.", width)
    yield from textwrap.wrap(document.finding, width, break_on_hyphens=False)


def _rules(found: Reproduced) -> str:
    """Rules with the number of rows that each compares."""
    rules = [o.row.rule.told for o in found.outcomes if o.row.rule is not None]
    return ", ".join(f"{rule} ({rules.count(rule)})" for rule in dict.fromkeys(rules)) or "none"


def _row(outcome: ComparedNumber, room: int) -> str:
    told, found = number(outcome.published.value), number(outcome.simulated)
    mark = "  <- was: " + outcome.row.expected if outcome.is_changed else ""
    difference = percent(outcome.difference)
    return (
        f"{outcome.row.name:{room}} {outcome.published.unit:>8} {told:>9} {found:>9} "
        f"{difference:>8}  {outcome.word}{mark}"
    )
