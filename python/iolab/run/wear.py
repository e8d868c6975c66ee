"""Writes of a study to a whole device: foretold, counted and stopped at the accepted amount.

Counted are the bytes that the kernel says were written to the device, whoever caused them: data,
layouts, file systems, preconditioning. Sum of all starts of a study: each record keeps its part.
Left out: what a start wrote after its last record, and during a trial in which it was killed.
Sources: Linux Documentation/block/stat.rst (field 7, in units of 512 bytes); mke2fs(8) and
mke2fs.conf(5): an inode of 256 bytes for each 16 KiB, a journal of at most 1 GiB.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from iolab import units
from iolab.errors import TestbedError
from iolab.frozen import frozen
from iolab.run.stop import StopSwitch
from iolab.study.estimate import cost_of
from iolab.study.plan import Plan, Trial
from iolab.study.testbeds import NO_FILE_SYSTEM

if TYPE_CHECKING:
    from iolab.protocol import Record

ENDS_BYTES: Final = 4 << 20
"""Of each start: marker, both ends blanked before and after."""
_SECTOR_BYTES: Final = 512
_WRITE_SECTORS_FIELD: Final = 6
_JOURNAL_BYTES_MAX: Final = 1 << 30
_METADATA_SHARE: Final = 0.05
"""Share that a file system adds to the data of large writes; small ones that are flushed cost
more.
"""
_LOOK_S_MIN: Final = 0.05
_LOOK_S_MAX: Final = 1.0
_FASTEST_BYTES_PER_S: Final = 4e9
"""Taken for the device's speed before it was seen to be faster."""


@frozen
class History:
    """Writes of earlier starts of a study."""

    written_bytes: int = 0
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    """Most that a finished trial of each treatment wrote, by its name."""
    doubts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes that a treatment may write whose trial was ended half way."""
    finished: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plan: Plan, attempts: Iterable[tuple[str, str, Record]]) -> Self:
        """From every attempt at a trial: its name, status and record."""
        n_trials = len(plan.treatments)
        total, finished = 0, set[str]()
        seen, doubts = dict[str, int](), dict[str, int]()
        for trial_id, status, record in attempts:
            kept = record.get("host_writes")
            written = kept["trial_bytes"] if kept else 0
            total += (kept["before_bytes"] if kept else 0) + written
            ordinal = int(trial_id[1:])
            trials = plan.round_trials((ordinal - 1) // n_trials + 1)
            trial = trials[(ordinal - 1) % n_trials]
            name = trial.treatment.name
            if status == "ok":
                finished.add(trial_id)
                seen[name] = max(written, seen.get(name, 0))
            else:
                doubts[name] = _doubted_bytes(trial, written)
        return cls(total, seen, doubts, frozenset(finished))

    @property
    def largest(self) -> dict[str, int]:
        """The best that is known of each treatment that was tried."""
        return {**self.doubts, **self.seen}


@frozen
class Forecast:
    """Writes of a study when it is complete."""

    total_bytes: int
    earlier_bytes: int
    is_bound: bool
    """True if it cannot be more; else it depends on the device's speed, or on a file system."""


