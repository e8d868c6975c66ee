"""The complete part of a study as a table: cell x level x round on ln, with means and residuals."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import field

from iolab.frozen import frozen
from iolab.stats.ledger import AnyGroup, CellKey, Ledger
from iolab.stats.metrics import Metric
from iolab.stats.pairing import without_parts

Place = tuple[CellKey, str]


@frozen
class Balanced:
    """ln-values of every place in every complete round."""

    group: AnyGroup
    metric: Metric
    rounds: list[int]
    values: dict[Place, dict[int, float]]
    ordinals: dict[tuple[CellKey, str, int], int]
    derived: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])
    """Values that were derived and are asked for again."""

    def round_means(self) -> dict[int, float]:
        """Mean over all places, by round."""
        if "round_means" not in self.derived:
            self.derived["round_means"] = self.means(self.values)
        return self.derived["round_means"]

    def means(self, places: Collection[Place]) -> dict[int, float]:
        """Mean of some places, by round."""
        rows = [self.values[place] for place in places]
        return {r: math.fsum([row[r] for row in rows]) / len(rows) for r in self.rounds}

    def residuals(self) -> list[tuple[int, Place, float]]:
        """Ordinal, place and what neither place nor round explains, as ln."""
        by_round = self.round_means()
        grand = math.fsum(by_round.values()) / len(by_round)
        found: list[tuple[int, Place, float]] = []
        for place, values in self.values.items():
            mean = math.fsum(values.values()) / len(values)
            for r, value in values.items():
                left = value - mean - (by_round[r] - grand)
                found.append((self.ordinals[place[0], place[1], r], place, left))
        return sorted(found, key=lambda item: item[0])


def balanced(ledger: Ledger, group: AnyGroup) -> Balanced | None:
    """Take the cells that have every level and the rounds that have every cell; None without."""
    metric = ledger.primary_metric(group)
    if metric is None:
        return None
    cells = without_parts(ledger.cells_asked(metric, group))
    levels = {level for by_level in cells.values() for level in by_level}
    full = {key: by_level for key, by_level in cells.items() if by_level.keys() == levels}
    samples = {(key, level): s for key, by_level in full.items() for level, s in by_level.items()}
    if not samples:
        return None
    rounds = sorted(set.intersection(*(set(s.by_round) for s in samples.values())))
    if not rounds:
        return None
    values = {
        place: {
            r: math.fsum(math.log(m.value) for m in s.by_round[r]) / len(s.by_round[r])
            for r in rounds
        }
        for place, s in samples.items()
    }
    ordinals = {
        (key, level, r): s.by_round[r][0].ordinal
        for (key, level), s in samples.items()
        for r in rounds
    }
    return Balanced(group, metric, rounds, values, ordinals)
