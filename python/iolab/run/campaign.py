"""Executing a plan, trial by trial, so that it can be killed at any moment and continued.

The order is strictly that of the plan. A trial counts as finished once its record is committed;
what was running when the program died leaves no record and is run again. A failed trial is
recorded and the study goes on, unless the same failure comes three times in a row. Time budgets
admit whole rounds only: a round that would not fit, judged by the times observed, is not begun.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from iolab import units
from iolab.errors import StudyError
from iolab.frozen import frozen, replace
from iolab.run.attendant import Attendant
from iolab.run.contention import grants_of
from iolab.run.core import Core
from iolab.run.options import FAILURES_MAX
from iolab.run.pace import Pace
from iolab.run.progress import Progress, rounds_complete
from iolab.run.record import derive, failed_record
from iolab.run.trial import trial_spec
from iolab.store.continuing import enough_budget
from iolab.store.db import Store
from iolab.store.derived import DerivedRecord
from iolab.store.equal_levels import find_equal_levels
from iolab.study.checks import ROUNDS_FEW, few_rounds
from iolab.study.factors import find_factor, is_factor
from iolab.study.model import PILOT_ROUNDS, Levels
from iolab.study.plan import Plan, Trial
from iolab.testbed.agent import AgentError

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.protocol import Record, TrialSpec
    from iolab.run.wear import WriteBudget
    from iolab.store.rows import TrialStatus
    from iolab.study.treatment import Treatment

VERIFY_FAILED: Final = "verify_failed"
"""Code of the caveats that say which block came back wrong."""

Ending: TypeAlias = Literal["complete", "decided", "budget", "writes", "interrupted", "failing"]


@frozen
class Outcome:
    """End of a campaign."""

    ending: Ending
    n_ok: int
    n_failed: int
    rounds_complete: int
    message: str = ""
    """Reason why it ended early; empty if it is complete."""
    mismatches: tuple[str, ...] = ()
    """Data that storage gave back and that were not those written, as ``trial: where and what``."""
    hint: str = ""
    """Advice after an early end, if more is known than the message says."""
    is_idle: bool = False
    """True if this start has run no trial."""


class TrialRunner(Protocol):
    """Runs one trial; the agent, or a stand-in."""

    def run_trial(
        self, spec: TrialSpec, on_progress: Callable[[protocol.Progress], None] | None
    ) -> Record:
        """Record of the trial."""
        ...


class Presses(Protocol):
    """Count of the user's requests to stop."""

    @property
    def presses(self) -> int:
        """Number of presses."""
        ...


@frozen
class Start:
    """Circumstances of one start of a campaign."""

    session_id: int
    stop: Presses
    report: Callable[[Progress], None]
    clock: Callable[[], int] = time.monotonic_ns
    spent_ns: int = 0
    """Budget that this start has used already."""
    is_decided: Callable[[], bool] = lambda: False
    """Asked at the planned looks, between rounds, whether the stored rounds decide everything."""
    rounds_for_width: Callable[[], int | None] = lambda: None
    """Asked after the pilot of a study with a wanted width: complete rounds that give it."""
    writes: WriteBudget | None = None
    """Budget of writes to a whole device (rule R11)."""
    attendant: Attendant = Attendant()
    """Accompanies the trials."""
    failures_max: int | None = FAILURES_MAX
    """Equal failures in a row that end the campaign; None is no such end."""


class _Rest:
    """Trials that are left of so many rounds."""

    def __init__(self, rounds: int, names: dict[str, str], counts: Counter[str]) -> None:
        self.rounds = rounds
        self.names = names
        """Names of their treatments, by trial."""
        self.counts = counts
        """Number of them, by name of the treatment."""


