"""Attendants of the trials of a run: adds to their specs, hears of their progress, looks on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.run.stop import StopSwitch
from iolab.store.db import Store
from iolab.study.plan import Trial
from iolab.testbed.runner import Runner

if TYPE_CHECKING:
    from iolab.protocol import Progress, Record, TrialSpec


class Attendant:
    """Does nothing; others override what they need."""

    def written_files(self) -> list[Path]:
        """Files of the user's own that may be replaced, if the user named them."""
        return []

    def begin(self, store: Store, runner: Runner, stop: StopSwitch) -> None:
        """Take part from here on: the testbed is open, no trial of this start has run."""

    def before_round(self, round_number: int) -> None:
        """Look on before a round begins; or, of slices, a session that begins with it."""

    def around(self, trial: Trial) -> AbstractContextManager[None]:
        """Context that holds from before a trial's spec is made until its record is stored."""
        del trial
        return nullcontext()

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec of a trial with what is to be added."""
        del trial
        return spec

    def heard(self, trial: Trial, params: Progress) -> None:
        """Take progress of a trial."""

    def measured(self, trial: Trial, record: Record) -> None:
        """Take a record before it is stored, and take out of it what is not to be stored."""

    def stored(self, trial: Trial, record: Record) -> None:
        """Take a record that is stored.

        Raises
        ------
        IolabError : the run must not go on.
        """

    def ended(self, store: Store) -> None:
        """Look on after the last trial of this start, while what is stored can be asked."""


class Attendants(Attendant):
    """Several, asked in order."""

    def __init__(self, attendants: Sequence[Attendant] = ()) -> None:
        self._all = tuple(attendants)

    def written_files(self) -> list[Path]:
        """Files of all."""
        return [path for one in self._all for path in one.written_files()]

    def begin(self, store: Store, runner: Runner, stop: StopSwitch) -> None:
        """Let all take part."""
        for one in self._all:
            one.begin(store, runner, stop)

    def before_round(self, round_number: int) -> None:
        """Let all look on."""
        for one in self._all:
            one.before_round(round_number)

    @contextmanager
    def around(self, trial: Trial) -> Generator[None, None, None]:
        """Context of all attendants around a trial."""
        with ExitStack() as stack:
            for one in self._all:
                stack.enter_context(one.around(trial))
            yield

    def spec(self, trial: Trial, spec: TrialSpec) -> TrialSpec:
        """The spec with what all add."""
        for one in self._all:
            spec = one.spec(trial, spec)
        return spec

    def heard(self, trial: Trial, params: Progress) -> None:
        """Tell all."""
        for one in self._all:
            one.heard(trial, params)

    def measured(self, trial: Trial, record: Record) -> None:
        """Show all a record that will be stored."""
        for one in self._all:
            one.measured(trial, record)

    def stored(self, trial: Trial, record: Record) -> None:
        """Show all a record that is stored."""
        for one in self._all:
            one.stored(trial, record)

    def ended(self, store: Store) -> None:
        """Let all look on."""
        for one in self._all:
            one.ended(store)
