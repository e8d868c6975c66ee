"""Pass or fail: is the new version shown to be no worse than the baseline by more than the margin?

A cell passes if the lower end of its 90 % interval lies above 1 / (1 + margin): then it is, with
95 % confidence, not worse by more than the margin. It is a regression if the verdict rule calls it
`worse` and Benjamini-Hochberg over all cells agrees. Everything else is undecided, and whatever
rests on fewer than three rounds. All cells must pass, which needs no adjustment (an intersection of
tests: Berger 1982, Technometrics 24(4)).

Two sessions differ even if nothing changed (layout, temperature, neighbours), by 3 to 10 % on usual
machines; rounds inside them do not show it. From one session a side no regression can be told from
that: such a comparison is not gated, unless both versions were interleaved in one session.
"""

from __future__ import annotations

from typing import Final, Literal

from iolab.frozen import frozen
from iolab.stats.diff import SESSIONS_MIN, CellChange, StudyDiff
from iolab.stats.methods.verdict_rule import ROUNDS_MIN

Outcome = Literal["pass", "undecided", "regression"]
EXIT_CODES: Final[dict[Outcome, int]] = {"pass": 0, "undecided": 4, "regression": 5}
"""Codes of rule R12."""


@frozen
class GateResult:
    """The outcome of every cell and of all together."""

    cells: list[tuple[CellChange, Outcome]]
    missing: list[str]
    """Cells of the baseline that the new study does not have: nobody knows whether they are
    worse."""
    obstacle: str = ""
    """Reason why nothing can be gated; every cell is undecided then."""

    def count(self, outcome: Outcome) -> int:
        """Number of cells with this outcome."""
        return sum(found == outcome for _, found in self.cells)

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome; no cell at all decides nothing."""
        if self.count("regression"):
            return "regression"
        is_open = self.obstacle or self.count("undecided") or self.missing or not self.cells
        return "undecided" if is_open else "pass"

    @property
    def exit_code(self) -> int:
        """The code of rule R12."""
        return EXIT_CODES[self.outcome]


def gate(diff: StudyDiff) -> GateResult:
    """Decide every cell of a comparison of studies."""
    obstacle = "" if diff.has_session_variance else _obstacle(diff)
    cells: list[tuple[CellChange, Outcome]] = [
        (cell, "undecided" if obstacle else _outcome(cell, diff.margin)) for cell in diff.cells
    ]
    return GateResult(cells, list(diff.only_before), obstacle)


def _obstacle(diff: StudyDiff) -> str:
    fewest = min(diff.sessions_before, diff.sessions_after)
    return (
        f"{fewest} session{'s' if fewest > 1 else ''} a side cannot tell a change from what differs"
        f" between two sessions anyway; give at least {SESSIONS_MIN} a side (--also-baseline,"
        " --also-new), or measure both versions interleaved in one study and gate that"
    )


def _outcome(cell: CellChange, margin: float) -> Outcome:
    if cell.effect.word == "worse":
        return "regression"
    if min(cell.runs_before, cell.runs_after) < ROUNDS_MIN:
        return "undecided"
    if cell.sure_above is not None and cell.sure_above > 1 / (1 + margin):
        return "pass"
    return "undecided"