class Campaign:
    """One start of a plan: fresh, or the continuation of an earlier one."""

    def __init__(
        self, plan: Plan, store: Store, runner: TrialRunner, core: Core, start: Start
    ) -> None:
        self._plan = plan
        self._store = store
        self._runner = runner
        self._core = core
        self._start = start
        self._clock = start.clock
        self._spent_before_ns = store.elapsed_ns() + start.spent_ns
        self._started_ns = start.clock()
        self._pace = Pace()
        self._statuses = dict(store.finished_trials())
        self._rest: _Rest | None = None
        self._mounted_plot: Levels | None = None
        self._recent_failures = list[str]()
        self._is_few_rounds_told = False
        self._mismatches = list[str]()
        self._is_idle = True
        self._rounds_for_width: int | None = None

    def run(self) -> Outcome:
        """Execute whatever the plan still lacks.

        Raises
        ------
        StudyError : two levels turned out to be the same setting.
        TestbedError : the agent is gone or refused; finished trials are stored.
        StoppedError : the user asked twice.
        StoreError : a record could not be stored.
        """
        self._learn_from_store()
        if self._rounds_complete():
            self._refuse_equal_levels()
        is_open = bool(self._plan.look_rounds) or self._plan.study.width is not None
        is_fixed = self._plan.study.budget_ns is None and not is_open
        if self._plan.rounds is not None and is_fixed:
            self._store.add_trials(self._plan.trials(self._plan.rounds))
        for round_number in self._round_numbers():
            trials = self._plan.round_trials(round_number)
            pending = [trial for trial in trials if self._statuses.get(trial.trial_id) != "ok"]
            if not pending:
                continue
            if round_number - 1 in self._plan.look_rounds and self._start.is_decided():
                return self._outcome("decided", f"all is decided after round {round_number - 1}")
            if self._is_narrow_enough():
                return self._outcome(
                    "decided", f"{self._rounds_for_width} rounds give the wanted width"
                )
            reason = self._why_not_begin(round_number, pending)
            if reason:
                hint = self._larger_budget(pending)
                return replace(self._outcome("budget", reason), hint=hint)
            self._store.add_trials(trials)
            self._start.attendant.before_round(round_number)
            early = self._run_round(pending)
            if early is not None:
                return early
            if round_number == 1:
                self._refuse_equal_levels()
            self._tell_if_few_rounds_fit(round_number)
        return self._outcome("complete")

    def _round_numbers(self) -> Iterator[int]:
        round_number = 1
        while self._plan.rounds is None or round_number <= self._plan.rounds:
            yield round_number
            round_number += 1

    def _run_round(self, pending: list[Trial]) -> Outcome | None:
        """Run trials until the round is done; an outcome if the campaign must end."""
        for trial in pending:
            if self._start.stop.presses:
                return self._outcome("interrupted", "stopped on request")
            if self._is_over_budget_without_a_round():
                return self._outcome("budget", self._no_round_fits())
            writes = self._start.writes
            if writes is not None and (reason := writes.why_not(trial)):
                return self._out_of_writes(writes, reason)
            with self._start.attendant.around(trial):
                derived = self._run_trial(trial)
                if derived.record is not None:
                    self._start.attendant.stored(trial, derived.record)
            if derived.status == "interrupted":
                if writes is not None and writes.is_spent and not self._start.stop.presses:
                    return self._out_of_writes(writes, writes.why_stopped(trial))
                return self._outcome("interrupted", f"stopped on request during {trial.trial_id}")
            if self._is_failing(derived):
                return self._outcome(
                    "failing",
                    f"{self._start.failures_max} trials in a row failed in the same way: "
                    f"{derived.error}",
                )
        return None

    def _out_of_writes(self, writes: WriteBudget, reason: str) -> Outcome:
        finished = (trial_id for trial_id, status in self._statuses.items() if status == "ok")
        return replace(self._outcome("writes", reason), hint=writes.hint(finished))

    def _run_trial(self, trial: Trial) -> DerivedRecord:
        attendant, spec = self._start.attendant, self._spec(trial)
        eta_ns = self._eta_ns()
        started_unix_ns, started_ns = time.time_ns(), self._clock()

        def on_progress(params: protocol.Progress) -> None:
            attendant.heard(trial, params)
            message = str(params.get("phase") or params.get("message") or "")
            self._tell("phase", trial, message, eta_ns=eta_ns)

        writes = self._start.writes
        counted = writes.counted() if writes is not None else 0
        self._tell("phase", trial, "preparing", eta_ns=eta_ns)
        with self._store.quiet():
            try:
                record = self._runner.run_trial(spec, on_progress)
            except AgentError as error:
                record = failed_record(
                    trial.trial_id, str(error), started_at_unix_ns=started_unix_ns
                )
            elapsed_ns = self._clock() - started_ns
        if writes is not None:
            writes.keep(record, trial, counted)
        attendant.measured(trial, record)
        derived = derive(record, self._core, grants_of(trial.treatment.workload))
        self._store.commit_record(trial.trial_id, self._start.session_id, derived)
        self._note_status(trial, derived.status)
        self._mismatches += [
            f"{trial.trial_id}: {caveat.message}"
            for caveat in derived.caveats
            if caveat.code == VERIFY_FAILED
        ]
        self._mounted_plot = trial.treatment.whole_plot if derived.status == "ok" else None
        if derived.status == "ok":
            self._pace.observe(trial.treatment, elapsed_ns)
            self._tell("finished", trial, "", eta_ns=self._eta_ns())
        elif derived.status == "failed":
            self._tell("failed", trial, derived.error or "no reason given")
        return derived

    def _spec(self, trial: Trial) -> TrialSpec:
        """Spec of a trial, with what its attendant adds."""
        is_fresh = trial.is_plot_start or trial.treatment.whole_plot != self._mounted_plot
        spec = trial_spec(trial, self._core, is_fresh_fs=is_fresh)
        return self._start.attendant.spec(trial, spec)

    def _is_failing(self, derived: DerivedRecord) -> bool:
        """Tell whether this was the last straw; numbers in messages do not make them different."""
        if derived.status != "failed":
            self._recent_failures.clear()
            return False
        self._recent_failures.append(re.sub(r"\d+", "#", derived.error or ""))
        most = self._start.failures_max
        if most is None:
            return False
        last = self._recent_failures[-most:]
        return len(last) == most and len(set(last)) == 1

    def _refuse_equal_levels(self) -> None:
        """Stop once the first round shows that a level would be compared with itself."""
        if not any(_is_knob(factor.name) for factor in self._plan.study.factors):
            return
        for equal in find_equal_levels(self._store.knobs()):
            raise StudyError(equal.message, equal.hint)

    def _is_narrow_enough(self) -> bool:
        """Tell whether the rounds that the pilot asked for are there; the pilot is asked once."""
        complete = self._rounds_complete()
        if self._plan.study.width is None or complete < PILOT_ROUNDS:
            return False
        if self._rounds_for_width is None:
            self._rounds_for_width = self._start.rounds_for_width()
            if self._rounds_for_width is not None:
                self._tell("notice", None, self._width_text(self._rounds_for_width))
        return self._rounds_for_width is not None and complete >= self._rounds_for_width

    def _width_text(self, rounds: int) -> str:
        rounds_max = self._plan.rounds
        text = f"the pilot of {PILOT_ROUNDS} rounds asks for {rounds} rounds in all"
        if rounds_max is not None and rounds > rounds_max:
            text += f"; rounds = {rounds_max} ends the study before, with a wider interval"
        return text

    # Budget and time.

    def _learn_from_store(self) -> None:
        times = self._store.times_ns()
        n_trials = len(self._plan.treatments)
        last_ordinal = max((int(trial_id[1:]) for trial_id in times), default=0)
        for trial in self._plan.trials(-(-last_ordinal // n_trials)):
            if trial.trial_id in times:
                self._pace.observe(trial.treatment, times[trial.trial_id])

    def _spent_ns(self) -> int:
        return self._spent_before_ns + self._clock() - self._started_ns

    def _why_not_begin(self, round_number: int, pending: list[Trial]) -> str:
        """Reason not to begin (or finish) a round, empty if it fits the budget."""
        budget_ns = self._plan.study.budget_ns
        if budget_ns is None or not self._pace.is_observed:
            return ""
        needed_ns, left_ns = self._pace.predict_ns(pending), budget_ns - self._spent_ns()
        if needed_ns <= left_ns:
            return ""
        return (
            f"round {round_number} needs about {units.format_duration_rounded(needed_ns)}, the "
            f"budget of {units.format_duration_rounded(budget_ns)} has "
            f"{units.format_duration_rounded(max(0, left_ns))} left"
        )

    def _larger_budget(self, pending: list[Trial]) -> str:
        """Advice that admits the rounds that were asked for, or else one more."""
        rounds = self._plan.rounds
        rest_ns = (
            self._pace.predict_ns(pending)
            if rounds is None
            else self._pace.predict_counts_ns(self._unfinished(rounds))
        )
        return f"add --budget {enough_budget(self._spent_ns(), rest_ns)}"

    def _is_over_budget_without_a_round(self) -> bool:
        budget_ns = self._plan.study.budget_ns
        is_over = budget_ns is not None and self._spent_ns() > budget_ns
        return is_over and self._rounds_complete() == 0

    def _no_round_fits(self) -> str:
        round_ns = self._pace.predict_ns(self._plan.round_trials(1))
        return (
            f"not one round fits the budget: a round needs about "
            f"{units.format_duration_rounded(round_ns)}; continue with --resume and a larger "
            "--budget, or begin a study of fewer levels or smaller files"
        )

    def _tell_if_few_rounds_fit(self, round_number: int) -> None:
        """Say once, after the first round that was observed, when the budget is too small."""
        budget_ns = self._plan.study.budget_ns
        if budget_ns is None or self._is_few_rounds_told or round_number >= ROUNDS_FEW:
            return
        self._is_few_rounds_told = True
        round_ns = max(1, self._pace.predict_ns(self._plan.round_trials(round_number + 1)))
        n_fit = self._rounds_complete() + max(0, budget_ns - self._spent_ns()) // round_ns
        if self._plan.rounds is not None:
            n_fit = min(n_fit, self._plan.rounds)
        if n_fit < ROUNDS_FEW:
            note = few_rounds(n_fit)
            wanted_ns = self._spent_ns() + round_ns * (ROUNDS_FEW - self._rounds_complete())
            self._tell(
                "notice",
                None,
                f"the budget admits {note.message}; {ROUNDS_FEW} rounds need about "
                f"{units.format_duration_rounded(wanted_ns)}",
            )

    def _eta_ns(self) -> int | None:
        """Time until the campaign ends: by its rounds, or by its budget if that comes first."""
        ends = list[int]()
        rounds = self._plan.rounds
        if self._rounds_for_width is not None:
            rounds = min(self._rounds_for_width, rounds or self._rounds_for_width)
        if rounds is not None:
            ends.append(self._pace.predict_counts_ns(self._unfinished(rounds)))
        if self._plan.study.budget_ns is not None:
            ends.append(max(0, self._plan.study.budget_ns - self._spent_ns()))
        return min(ends) if ends else None

    def _unfinished(self, rounds: int) -> Iterator[tuple[Treatment, int]]:
        """Treatments and how many trials of each so many rounds still lack.

        The plan is read once: whoever asks after each trial would read it as often.
        """
        if self._rest is None or self._rest.rounds != rounds:
            self._rest = _Rest(rounds, {}, Counter())
            for trial in self._plan.trials(rounds):
                if self._statuses.get(trial.trial_id) != "ok":
                    self._rest.names[trial.trial_id] = trial.treatment.name
                    self._rest.counts[trial.treatment.name] += 1
        counts = self._rest.counts
        return ((treatment, counts[treatment.name]) for treatment in self._plan.treatments)

    def _note_status(self, trial: Trial, status: TrialStatus) -> None:
        self._is_idle = False
        self._statuses[trial.trial_id] = status
        if status == "ok" and self._rest is not None:
            name = self._rest.names.pop(trial.trial_id, None)
            if name is not None:
                self._rest.counts[name] -= 1

    # Words.

    def _rounds_complete(self) -> int:
        return rounds_complete(self._statuses, len(self._plan.treatments))

    def _count(self, status: str) -> int:
        return sum(value == status for value in self._statuses.values())

    def _outcome(self, ending: Ending, message: str = "") -> Outcome:
        return Outcome(
            ending,
            self._count("ok"),
            self._count("failed"),
            self._rounds_complete(),
            message,
            tuple(self._mismatches),
            is_idle=self._is_idle,
        )

    def _tell(
        self,
        kind: Literal["phase", "finished", "failed", "notice"],
        trial: Trial | None,
        message: str,
        *,
        eta_ns: int | None = None,
    ) -> None:
        rounds = self._plan.rounds
        n_planned = self._plan.n_trials(rounds) if rounds is not None else None
        self._start.report(
            Progress(kind, trial, self._count("ok"), n_planned, rounds, eta_ns, message)
        )


def _is_knob(name: str) -> bool:
    return is_factor(name) and find_factor(name).is_knob
