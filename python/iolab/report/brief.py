"""The short answer for a terminal: at most 25 lines, the answer first.

Sentence, the comparisons that carry it, the next step, what was measured and what was not, the
first doubts. What is left out is counted above the last line, which has the command that prints it
(`iolab.report.terminal`) and the one that writes every value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iolab.report.answer import answer
from iolab.report.conditions import conditions
from iolab.report.findings import BriefDoubt, brief_doubts, listed, titled_blocks
from iolab.report.folding import FIXED_SPACES, fold_text
from iolab.report.terminal import (
    UNICODE,
    WIDTH_MIN,
    PooledTable,
    alone,
    pooled_tables,
    render,
    scope_text,
    streams,
    trials_text,
    untested_text,
    why_lines,
    with_limit,
)
from iolab.stats.verdict import StudyVerdict
from iolab.store.continuing import PLACE
from iolab.store.rows import StudyData
from iolab.wording import counted

LINES_MAX: Final = 25
LINES_OF_FILES: Final = 2
"""A blank line and the names of the files, which whoever prints adds."""
_SENTENCE_MAX: Final = 9
_SENTENCE_MIN: Final = 5
"""Lines of the sentence: as many as leave room for the comparisons that it speaks of."""
_GOES_ON: Final = "[the rest of this answer: --full]"
"""Stands where the sentence was cut."""
_STREAMS: Final = "streams"
_VALUES: Final = "values"
_EARLY: Final = (_STREAMS, _VALUES)
"""Blocks before the comparisons by other metrics."""
_CALIBRATE: Final = "iolab aa"
"""Begins a step that every study has until it is done once."""
NAMED_LINES_MAX: Final = 3
"""Lines that the names of caveats take at most, where they question the verdict."""
_ROWS_MIN: Final = 2
"""A table of fewer rows than it has, and fewer than these, is left out."""
_NAMES_MAX: Final = 4


def render_brief(
    data: StudyData,
    verdict: StudyVerdict,
    place: str = PLACE,
    again: str = f"iolab report {PLACE} --full",
    *,
    width: int = 80,
) -> str:
    """Return the answer as at most 23 lines, so that 25 are printed with the files.

    Parameters
    ----------
    data, verdict : one judged study.
    place : the directory of the study as a shell takes it, for the command of the next step.
    again : the command that prints all.
    width : columns, at least 60.
    """
    width = max(WIDTH_MIN, width)
    room = LINES_MAX - LINES_OF_FILES
    whole = render(data, verdict, width=width)
    values = f"iolab export {place} --csv"
    if whole.count("\n") <= room:
        return whole
    below = [*why_lines(data, verdict, width), *_next(data, verdict, place, width)]
    rest = _Rest(data, verdict, below, (again, values), width)
    most = _SENTENCE_MAX
    while True:
        sentence = with_limit(data, verdict, _sentence(verdict.sentence, width, most), width)
        blocks, tail, is_answered = rest.arranged(room - _height(sentence) - 1)
        if is_answered or most == _SENTENCE_MIN:
            break
        most -= 1
    return FIXED_SPACES.sub(" ", "\n\n".join([sentence, *blocks, tail])) + "\n"


class _Rest:
    """Everything below the sentence, arranged in the lines that are left."""

    def __init__(
        self,
        data: StudyData,
        verdict: StudyVerdict,
        next_step: list[str],
        commands: tuple[str, str],
        width: int,
    ) -> None:
        self._next, self._width = next_step, width
        self._commands = _commands(*commands, width)
        self._trials = [
            fold_text(text, width, "  ")
            for text in (scope_text(data, 1), trials_text(data, verdict), untested_text(data))
            if text
        ]
        self._doubts = brief_doubts(verdict, width)
        self._notes = len(listed(verdict, "terminal")) - len(self._doubts)
        self._cells = sum(c.effect.ratio is not None for c in verdict.cells)
        self._tables, self._blocks = list[PooledTable](), [(_VALUES, alone(verdict, width))]
        if data.study.is_comparison:
            self._tables = pooled_tables(data, verdict, width, UNICODE)
            self._blocks = [(_STREAMS, streams(verdict, width))]
        self._blocks += titled_blocks(data, verdict, width)

    def arranged(self, room: int) -> tuple[list[str], str, bool]:
        """Blocks, last block, and whether every comparison that carries the verdict is there."""
        room -= _height(*self._next, *self._trials, self._commands) + 1  # What is left out.
        room -= _height(*self._named([], self._doubts))
        first = [table for table in self._tables if table.is_primary]
        shown, left_out, room = _tables(first, room)
        is_answered = not left_out
        doubts = [doubt for doubt in self._doubts[:1] if _height(doubt.text) <= room]
        room -= _height(*(doubt.text for doubt in doubts))
        blocks = [_small(name, text) for name, text in self._blocks if text]
        early, gone, room = _whole_blocks([b for b in blocks if b[0] in _EARLY], room, _VALUES)
        second = [table for table in self._tables if not table.is_primary]
        tables, without, room = _tables(second, room)
        late, not_there, room = _whole_blocks([b for b in blocks if b[0] not in _EARLY], room)
        for doubt in self._doubts[len(doubts) :]:
            if _height(doubt.text) > room:
                break
            doubts.append(doubt)
            room -= _height(doubt.text)
        left_out += [*gone, *without]
        left_out += [counted(self._cells, "single cell")] if self._cells > 1 else []
        left_out += [*not_there, *([counted(self._notes, "note")] if self._notes else [])]
        tail = [*self._next, *self._trials, *(doubt.text for doubt in doubts)]
        tail += self._named(doubts, self._doubts[len(doubts) :])
        tail += [*_left_out(left_out, self._width), self._commands]
        return [*shown, *early, *tables, *late], "\n".join(tail), is_answered

    def _named(self, told: list[BriefDoubt], rest: list[BriefDoubt]) -> list[str]:
        """Line with the names of the doubts below those that are told, if there are any."""
        begin = "- also: " if told else "Caveats: "
        names, least = [doubt.name for doubt in rest], sum(doubt.is_heavy for doubt in rest)
        return [_names_text(begin, names, least, self._width)] if rest else []


def _height(*texts: str) -> int:
    return sum(text.count("\n") + 1 for text in texts)


def _sentence(text: str, width: int, most: int) -> str:
    """Fold the verdict's sentence; of a very long one the beginning."""
    folded = fold_text(text, width)
    for end in (r"(?<=[.]) ", r"(?<=[;,]) "):
        parts = re.split(end, text)
        while _height(folded) > most and len(parts) > 1:
            parts.pop()
            folded = fold_text(f"{' '.join(parts).rstrip(';,')} {_GOES_ON}", width)
    return folded