def forecast_writes(
    plan: Plan, size_bytes: int, before_bytes: int, history: History | None = None
) -> Forecast:
    """Bytes that all rounds write, with all that is written before and around them.

    Parameters
    ----------
    size_bytes : of the device.
    before_bytes : written once before the first trial, by preconditioning.
    history : what earlier starts wrote; what they observed is better than a guess.
    """
    known = history or History()
    rounds, is_bound = plan.study.rounds, plan.study.rounds is not None
    cost = plan.round_cost()
    if rounds is None:
        rounds = max(1, -(-(plan.study.budget_ns or 0) // max(1, cost.duration_ns)))
    is_raw = all(not _has_file_system(trial) for trial in plan.round_trials(1))
    total = known.written_bytes + before_bytes + ENDS_BYTES
    if known.largest:
        pending = (t for t in plan.trials(rounds) if t.trial_id not in known.finished)
        total += sum(expected_bytes(trial, size_bytes, known.largest) for trial in pending)
    else:
        total += rounds * sum(expected_bytes(t, size_bytes, {}) for t in plan.round_trials(1))
    return Forecast(total, known.written_bytes, is_bound and is_raw and cost.is_bound)


def expected_bytes(trial: Trial, size_bytes: int, largest: Mapping[str, int]) -> int:
    """Bytes that a trial writes: the most that one like it wrote, else its estimate."""
    if trial.treatment.name in largest:
        return largest[trial.treatment.name]
    written = cost_of(trial.treatment).written_bytes
    if not _has_file_system(trial):
        return written
    made = (
        size_bytes // 64 + min(size_bytes // 10, _JOURNAL_BYTES_MAX) if trial.is_plot_start else 0
    )
    return written + int(written * _METADATA_SHARE) + made


def _doubted_bytes(trial: Trial, written: int) -> int:
    """Bytes that a trial may write that was ended half way, perhaps because it wrote too much."""
    return max(2 * written, cost_of(trial.treatment).written_bytes)


def _has_file_system(trial: Trial) -> bool:
    return trial.treatment.effective.get("fs", NO_FILE_SYSTEM) != NO_FILE_SYSTEM


def written_counter(device: Path) -> Callable[[], int]:
    """Bytes that were written to `device` since the kernel knows it.

    Raises
    ------
    TestbedError : the kernel does not count it.
    """
    number = device.stat().st_rdev
    stat = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")

    def count() -> int:
        try:
            return int(stat.read_text().split()[_WRITE_SECTORS_FIELD]) * _SECTOR_BYTES
        except (OSError, IndexError, ValueError) as error:
            raise TestbedError(
                f"what is written to {device} cannot be counted: {stat}: {error}",
                "the accepted amount could not be kept",
            ) from None

    return count


@frozen
class Accepted:
    """Agreement of the user, with the facts about the device."""

    bytes: int
    """By all starts of the study together."""
    size_bytes: int
    before_bytes: int = 0
    """Largest number of bytes that each start writes before its first trial."""
    history: History = field(default_factory=History)
    least_before_bytes: int = 0
    """Number of bytes that each start certainly writes before its first trial."""


class WriteBudget:
    """Counts what a start of a study writes, and says when the accepted amount is reached.

    Also a stop switch: once the amount is exceeded it looks as if the user had pressed once, so
    that the running trial ends. A thread looks as often as the device's speed demands.
    """

    def __init__(
        self, accepted: Accepted, plan: Plan, count: Callable[[], int], stop: StopSwitch
    ) -> None:
        self._accepted = accepted
        self._plan = plan
        self._count = count
        self._stop = stop
        self._earlier_bytes = accepted.history.written_bytes
        self._seen = dict(accepted.history.seen)
        self._doubts = dict(accepted.history.doubts)
        self._origin = self._kept = count()
        self._is_spent = False
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Begin to look."""
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        self._ended.set()
        self._watch.join()

    # What it knows.

    @property
    def written_bytes(self) -> int:
        """Of all starts of the study."""
        return self._earlier_bytes + self._count() - self._origin

    @property
    def is_spent(self) -> bool:
        """Tell whether more was written than was accepted, as far as was looked."""
        return self._is_spent

    def why_not(self, trial: Trial) -> str:
        """Reason not to begin `trial`; empty if what it writes is still accepted."""
        written, expected = self.written_bytes, self._expected_bytes(trial)
        if written + expected <= self._accepted.bytes:
            return ""
        return (
            f"{trial.trial_id} would write about {units.format_bytes_rounded(expected)} more; "
            f"{self._so_far(written)}"
        )

    def why_not_prepared(self) -> str:
        """Reason not to begin what comes before the first trial; empty if it may be accepted."""
        written, least = self.written_bytes, self._accepted.least_before_bytes
        if written + least <= self._accepted.bytes:
            return ""
        return (
            f"preconditioning writes {units.format_bytes_rounded(least)} before the first trial; "
            f"{self._so_far(written)}"
        )

    def why_not_begun(self) -> str:
        """Reason not to go on after what comes before the first trial; empty if there is none."""
        written = self.written_bytes
        if written <= self._accepted.bytes:
            return ""
        return f"what comes before the first trial wrote too much; {self._so_far(written)}"

    def why_stopped(self, trial: Trial | None = None) -> str:
        """Reason of having ended a trial, or what comes before the first."""
        what = trial.trial_id if trial else "what comes before the first trial"
        return f"{what} was ended while it wrote; {self._so_far(self.written_bytes)}"

    def hint(self, finished: Iterable[str]) -> str:
        """Way to go on after the trials that are `finished`."""
        history = History(
            self.written_bytes + ENDS_BYTES, self._seen, self._doubts, frozenset(finished)
        )
        accepted = self._accepted
        wanted = forecast_writes(
            self._plan, accepted.size_bytes, accepted.before_bytes, history
        ).total_bytes
        return (
            "finished trials are kept and everything was put back; to go on: --resume "
            f"--accept-writes {wanted} (about {units.format_bytes_rounded(wanted)} in all), "
            "or more"
        )

    def hint_to_begin_anew(self) -> str:
        """Advice if not even the first trial was begun."""
        accepted = self._accepted
        wanted = forecast_writes(
            self._plan, accepted.size_bytes, accepted.before_bytes, accepted.history
        ).total_bytes
        return f"no trial was begun and everything was put back; --accept-writes {wanted} would do"

    def keep(self, record: Record, trial: Trial, before: int) -> None:
        """Note in `record` what was written during its trial, and since the one before it.

        Parameters
        ----------
        before : what `counted` was when the trial began.
        """
        now = self._count()
        record["host_writes"] = {"before_bytes": before - self._kept, "trial_bytes": now - before}
        self._kept = now
        name, written = trial.treatment.name, now - before
        if record.get("status") == "ok":
            self._seen[name] = max(written, self._seen.get(name, 0))
        else:
            self._doubts[name] = _doubted_bytes(trial, written)

    def counted(self) -> int:
        """Present value of the kernel's counter."""
        return self._count()

    # As a stop switch.

    @property
    def presses(self) -> int:
        """Number of times that the user pressed; at least once if the amount is spent."""
        return max(self._stop.presses, int(self._is_spent))

    def fileno(self) -> int:
        """Descriptor of the user's switch, which a spent amount makes readable, too."""
        return self._stop.fileno()

    def drain(self) -> None:
        """Mark all as seen."""
        self._stop.drain()

    def _look(self) -> None:
        speed, before, wait_s = _FASTEST_BYTES_PER_S, self.written_bytes, _LOOK_S_MIN
        while not self._ended.wait(wait_s):
            try:
                written = self.written_bytes
            except TestbedError:
                return  # The device is gone; the trial says so.
            if written > self._accepted.bytes:
                self._is_spent = True
                self._stop.wake()
                return
            speed, before = max(speed, (written - before) / wait_s), written
            left_s = (self._accepted.bytes - written) / (2 * speed)
            wait_s = min(_LOOK_S_MAX, max(_LOOK_S_MIN, left_s))

    # Words.

    def _so_far(self, written: int) -> str:
        return (
            f"{units.format_bytes_rounded(written)} were written to the device, "
            f"{units.format_bytes_rounded(self._accepted.bytes)} were accepted"
        )

    def _expected_bytes(self, trial: Trial) -> int:
        known = {**self._doubts, **self._seen}
        return expected_bytes(trial, self._accepted.size_bytes, known)
