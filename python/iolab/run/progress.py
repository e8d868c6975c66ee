"""Content of a progress line; apart from the campaign, so that commands without one need none."""

from __future__ import annotations

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
