"""A document's page: what was measured, each number beside the simulated one, what follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.reproduced.compared import ComparedNumber, Reproduced

_DIGITS: Final = 4
_WORDS: Final = {
    "agrees": "the rule of the row holds",
    "fitted": "a parameter was chosen so that it comes out; agreement proves nothing",
    "missed": "it was simulated, and the rule does not hold",
    "not simulated": "something that decides it has no model here",
    "lost": "the text of the document does not have it, or not what it is compared with",
}


def text(found: Reproduced) -> str:
    """Markdown of the page."""
    return "\n".join(_lines(found)) + "\n"


def number(value: float | None) -> str:
    """A number to four digits, without an exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    shown = f"{value:.{_DIGITS}g}"
    return f"{float(shown):.0f}" if "e" in shown else shown


def percent(value: float | None) -> str:
    """A share as a difference in percent."""
    return "" if value is None else f"{100 * value:+z.1f} %"


def _lines(found: Reproduced) -> Iterator[str]:
    document = found.document
    yield f"# {document.key.upper()}: {document.title}"
    yield ""
    yield document.told
    yield ""
    yield "```sh"
    yield f"iolab sim reproduce {document.key}"
    yield "```"
    yield ""
    yield "## What its numbers say"
    yield ""
    yield document.finding
    yield ""
    if not found.outcomes:
        return
    yield "## Number by number"
    yield ""
    yield f"{found.summary[:1].upper()}{found.summary[1:]}."
    yield ""
    yield from _table(found)
    yield ""
    for word in found.counts:
        yield f"- *{word}*: {_WORDS[word]}."
    yield ""
    yield from _reasons(found)
    yield from _commands(found)
    if document.provenance:
        yield "## Where the parameters come from"
        yield ""
        yield from (f"- {line}." for line in document.provenance)
        yield ""


def _table(found: Reproduced) -> Iterator[str]:
    has_parts = any(outcome.part is not None for outcome in found.outcomes)
    extra = [f"share of {found.outcomes[0].row.of}"] if has_parts else []
    heads = ["number", "unit", "published", "simulated", "difference", *extra, "rule", "outcome"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + " --- |" * len(heads)
    for outcome in found.outcomes:
        cells = [
            outcome.row.name,
            outcome.published.unit,
            number(outcome.published.value),
            number(outcome.simulated),
            percent(outcome.difference) if outcome.word != "lost" else "",
            *([f"{100 * (outcome.part or 0):.0f} %"] if has_parts else []),
            outcome.row.rule.told if outcome.row.rule is not None else "",
            outcome.word,
        ]
        yield f"| {' | '.join(cells)} |"


def _reasons(found: Reproduced) -> Iterator[str]:
    missed = [o for o in found.outcomes if o.word in ("missed", "not simulated") and o.row.why]
    if not missed:
        return
    yield "## What does not come out, and why"
    yield ""
    for why, names in _by_reason(missed).items():
        yield f"- {'; '.join(names)}: {why}."
    yield ""


def _by_reason(outcomes: list[ComparedNumber]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for outcome in outcomes:
        found.setdefault(outcome.row.why, []).append(outcome.row.name)
    return found


def _commands(found: Reproduced) -> Iterator[str]:
    setups = dict.fromkeys(o.row.setup for o in found.outcomes if o.row.setup is not None)
    if not setups:
        return
    yield "## The same by hand"
    yield ""
    yield "```sh"
    yield from (setup.told for setup in setups)
    yield "```"
    yield ""