def _next(data: StudyData, verdict: StudyVerdict, place: str, width: int) -> list[str]:
    """Write the first of the next steps."""
    rows = conditions(data, verdict) if data.study.is_comparison else []
    steps = answer(data, verdict, rows).steps
    if not steps:
        return []
    said, typed = next((s for s in steps if not s[1].startswith(_CALIBRATE)), steps[0])
    typed = typed.replace(f"iolab run {PLACE} ", f"iolab run {place} ")
    line = f"Next: {said} `{typed}`"
    if not typed or len(line) <= width:
        return [fold_text(line if typed else f"Next: {said}", width, "  ")]
    return [fold_text(f"Next: {said}", width, "  "), fold_text(f"  {typed}", width, "      ")]


def _tables(tables: Sequence[PooledTable], room: int) -> tuple[list[str], list[str], int]:
    shown, left_out = list[str](), list[str]()
    for table in tables:
        rows = min(len(table.members), table.most, room - 2)
        if rows < len(table.members):
            rows = min(rows, room - 3)
        if rows < min(len(table.members), _ROWS_MIN):
            left_out.append(table.label)
            continue
        lines = table.lines(rows)
        shown.append("\n".join(lines))
        room -= len(lines) + 1
    return shown, list(dict.fromkeys(left_out)), room


def _whole_blocks(
    blocks: Sequence[tuple[str, str]], room: int, cut: str = ""
) -> tuple[list[str], list[str], int]:
    """Blocks that fit, names of the others, lines that are left; `cut` need not be whole."""
    shown, left_out = list[str](), list[str]()
    for name, text in blocks:
        n_more = _height(text) + 1 - room
        if name == cut and 0 < n_more < _height(text) - _ROWS_MIN:
            text, n_gone = _first_lines(text, n_more)
            left_out.append(counted(n_gone, "value"))
        if _height(text) + 1 > room:
            left_out.append(name)
            continue
        shown.append(text)
        room -= _height(text) + 1
    return shown, left_out, room


def _first_lines(text: str, n_cut: int) -> tuple[str, int]:
    """Cut lines off a block of rows; the block, with its number of rows right, and rows gone."""
    lines = text.split("\n")
    rows = [len(re.findall(r"(?m)^  \S", "\n".join(part))) for part in (lines, lines[:-n_cut])]
    found = re.search(r"The first \d+ of (\d+) rows:", text)
    total = int(found[1]) if found else rows[0]
    kept = "\n".join(lines[:-n_cut])
    if found:
        kept = kept.replace(found[0], f"The first {rows[1]} of {total} rows:")
    return kept, total - rows[1]


def _small(title: str, text: str) -> tuple[str, str]:
    """Name of a block inside a sentence: its title up to a formula, an interval, an explanation."""
    name = re.split(r" [=\[(:]", title)[0]
    return name[:1].lower() + name[1:], text


def _names_text(begin: str, names: Sequence[str], least: int, width: int) -> str:
    """Write as many names as a line holds, or on a few lines the first `least`."""
    texts = [fold_text(_some(begin, names, n), width, "  ") for n in range(len(names), 0, -1)]
    lines = [(_height(text), n) for text, n in zip(texts, range(len(names), 0, -1), strict=True)]
    fits = (n for height, n in lines if height <= (1 if n > least else NAMED_LINES_MAX))
    n = next(fits, 0)
    return texts[len(names) - n] if n else f"{begin}{counted(len(names), 'caveat')}"


def _some(begin: str, names: Sequence[str], n: int) -> str:
    """Write the first `n` names, and count the others."""
    more = f" and {len(names) - n} more" if n < len(names) else ""
    return f"{begin}{', '.join(names[:n])}{more}"


def _left_out(left_out: Sequence[str], width: int) -> list[str]:
    names = list(left_out)
    if len(names) > _NAMES_MAX:
        names = [*names[: _NAMES_MAX - 1], f"{len(names) - _NAMES_MAX + 1} other parts"]
    return [fold_text(f"Not shown here: {', '.join(names)}.", width, "  ")] if names else []


def _commands(again: str, values: str, width: int) -> str:
    """Commands that print the rest and every value, on one line if it holds them."""
    line = f"All of it: {again}; values: {values}"
    return line if len(line) <= width else f"All of it: {again}\nValues: {values}"
