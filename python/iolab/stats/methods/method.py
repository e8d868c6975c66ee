"""What a row of `METHODS` holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Method:
    """One procedure: its module here, what it does in one clause, and where it comes from."""

    name: str
    does: str
    source: str
    used_for: Literal["verdict", "closer look", "planning"] = "verdict"
    """Decides words; stands beside them; or serves before (and between) studies."""
