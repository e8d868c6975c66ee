"""Regular expressions that are compiled when they are first used.

A module may name all it knows; a command that uses one of them does not wait for the others.
"""

from __future__ import annotations

import re
from typing import cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)  # The next time nothing is looked up.
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` does; a wrong expression is told when it is first used."""
    return cast("re.Pattern[str]", _Pattern(text, flags))
