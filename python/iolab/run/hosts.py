"""Runs of one study on several hosts: rounds that begin together, and what cannot be run there."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from iolab.errors import StudyError
from iolab.run.attendant import Attendant
from iolab.run.dialect_requests import loads_library
from iolab.run.kept_recordings import recordings_of
from iolab.run.stop import StopSwitch
from iolab.store.db import Store
from iolab.study.model import DialectWorkload, Study
from iolab.testbed.hosts import Host

if TYPE_CHECKING:
    from iolab.run.options import RunOptions
    from iolab.testbed.runner import Runner

_LOOK_S: Final = 0.2
"""Pause between looks whether the user wants to stop; who waits for others is woken by them."""


class RoundBarrier:
    """A barrier before each round: whoever runs goes on when all have come as far.

    A host that has ended is not waited for. One that continues a study may be behind the others;
    it catches up first.

    Parameters
    ----------
    names : who takes part.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._reached = dict.fromkeys(names, 0)
        self._changed = threading.Condition()

    def wait(self, name: str, round_number: int, stop: StopSwitch) -> None:
        """Return when no host is behind this round, or the user wants to stop."""
        with self._changed:
            self._reached[name] = round_number
            self._changed.notify_all()
            while min(self._reached.values()) < round_number and not stop.presses:
                self._changed.wait(_LOOK_S)

    def leave(self, name: str) -> None:
        """Take part no more."""
        with self._changed:
            self._reached.pop(name, None)
            self._changed.notify_all()


class RoundsTogether(Attendant):
    """One host at a barrier."""

    def __init__(self, barrier: RoundBarrier, name: str) -> None:
        self._barrier, self._name = barrier, name
        self._stop: StopSwitch | None = None

    def begin(self, store: Store, runner: Runner, stop: StopSwitch) -> None:
        """Take the switch that ends the waiting."""
        del store, runner
        self._stop = stop

    def before_round(self, round_number: int) -> None:
        """Wait for the others."""
        if self._stop is not None:
            self._barrier.wait(self._name, round_number, self._stop)


def check_same_host(store: Store, host: Host | None) -> None:
    """Refuse to continue a study on another host than it began on.

    Raises
    ------
    StudyError : it began elsewhere.
    """
    begun = store.host_names()
    asked = "" if host is None else host.name
    if not begun or begun[0] == asked:
        return
    place = store.path.parent
    if not begun[0]:
        raise StudyError(
            f"{place} holds a study of this machine, not of {asked}", "choose another --out"
        )
    raise StudyError(
        f"{place} holds a study of the host {begun[0]}",
        f"continue it with --hosts {begun[0]} --out {place.parent} --resume",
    )


def check_possible_on_hosts(study: Study, options: RunOptions) -> None:
    """Refuse what would need files or facts of this machine on another one.

    Raises
    ------
    StudyError : names the first such wish.
    """
    for is_asked, what, advice in _wishes(study, options):
        if is_asked:
            raise StudyError(f"--hosts: {what}", advice)


def _wishes(study: Study, options: RunOptions) -> Iterable[tuple[bool, str, str]]:
    """Wishes that cannot be: if each is asked, why not, and what to do."""
    dialects = [one for one in study.workloads if isinstance(one, DialectWorkload)]
    requests = [one.request for one in dialects]
    yield (
        bool(study.command),
        "the study is the command line of another program, which prints its own table",
        "compare it, as in `iolab compare --workload 'iozone ...' --hosts ...`",
    )
    yield (
        options.is_dry_run,
        "a rehearsal is of one machine",
        "leave --hosts out: the actions are the same on each",
    )
    yield (
        options.trace is not None or study.trace is not None,
        "traces are written to files on the host that is traced",
        "leave the trace out, or run the study there",
    )
    yield (
        bool(recordings_of(study)),
        "recorded streams are read from files of this machine",
        "run the study there, and judge all with `iolab fleet`",
    )
    yield (
        any(it.get("user") or it.get("first_cpu") is not None for it in requests),
        "users and CPUs of a command are looked up on this machine",
        "leave them out of the command",
    )
    yield (
        any(loads_library(one) for one in dialects),
        "a key-value store needs its library on each host",
        "run the study there, and judge all with `iolab fleet`",
    )
    yield (
        options.spread is not None or options.shard is not None,
        "only simulated trials are spread over processes and shards",
        "leave --jobs, --executor and --shard out",
    )
    yield (
        options.is_resumed and options.out is None,
        "--resume needs the directory of the hosts' results",
        "name it with --out",
    )
