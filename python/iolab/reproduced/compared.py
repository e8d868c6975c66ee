"""Numbers of a document with the word for each."""

from __future__ import annotations

from iolab.frozen import frozen
from iolab.reproduced.model import Document, Row
from iolab.reproduced.published import Published
from iolab.reproduced.rules import WORDS, Word


@frozen
class ComparedNumber:
    """A published number beside the simulated one."""

    row: Row
    published: Published
    simulated: float | None
    """In the published unit; None if it was not simulated."""
    word: Word
    part: float | None = None
    """Share of one operation in the sum whose mean the number is."""

    @property
    def difference(self) -> float | None:
        """Share by which the simulated number exceeds the published one."""
        told, found = self.published.value, self.simulated
        if found is None or not told:
            return None
        return found / told - 1

    @property
    def is_changed(self) -> bool:
        """Tell whether it became something else than what it is known to become."""
        return self.word != self.row.expected


@frozen
class Reproduced:
    """All numbers of a document."""

    document: Document
    outcomes: tuple[ComparedNumber, ...]

    @property
    def counts(self) -> dict[Word, int]:
        """Number of rows by word, without words that no row has."""
        found: dict[Word, int] = {
            word: sum(o.word == word for o in self.outcomes) for word in WORDS
        }
        return {word: count for word, count in found.items() if count}

    @property
    def summary(self) -> str:
        """The counts in words."""
        if not self.outcomes:
            return "no numbers"
        told = {"agrees": "agree"}
        return ", ".join(f"{n} {told.get(word, word)}" for word, n in self.counts.items())
