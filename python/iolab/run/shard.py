"""Shards: a simulated study divided among runs that know nothing of each other.

Shard ``i/n`` has every n-th trial of the plan, in its order. Seeds come from the plan, so a trial
is the same whichever run it is part of. A shard makes no decision of the study: it runs all rounds,
and `iolab merge` decides at the same rounds as a run of the whole would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError, StudyError
from iolab.frozen import frozen, replace
from iolab.pattern import pattern
from iolab.store.rows import Caveat
from iolab.study.plan import Plan, Trial
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.store.db import Store
    from iolab.study.model import Study
    from iolab.testbed.model import Testbed

SHARDS_MAX: Final = 10_000
_WORDS: Final = pattern(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)


@frozen
class Shard:
    """One part of a study."""

    number: int
    """From 1 on."""
    count: int

    @property
    def text(self) -> str:
        """Short form, as it is typed and stored."""
        return f"{self.number}/{self.count}"

    def has(self, trial: Trial) -> bool:
        """Tell whether a trial is part of it."""
        return trial.ordinal % self.count == self.number % self.count

    @property
    def caveat(self) -> Caveat:
        """Remark beside all that is shown of a shard alone."""
        return Caveat(
            "shard",
            f"this is shard {self.number} of {self.count}: it has every {self.count}th trial of "
            "the study",
            "`iolab merge DIR... --out DIR` makes the study of all its shards",
        )


def parse_shard(text: str) -> Shard:
    """The shard that ``i/n`` names.

    Raises
    ------
    IolabError : it names none.
    """
    found = _WORDS.fullmatch(text.strip())
    shard = Shard(*map(int, found.groups())) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.count <= SHARDS_MAX:
        raise IolabError(
            f"--shard {text}: this is no shard",
            f"as in --shard 1/4, the first of four (at most {SHARDS_MAX})",
        )
    return shard


@frozen
class ShardPlan(Plan):
    """The trials of a shard, in the order of the whole plan."""

    shard: Shard = Shard(1, 1)

    def round_trials(self, round_number: int) -> tuple[Trial, ...]:
        """Trials of one round that are in the shard."""
        return tuple(t for t in Plan.round_trials(self, round_number) if self.shard.has(t))

    def n_trials(self, rounds: int) -> int:
        """Number of trials of the shard in the first `rounds` rounds."""
        whole = rounds * len(self.treatments)
        return (whole - self.shard.number) // self.shard.count + 1

    def trials(self, rounds: int) -> Iterator[Trial]:
        """Trials of the shard in the first `rounds` rounds."""
        for round_number in range(1, rounds + 1):
            yield from self.round_trials(round_number)


def shard_plan(plan: Plan, shard: Shard) -> ShardPlan:
    """The part of a plan that a shard runs; looks and widths are for the whole to decide."""
    values = {field.name: getattr(plan, field.name) for field in fields(Plan)}
    values["study"] = replace(plan.study, looks=None, width=None)
    return ShardPlan(**values, shard=shard)


def check_shard(study: Study, shard: Shard, testbed: Testbed) -> None:
    """Refuse to divide a study whose trials depend on where and when they run.

    Raises
    ------
    StudyError : it cannot be divided; says why.
    """
    asked = f"--shard {shard.text}"
    refuse_real(testbed, asked)
    if study.seed is None:
        raise StudyError(
            f"{asked}: the study has no seed, so that each shard would be of another study",
            "give all shards the same --seed N, or write one into the study file",
        )
    if study.budget_ns is not None or study.rounds is None:
        raise StudyError(
            f"{asked}: the study ends by time, which no shard knows of the others",
            "give --rounds N and no --budget",
        )


def check_size(plan: Plan, shard: Shard) -> None:
    """Refuse more shards than there are trials.

    Raises
    ------
    StudyError : there are.
    """
    n_trials = plan.n_trials(plan.rounds or 0)
    if shard.count > n_trials:
        raise StudyError(
            f"--shard {shard.text}: the study has only {counted(n_trials, 'trial')}",
            f"divide it into at most {n_trials}",
        )


def refuse_real(testbed: Testbed, asked: str) -> None:
    """Refuse to run trials of a real testbed side by side.

    Raises
    ------
    StudyError : it is real.
    """
    if not testbed.is_simulated:
        raise StudyError(
            f"{asked}: {testbed.text} serves one trial at a time: a second one would be measured, "
            "too",
            "leave it out, or simulate, as in --on sim:PROFILE",
        )


def stored_shard(store: Store, asked: Shard | None) -> Shard | None:
    """The shard that a store continues, whether or not it was named again; None: all of a study.

    Raises
    ------
    StudyError : another one was asked for.
    """
    begun = store.shard_texts()
    if not begun:
        return asked
    known = parse_shard(begun[0]) if begun[0] else None
    if asked is not None and asked != known:
        what = f"shard {known.text}" if known is not None else "a whole study, not a shard"
        raise StudyError(
            f"--shard {asked.text}: {store.path.parent} holds {what}",
            "leave --shard out, or choose another --out",
        )
    return known
