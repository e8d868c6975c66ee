"""Rules by which a simulated number is compared with a published one.

A rule sees the numbers of its row and of one other row, usually the same quantity under the level
that is compared with.
"""

from __future__ import annotations

import math
from typing import Final, Literal, Protocol, TypeAlias

from iolab.frozen import frozen

Word: TypeAlias = Literal["agrees", "fitted", "missed", "not simulated", "lost"]
"""Word for a published number.

agrees : the rule of its row holds.
fitted : a parameter was chosen so that it comes out; agreement proves nothing.
missed : it was simulated, and the rule does not hold.
not simulated : something that decides it has no model here.
lost : the text of the document does not have it, or not the number that it is compared with.
"""
WORDS: Final[tuple[Word, ...]] = ("agrees", "fitted", "missed", "not simulated", "lost")


@frozen
class TwoNumbers:
    """A published and a simulated number in the same unit."""

    published: float
    simulated: float


class Agreement(Protocol):
    """A comparison."""

    @property
    def told(self) -> str:
        """The rule in words."""
        ...

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether the simulated number agrees with the published one."""
        ...


@frozen
class Within:
    """The simulated number lies within a share of the published one."""

    share: float

    @property
    def told(self) -> str:
        """The rule in words."""
        return f"within {100 * self.share:g} %"

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether it does."""
        del other
        return abs(row.simulated - row.published) <= self.share * abs(row.published)


@frozen
class Between:
    """The simulated number differs from the published one by a share between two."""

    least: float
    most: float

    @property
    def told(self) -> str:
        """The rule in words."""
        return f"{100 * self.least:+g} % to {100 * self.most:+g} %"

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether it does."""
        del other
        return self.least <= row.simulated / row.published - 1 <= self.most


@frozen
class Like:
    """The simulated number is that of the other row, to within a share, as both were published."""

    share: float
    name: str

    @property
    def told(self) -> str:
        """The rule in words."""
        return f"simulated as {self.name}, within {100 * self.share:g} %"

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether it is."""
        return other is not None and abs(row.simulated / other.simulated - 1) <= self.share


@frozen
class Loss:
    """The loss against the other row has the published sign, and the published size to a factor."""

    factor: float
    name: str

    @property
    def told(self) -> str:
        """The rule in words."""
        if math.isinf(self.factor):
            return f"slower than {self.name}"
        return f"loss against {self.name} within a factor {self.factor:g}"

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether it has."""
        if other is None:
            return False
        lost = 1 - row.simulated / other.simulated
        told = 1 - row.published / other.published
        if lost * told <= 0:
            return False
        return 1 / self.factor <= lost / told <= self.factor


@frozen
class Trend:
    """The simulated number lies on the same side of the one before it as the published one."""

    @property
    def told(self) -> str:
        """The rule in words."""
        return "same direction from the size before"

    def holds(self, row: TwoNumbers, other: TwoNumbers | None) -> bool:
        """Tell whether it does; the first of a series has nothing before it."""
        if other is None:
            return True
        return (row.simulated > other.simulated) == (row.published > other.published)
