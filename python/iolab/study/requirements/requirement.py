"""Definition of a published requirement on storage: a source, a job and criteria.

A requirement is data. Its limits are those of the document that it cites; where nobody published a
limit, there is none, and only figures are told. Left out: requirements whose document says no
operation, such as a number of operations per second without their size, depth and durability.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from iolab.frozen import frozen

Quantity: TypeAlias = Literal[
    "flush_ns_p99", "flushes_per_s", "reads_per_s", "writes_per_s", "write_bytes_per_s"
]
"""Measured quantity of a phase: of its flushes, of its operations, or of its bytes."""

LOWER_IS_BETTER: Final[tuple[Quantity, ...]] = ("flush_ns_p99",)
"""Quantities with an upper limit; those of the others are lower limits."""
RUNTIME: Final = "{runtime}"
"""Mark in a job where the time of each of its timed phases stands."""


@frozen
class Source:
    """A public document, and what iolab takes from it."""

    url: str
    says: str
    """Content in our words."""
    noted_on: str
    """Day on which it was noted here; documents change, and what was noted may have been a copy."""


@frozen
class Criterion:
    """One quantity of one phase, with its limit."""

    operation: str
    """Phase of the job."""
    quantity: Quantity
    what: str
    """Operation in words, as in ``fdatasync after each append of 2300 bytes``."""
    limit: float | None
    """Unit of the quantity (ns, 1/s or bytes/s); None: nobody published one."""

    @property
    def is_upper(self) -> bool:
        """Tell whether values must lie below the limit."""
        return self.quantity in LOWER_IS_BETTER


@frozen
class Requirement:
    """Requirement of a program on the storage below its files."""

    name: str
    """Word of ``--for``."""
    about: str
    """Program, and the files that are meant; a noun phrase."""
    job: str
    """Command line of fio, with `RUNTIME` in it."""
    timed_phases: int
    """Phases of the job that take the time of `RUNTIME`."""
    criteria: tuple[Criterion, ...]
    sources: tuple[Source, ...]
    """Documents, that of the limit first."""
    differs: str
    """Difference between the published procedure and the job; a clause."""

    @property
    def has_limit(self) -> bool:
        """Tell whether somebody published a limit."""
        return any(criterion.limit is not None for criterion in self.criteria)
