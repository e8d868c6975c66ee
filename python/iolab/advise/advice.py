"""Form of an answer: lines to type, each with its reason and its manual; and what cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from iolab.advise.request import RandomRequest, StripeRequest
from iolab.frozen import frozen

ETC_SYSTEM: Final = "/etc/system (counts from the next boot)"
NEW: Final = "new file system"
EXISTING: Final = "existing file system"
MOUNT: Final = "mount"
DEVICE: Final = "device (at each boot)"
LOG: Final = "log on a device of its own"

BLOCK_SIZE: Final = "1. block size = I/O size"
ALIGNMENT: Final = "2. alignment"
READ_AHEAD: Final = "3. read-ahead off"
DIRECT: Final = "4. direct I/O, and the log on its own device"
RULES: Final = (BLOCK_SIZE, ALIGNMENT, READ_AHEAD, DIRECT)
"""The four rules for I/O at random places."""


@frozen
class Step:
    """One line to type, or to write into a file."""

    where: str
    """File or occasion, or the rule it follows."""
    line: str
    """Exact text; words in capitals are the reader's own names."""
    reason: str
    """One sentence."""
    source: str
    """Manual page or source code."""


@frozen
class Note:
    """Remark: what a file system cannot do, or what a number means here."""

    text: str
    """One or two sentences."""
    source: str = ""
    """Manual or source code; empty if it follows from the numbers."""


@frozen
class TuningAdvice:
    """All lines and notes about one file system."""

    steps: tuple[Step, ...]
    notes: tuple[Note, ...] = ()


@frozen
class Proof:
    """Comparison in simulation of one line of the advice with its default."""

    name: str
    """Word in the names of results."""
    about: str
    """Question that it answers."""
    factor: str
    """Factor of a study."""
    default: str
    advised: str
    tests: tuple[str, ...]
    """IOzone's tests."""
    settings: Mapping[str, str]
    """Factors that are held."""


StripeRule: TypeAlias = Callable[[StripeRequest], TuningAdvice]
RandomRule: TypeAlias = Callable[[RandomRequest], TuningAdvice]


@frozen
class TunedFileSystem:
    """Row of a file system: its rules, and how the simulator can try them."""

    name: str
    """Word of ``--fs``."""
    title: str
    stripe: StripeRule
    random: RandomRule
    stripe_proofs: Callable[[StripeRequest], tuple[Proof, ...]] | None = None
    """Comparisons on a striped volume; None: there is none yet."""
    random_proofs: Callable[[RandomRequest], tuple[Proof, ...]] | None = None
    """Comparisons on one disk; None: there is none yet."""
    transfer_bytes: Callable[[int], int] | None = None
    """Longest transfer of the system as advised, bytes, for a cluster of so many; None: whatever
    the system has."""
    has_own_volumes: bool = False
    """Volumes are part of the file system, which has no stripe unit then."""
