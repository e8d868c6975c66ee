"""At which level a study is judged that is looked at more than once.

A study with planned looks (`looks` in its file) may end at each of them. Its intervals have the
O'Brien-Fleming level of the look that its complete rounds have reached, so that all looks together
err as often as one. Between two looks the level of the earlier one holds, before the first look
that of the first: both are stricter than what the next look will grant.

A study that can be resumed may be looked at again, because it was undecided: going on until it is
decided would err in one of ten studies. The store knows at how many rounds it was seen. What alpha
there is, is spent: `FIRST_SHARE` of it at the first look, half of the rest at the second, and so
on, so that all looks there may ever be err in 5 % of studies together. Intervals are not touched:
each holds its ratio in 95 % of studies; only words are.

Source: Lan and DeMets (1983), Biometrika 70(3), with a spending of our own; the sum of the levels
is alpha, so that no distribution is needed (Bonferroni).
"""

from __future__ import annotations

import tomllib
from typing import Final

from iolab.frozen import frozen
from iolab.stats.methods.group_sequential import LOOKS_MAX, nominal_levels
from iolab.store.rows import StudyData
from iolab.study.plan import look_rounds

ALPHA: Final = 0.05
FIRST_SHARE: Final = 0.8
"""Of alpha, for the first look; most studies have no other."""


@frozen
class Look:
    """Position of a study among its looks."""

    number: int
    """1-based; 1 also before the first."""
    planned: int
    level: float
    """Two-sided level that words are judged at."""
    shown_level: float
    """Two-sided level of the intervals that are shown: .05 without planned looks."""
    resumed: int = 0
    """Times that the study had been seen before, and was continued."""
    next_share: float = 1.0
    """Share of `level` that a further look would have."""


def spent_share(seen: int) -> float:
    """Return the share of alpha that a look has after `seen` earlier ones."""
    return FIRST_SHARE if seen == 0 else (1 - FIRST_SHARE) * 0.5**seen


def look_of(data: StudyData, rounds_complete: int) -> Look:
    """Find the look that a study has reached."""
    study = data.study
    if study.kind == "imported":
        return Look(1, 1, ALPHA, ALPHA)
    try:
        table = tomllib.loads(study.spec_toml)
    except tomllib.TOMLDecodeError:
        table = {}
    looks, rounds = table.get("looks"), table.get("rounds")
    places: tuple[int, ...] = ()
    if isinstance(looks, int) and isinstance(rounds, int) and 1 <= looks <= LOOKS_MAX:
        places = look_rounds(rounds, looks)
    planned = {*places, rounds} if places else set[int]()
    seen = sum(n < rounds_complete and n not in planned for n in data.looks)
    share, following = spent_share(seen), spent_share(seen + 1)
    if not places:
        return Look(1, 1, ALPHA * share, ALPHA, seen, following / share)
    number = max(1, sum(place <= rounds_complete for place in places))
    level = nominal_levels(len(places), "obrien_fleming")[number - 1]
    return Look(number, len(places), level * share, level, seen, following / share)
