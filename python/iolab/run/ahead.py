"""Executing a plan whose trials are handed out ahead of their turn.

Records are stored one after the other in the order of the plan, by the process that conducts. Every
decision is the one of `Campaign`, made where it makes it: between rounds, on what is stored. How
far ahead trials are handed out is bounded by the next decision, so that none is simulated in vain;
one that is, is not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from iolab.run.campaign import Campaign, Outcome, Start, TrialRunner
from iolab.run.core import Core
from iolab.run.trial import trial_spec
from iolab.store.db import Store
from iolab.study.model import PILOT_ROUNDS
from iolab.study.plan import Plan, Trial

if TYPE_CHECKING:
    from iolab.protocol import TrialSpec


@runtime_checkable
class AheadRunner(TrialRunner, Protocol):
    """Runner of trials that takes the next ones beforehand."""

    def announce(self, specs: Iterator[TrialSpec]) -> None:
        """Take the trials that will be asked for next, in their order."""
        ...

    def begun(self) -> list[str]:
        """Trials that will have a record although the user asked to stop; others are taken back."""
        ...


class AheadCampaign(Campaign):
    """One start of a plan on a runner that works ahead."""

    def __init__(
        self, plan: Plan, store: Store, runner: AheadRunner, core: Core, start: Start
    ) -> None:
        super().__init__(plan, store, runner, core, start)
        self._ahead_runner = runner
        self._announced_to = 0
        self._made: dict[str, tuple[Trial, TrialSpec]] = {}

    def _run_round(self, pending: list[Trial]) -> Outcome | None:
        """Run trials until the round is done; announce those up to the next decision."""
        if pending[0].round > self._announced_to:
            first, self._announced_to = pending[0].round, self._last_certain(pending[0].round)
            self._ahead_runner.announce(self._upcoming(first, self._announced_to))
        early = super()._run_round(pending)
        if early is None or early.ending != "interrupted":
            return early
        self._keep_begun()
        return self._outcome("interrupted", early.message)

    def _spec(self, trial: Trial) -> TrialSpec:
        """The spec that was announced; a simulation makes everything anew for each trial."""
        made = self._made.pop(trial.trial_id, None)
        return super()._spec(trial) if made is None else made[1]

    def _upcoming(self, first: int, last: int) -> Iterator[TrialSpec]:
        for round_number in range(first, last + 1):
            for trial in self._plan.round_trials(round_number):
                if self._statuses.get(trial.trial_id) != "ok":
                    spec = trial_spec(trial, self._core, is_fresh_fs=True)
                    spec = self._start.attendant.spec(trial, spec)
                    self._made[trial.trial_id] = trial, spec
                    yield spec

    def _last_certain(self, round_number: int) -> int:
        """Last round that is run whatever the rounds before it say."""
        plan, study = self._plan, self._plan.study
        if study.budget_ns is not None:
            return round_number
        last = plan.rounds if plan.rounds is not None else round_number
        if plan.look_rounds:
            looks = [look for look in plan.look_rounds if look >= round_number]
            last = min([last, *looks[:1]])
        if study.width is not None:
            wanted = self._rounds_for_width or PILOT_ROUNDS
            certain = round_number + max(0, wanted - self._rounds_complete() - 1)
            last = min(plan.rounds or certain, certain)
        return last

    def _keep_begun(self) -> None:
        """Store the trials that workers had when the user asked to stop."""
        while begun := self._ahead_runner.begun():
            trial, _ = self._made[begun[0]]
            self._store.add_trials([trial])
            with self._start.attendant.around(trial):
                derived = self._run_trial(trial)
                if derived.record is not None:
                    self._start.attendant.stored(trial, derived.record)
