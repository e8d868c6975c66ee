"""Options of a run, apart from what its study asks: where results go, what may be touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.study.trace_words import TraceEvents

if TYPE_CHECKING:
    from iolab.run.shard import Shard
    from iolab.testbed.executors import TrialExecutor
    from iolab.testbed.hosts import Host

FAILURES_MAX: Final = 3
OUTPUT_ROOT: Final = Path("iolab-out")
"""Directory below which results go that nobody gave a place."""


@frozen
class RunOptions:
    """Options of a run; the defaults run a new study and touch nothing of the user's."""

    out: Path | None = None
    """Directory of the results; None is a new one below `root`."""
    root: Path = OUTPUT_ROOT
    """Directory below which results without a place of their own go, as ``NAME-N``."""
    is_resumed: bool = False
    """Continue what `out` holds, or the newest study of this name."""
    continued_by: str = ""
    """Command that continues it, for messages; empty: by `iolab run` of its directory."""
    is_dry_run: bool = False
    trace: TraceEvents | None = None
    """Events that are recorded during each trial; None: as the study says."""
    overwrite: tuple[str, ...] = ()
    """Files of the user's own that may be replaced."""
    is_other_machine_allowed: bool = False
    image_dir: str | None = None
    """Directory of the images of loop devices."""
    allow_knobs_on: tuple[str, ...] = ()
    """Devices of the running system whose knobs may be switched."""
    erase_serial: str | None = None
    """Serial of the device that may be erased."""
    precondition: str | None = None
    precondition_round: str | None = None
    accept_writes: str | None = None
    """Size of what may be written to a device, as typed."""
    is_announced: bool = True
    """True if the observer is told the plan and the caveats; a line's own output begins at once."""
    failures_max: int | None = FAILURES_MAX
    """Equal failures in a row that end the run; None is no such end."""
    spread: TrialExecutor | None = None
    """Executor of the trials of a simulated study; None: this process."""
    shard: Shard | None = None
    """Part of a simulated study that is run; None: all of it, or the part that is continued."""
    host: Host | None = None
    """Host over ssh whose agent runs the trials; None: this machine."""
    note: str = ""
    """Sentence about the study once nothing has refused it."""
    is_testbed_from_file: bool = False
    """True if a study file, not the user, names the testbed."""

    @property
    def accepted_bytes(self) -> int | None:
        """Bytes of `accept_writes`.

        Raises
        ------
        IolabError : not a size.
        """
        if self.accept_writes is None:
            return None
        try:
            return units.parse_bytes(self.accept_writes)
        except ValueError as error:
            raise IolabError(f"--accept-writes: {error}", "as in --accept-writes 2t") from None
