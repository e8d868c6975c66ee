"""Row of `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from iolab.frozen import frozen

if TYPE_CHECKING:
    from iolab.stats.verdict import StudyVerdict


@frozen
class Method:
    """One procedure: its module here, what it does in one clause, and where it comes from."""

    name: str
    does: str
    source: str
    used_for: Literal["verdict", "closer look", "planning"] = "verdict"
    """Decides words; stands beside them; or serves before (and between) studies."""
    results: Callable[[StudyVerdict], object] | None = None
    """Part of a verdict that it made; None if every verdict rests on it."""

    def is_used(self, verdict: StudyVerdict) -> bool:
        """Tell whether something in a verdict rests on it."""
        return self.results is None or bool(self.results(verdict))
