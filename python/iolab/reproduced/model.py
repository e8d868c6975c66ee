"""Documents, their rows, and what a simulation of them needs to be told."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from iolab.frozen import frozen
from iolab.reproduced.published import Place
from iolab.reproduced.rules import Agreement, Word

STACKS: Final = "python/iolab/reproduced/stacks"
"""Folder of the stack files in a clone."""
Figure: TypeAlias = Literal["throughput", "mean_throughput", "operations", "iostat", "elapsed"]
"""Figure that is taken from a simulated trial.

throughput : KiB/s of an operation.
mean_throughput : mean of the throughputs of all operations, KiB/s.
operations : operations of a phase per second, 1/s.
iostat : column of Solaris' ``iostat -x``, mean over the intervals that the file fills.
elapsed : duration of an operation, s.
"""


@frozen
class RepeatedTrial:
    """A trial to be simulated: the document's command on a simulated machine."""

    stack: str
    """Name of a profile, or of a stack file of this package (``*.toml``)."""
    workload: str
    """A command line of a dialect."""
    scheduler: str | None = None
    """Level of the scheduler, if the stack does not name it."""

    @property
    def told(self) -> str:
        """The command that does the same by hand, in a clone."""
        level = f" --scheduler {self.scheduler}" if self.scheduler else ""
        dialect, _, words = self.workload.partition(" ")
        place = f"{STACKS}/{self.stack}" if self.stack.endswith(".toml") else self.stack
        return f"iolab {dialect} --on sim:{place}{level} {words}"


@frozen
class Row:
    """A published number and how the simulated one is had and compared."""

    name: str
    place: Place
    expected: Word
    """Word that it is known to get: another one is a change that somebody has to look at."""
    setup: RepeatedTrial | None = None
    """None if something that decides it has no model."""
    figure: Figure = "throughput"
    of: str = ""
    """Operation, or column of iostat."""
    rule: Agreement | None = None
    other: int | None = None
    """Position of the row that the rule compares with, in the same document."""
    why: str = ""
    """Mechanism that makes the number, or the one that is missing."""


@frozen
class Document:
    """A published document."""

    key: str
    """``d1`` to ``d5``."""
    title: str
    told: str
    """Measurements and machine, as far as the document tells."""
    rows: tuple[Row, ...]
    provenance: tuple[str, ...]
    """Sources of the parameters of the simulated machine."""
    finding: str
    """Conclusion that its numbers allow, with reasons."""
