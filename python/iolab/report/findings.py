"""Findings in every format: one renderer per format, which asks the row of a kind what to do.

Kinds without a title are listed (the caveats): name, count, what was seen, what to do. Kinds with
one are blocks: a table with a row per finding and its evidence, and a closing sentence. Where a
chart of the page prints a kind as a table, no second table repeats it; where its caption has the
closing sentence, the workbook does not repeat that.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from iolab import units
from iolab.frozen import frozen
from iolab.report.chart import Table, Value
from iolab.report.collect import DrawnChart
from iolab.report.folding import clean_text, fit_text, fold_text
from iolab.report.labels import fitted
from iolab.report.markup import Markup, join, tag
from iolab.report.shown_text import shown_text
from iolab.report.tables import plain_table
from iolab.report.xlsx_cells import SheetWriter, write_headers, write_table
from iolab.stats.collect_findings import all_findings, is_count_said
from iolab.stats.finding import Evidence, Finding, FindingKind, Format
from iolab.stats.findings import FINDINGS, kind_of
from iolab.stats.metrics.metric import (
    format_bytes_per_s,
    format_ns,
    format_ops_per_s,
    format_percent,
)
from iolab.stats.verdict import StudyVerdict, to_plain
from iolab.store.rows import StudyData
from iolab.wording import counted, sentence_case

LINES_MAX: Final = 12
"""Lines of a block in the terminal."""
BRIEF_LINES: Final = 2
"""Lines of a caveat in the short answer."""
ROWS_MAX: Final = 100
"""Rows of a block in page and Markdown; verdict.json has all."""
ROWS_FOLDED: Final = 24
FIRST_SCREEN_MAX: Final = 6
CAVEATS_BESIDE_ANSWER: Final = 2
CAVEAT_CHARS_MAX: Final = 57
MESSAGE_COLUMNS: Final = (2, 8)
"""Columns of the workbook that a message takes: the rest of its first page."""
MESSAGE_ROOM: Final = 90
NAME_ROOM: Final = 24
"""Columns of the terminal for what a line is about, if that is short enough."""
_BY_UNIT: Final[Mapping[str, Callable[[float], str]]] = {
    "ns": format_ns,
    "ns/byte": lambda ns: f"{format_ns(ns * units.kilobyte().size)} per {units.kilobyte().name}",
    "bytes/s": format_bytes_per_s,
    "ops/s": format_ops_per_s,
    "share": format_percent,
    "ratio": lambda ratio: f"{ratio:.3g}",
    "p": lambda p: f"{p:.2g}",
}


@frozen
class FindingBlock:
    """All findings of a kind that has a title."""

    kind: FindingKind
    findings: tuple[Finding, ...]
    closing: str

    def table(self, *, are_numbers: bool = False) -> Table:
        """Return a row per finding; as texts with units, or as numbers with units in headers."""
        names = list(dict.fromkeys(e.name for f in self.findings for e in f.evidence))
        found = [{e.name: e for e in f.evidence} for f in self.findings]
        kinds = {name: {row[name].unit for row in found if name in row} for name in names}
        plain = {name for name in names if are_numbers and len(kinds[name]) == 1}
        has_headings = any(f.heading for f in self.findings)
        rows = tuple(
            (
                f.about.label,
                *((f.heading,) if has_headings else ()),
                *(_value(row.get(name), is_number=name in plain) for name in names),
            )
            for f, row in zip(self.findings, found, strict=True)
        )
        heads = [_head(name, kinds[name]) if name in plain else name for name in names]
        return Table((self.kind.scope, *(("change",) if has_headings else ()), *heads), rows)


def listed(verdict: StudyVerdict, where: Format) -> list[Finding]:
    """Return the caveats that a format shows, the heaviest first."""
    shown = (
        f for f in verdict.caveats if kind_of(f.kind).is_listed and kind_of(f.kind).is_shown(where)
    )
    return sorted(shown, key=lambda f: kind_of(f.kind).rank)


def blocks(
    data: StudyData, verdict: StudyVerdict, where: Format, drawn: Collection[str] = ()
) -> list[FindingBlock]:
    """Return the blocks that a format shows, but for those that one of its charts prints."""
    every = all_findings(verdict)
    found = list[FindingBlock]()
    for kind in FINDINGS:
        mine = tuple(f for f in every if f.kind == kind.name)
        if kind.is_listed or not kind.is_shown(where) or not mine or set(kind.charts) & set(drawn):
            continue
        closing = "" if kind.closing is None else kind.closing(data, verdict)
        found.append(FindingBlock(kind, mine, closing))
    return found


def text_of(finding: Finding) -> str:
    """Return message and hint in the units shown now."""
    return shown_text(finding.kind, finding.sentences)


def terminal_list(verdict: StudyVerdict, width: int) -> list[str]:
    """Write the caveats, each once, with what to do."""
    return [
        fold_text(f"- {_name(f)}{_times(f)}: {text_of(f)}", width, "  ")
        for f in listed(verdict, "terminal")
    ]


@frozen
class BriefDoubt:
    """One doubt in the short answer."""

    name: str
    """Name, and how often it was seen."""
    text: str
    """Statement without its hint, on two lines at most."""
    is_heavy: bool
    """True if it questions the verdict itself, so that it is never only counted."""


def brief_doubts(verdict: StudyVerdict, width: int) -> list[BriefDoubt]:
    """Return every doubt, the heaviest first."""
    found = list[BriefDoubt]()
    for f in listed(verdict, "terminal"):
        if kind_of(f.kind).severity != "doubt":
            continue
        says = shown_text(f.kind, sentence_case(f.says))
        folded = fold_text(f"- {_name(f)}{_times(f)}: {says}", width, "  ").split("\n")
        if len(folded) > BRIEF_LINES:
            cut = folded[BRIEF_LINES - 1][: width - 4].rstrip(" ,;.:")
            folded = [*folded[: BRIEF_LINES - 1], f"{cut} ..."]
        times = f" ({f.count} times)" if f.count > 1 else ""
        is_heavy = kind_of(f.kind).is_heavy
        found.append(BriefDoubt(f"{_name(f)}{times}", "\n".join(folded), is_heavy))
    return found


def terminal_blocks(data: StudyData, verdict: StudyVerdict, width: int) -> list[str]:
    """Write the blocks: title and lines where a kind has them, then the closing sentence."""
    return [text for _, text in titled_blocks(data, verdict, width)]


def titled_blocks(data: StudyData, verdict: StudyVerdict, width: int) -> list[tuple[str, str]]:
    """Title and text of every block."""
    found = blocks(data, verdict, "terminal")
    return [(block.kind.title, _terminal_block(block, width)) for block in found]


def _terminal_block(block: FindingBlock, width: int) -> str:
    lines = list[str]()
    if block.kind.has_rows:
        shown = block.findings[:LINES_MAX]
        lines.append(fit_text(block.kind.title, width).rstrip())
        room = min(max(len(f.about.label) for f in shown), max(NAME_ROOM, width // 2))
        names = fitted([clean_text(f.about.label) for f in shown], room)
        heading = ""
        for f, name in zip(shown, names, strict=True):
            if f.heading != heading:
                heading = f.heading
                lines.append(fit_text(heading, width).rstrip())
            lines.append(fit_text(f"  {name:{room}} {f.brief}", width).rstrip())
        if len(block.findings) > len(shown):
            lines.append(f"  {len(block.findings) - len(shown)} more are in the report.")
    if block.closing:
        lines.append(fold_text(block.closing, width))
    return "\n".join(lines)


def markdown_list(verdict: StudyVerdict, escape: Callable[[str], str]) -> list[str]:
    """Write the caveats as items."""
    return [
        f"- **{escape(_name(f))}**{_times(f)}: {escape(text_of(f))}"
        for f in listed(verdict, "markdown")
    ]


def markdown_blocks(data: StudyData, verdict: StudyVerdict) -> list[tuple[str, Table, str]]:
    """Return title, table and closing sentence of every block."""
    return [
        (block.kind.title, _first_rows(block.table()), block.closing)
        for block in blocks(data, verdict, "markdown")
    ]


def page_list(verdict: StudyVerdict) -> Markup:
    """Draw the caveats as a list."""
    items = (
        tag("li", tag("b", _name(f)), f": {text_of(f)}", _times_markup(f))
        for f in listed(verdict, "page")
    )
    return tag("ul", *items) if verdict.caveats else tag("p", "None.")


def first_screen_list(verdict: StudyVerdict) -> Markup:
    """Draw the first doubts without their hints, and how many more there are."""
    shown = listed(verdict, "first screen")[:FIRST_SCREEN_MAX]
    items = [tag("li", shown_text(f.kind, sentence_case(f.says)), _times_markup(f)) for f in shown]
    rest = len(listed(verdict, "page")) - len(shown)
    if rest:
        items.append(tag("li", f"{rest} more, under 'Caveats'."))
    return tag("ul", *items) if items else tag("p", "No caveats.", class_="soft")


def caveat_line(verdict: StudyVerdict) -> str:
    """Say the first sentences of the first doubts, and count the other caveats."""
    begun = [
        sentence_case(shown_text(f.kind, f.says)).partition(". ")[0].rstrip(".")
        for f in listed(verdict, "first screen")[:CAVEATS_BESIDE_ANSWER]
    ]
    shown = [textwrap.shorten(text, CAVEAT_CHARS_MAX, placeholder=" …") for text in begun]
    rest = len(listed(verdict, "page")) - len(shown)
    more = f"{rest} more" if shown else counted(rest, "caveat")
    return "; ".join([*shown, f"{more} below"] if rest else shown)


def page_blocks(
    data: StudyData, verdict: StudyVerdict, charts: Sequence[DrawnChart]
) -> list[tuple[str, Markup]]:
    """Draw every block that no chart prints: title, and table with closing sentence."""
    found = list[tuple[str, Markup]]()
    for block in blocks(data, verdict, "page", _drawn(charts)):
        read = _first_rows(block.table())
        table = plain_table(read.columns, read.rows)
        if len(read.rows) > ROWS_FOLDED:
            table = tag("details", tag("summary", f"{len(block.findings)} rows"), table)
        closing = tag("p", block.closing, class_="soft") if block.closing else None
        found.append((block.kind.title, join(*(p for p in (table, closing) if p is not None))))
    return found


def write_findings(
    out: SheetWriter, row: int, data: StudyData, verdict: StudyVerdict, charts: Sequence[DrawnChart]
) -> int:
    """Write caveats and blocks into a sheet; return the first free row."""
    write_headers(out, row, ("caveat", "count", "message and what to do"))
    for row, f in enumerate(listed(verdict, "workbook"), start=row + 1):  # noqa: B020
        out.text(row, 0, _name(f), "paragraph")
        out.sheet.write_number(row, 1, f.count, out.formats["paragraph"])
        out.wrapped(row, MESSAGE_COLUMNS, text_of(f), "message", MESSAGE_ROOM)
    row += 2
    drawn = _drawn(charts)
    for block in blocks(data, verdict, "workbook"):
        out.text(row, 0, block.kind.title, "bold")
        read = block.table(are_numbers=True).for_reading()
        row = write_table(out, row + 1, read.columns, read.rows)
        if block.closing and not set(block.kind.charts) & drawn:  # Its caption says that.
            out.text(row, 0, block.closing, "soft")
        row += 2
    return row


def findings_document(verdict: StudyVerdict) -> list[dict[str, object]]:
    """Return all findings as plain data for verdict.json."""
    return [
        {
            "kind": f.kind,
            "severity": kind_of(f.kind).severity,
            "about": to_plain(f.about),
            "says": f.says,
            "hint": f.hint,
            "count": f.count,
            "strength": f.strength,
            "evidence": to_plain(f.evidence),
        }
        for f in all_findings(verdict)
        if kind_of(f.kind).is_shown("verdict.json")
    ]


def _drawn(charts: Sequence[DrawnChart]) -> set[str]:
    return {drawn.row.name for drawn in charts if drawn.built}


def _first_rows(table: Table) -> Table:
    return Table(table.columns, table.rows[:ROWS_MAX])


def _name(finding: Finding) -> str:
    return kind_of(finding.kind).name_shown


def _times(finding: Finding) -> str:
    is_said = finding.count < 2 or is_count_said(finding.says, finding.count)
    return "" if is_said else f" ({finding.count} times)"


def _times_markup(finding: Finding) -> Markup | None:
    return tag("span", _times(finding), class_="soft") if _times(finding) else None


def _value(evidence: Evidence | None, *, is_number: bool) -> Value:
    if evidence is None:
        return None
    text = _BY_UNIT.get(evidence.unit)
    if is_number or isinstance(evidence.value, str) or text is None:
        return evidence.value
    said = text(evidence.value)
    if evidence.low is None or evidence.high is None:
        return said
    return f"{said} [{text(evidence.low)}, {text(evidence.high)}]"


def _head(name: str, found: Collection[str]) -> str:
    unit = next(iter(found))
    return f"{name} ({unit})" if unit else name
