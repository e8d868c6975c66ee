"""What a progress line shows; apart from the campaign, so that commands without one need none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from iolab.frozen import frozen

if TYPE_CHECKING:
    from iolab.study.plan import Trial


@frozen
class Progress:
    """Where the campaign is; what a progress line shows."""

    kind: Literal["phase", "finished", "failed", "notice"]
    trial: Trial | None
    n_done: int
    n_planned: int | None
    rounds: int | None
    eta_ns: int | None
    message: str = ""
    """Phase that runs, reason of a failure, or the notice itself."""
