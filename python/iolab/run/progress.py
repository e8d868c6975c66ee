"""Content of a progress line; apart from the campaign, so that commands without one need none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from iolab.frozen import frozen

if TYPE_CHECKING:
    from iolab.study.plan import Trial


@frozen
class Progress:
    """The place of a running study, and what happened there.

    Parameters
    ----------
    kind : ``"phase"`` (a trial does something), ``"finished"``, ``"failed"``, or ``"notice"`` (a
        message about the study as a whole).
    trial : the trial; None for a notice.
    n_done : trials that are done.
    n_planned : trials in all; None if a budget or a width decides that.
    rounds : rounds in all; None as well.
    eta_ns : time until the study ends, as far as it can be guessed.
    message : phase that runs, reason of a failure, or the notice itself.
    """

    kind: Literal["phase", "finished", "failed", "notice"]
    trial: Trial | None
    n_done: int
    n_planned: int | None
    rounds: int | None
    eta_ns: int | None
    message: str = ""

    @property
    def text(self) -> str:
        """Place and message for people, in one line.

        As in ``trial 12 of 90, round 2 of 5: iozone bfq 4k, random-read, about 3 min 20 s left``.
        """
        trial = self.trial
        if trial is None:
            return self.message
        of_trials = f" of {self.n_planned}" if self.n_planned is not None else ""
        of_rounds = f" of {self.rounds}" if self.rounds is not None else ""
        levels = " ".join(level for _, level in trial.levels)
        parts = [f"trial {trial.ordinal}{of_trials}, round {trial.round}{of_rounds}: "]
        parts[0] += f"{trial.workload} {levels}".strip()
        if self.message:
            parts.append(self.message)
        if self.eta_ns and self.n_done != self.n_planned:
            from iolab import units

            parts.append(f"about {units.format_duration_rounded(self.eta_ns)} left")
        return ", ".join(parts)


def rounds_complete(statuses: Mapping[str, str], n_treatments: int) -> int:
    """Count the rounds of which every trial has finished.

    `statuses` are those of trials by their ids, which count through the rounds.
    """
    done = Counter(
        (int(trial_id[1:]) - 1) // n_treatments
        for trial_id, status in statuses.items()
        if status == "ok"
    )
    return sum(count == n_treatments for count in done.values())
