"""What a row of `METHODS` holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """One procedure: its module here, what it does in one clause, and where it comes from."""

    name: str
    does: str
    source: str
