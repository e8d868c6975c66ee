"""One study run on several hosts over ssh, from one front end; behind ``--hosts``.

Each host has a thread of its own, in which the study is conducted as on this machine, with the
agent of that host; a barrier lets rounds begin together. What a host does wrong ends that host.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from iolab.errors import (
    DEBUG_VARIABLE,
    IolabError,
    RestoreError,
    StoppedError,
    StudyError,
    TestbedError,
    nobody_asked,
)
from iolab.frozen import frozen, replace
from iolab.library.fleets import printed, read_named
from iolab.library.restoring import Restoration, restored_by
from iolab.library.services import Services
from iolab.library.study import Study, checked_study
from iolab.run import outputs
from iolab.run.conduct import announcement_text, conduct, note_plan
from iolab.run.hosts import RoundBarrier, RoundsTogether, check_possible_on_hosts
from iolab.run.observer import Observer
from iolab.run.options import RunOptions
from iolab.run.prepare import Prepared, prepare
from iolab.run.progress import Progress
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.stats.fleet import HOSTS_MIN, FleetVerdict
from iolab.store.db import STORE_NAME
from iolab.testbed.agent import LostAgentError
from iolab.testbed.hosts import Host, parse_hosts
from iolab.testbed.over_ssh import connect
from iolab.visible import visible_line
from iolab.wording import counted

__all__ = ["HostEnd", "HostsRun", "parse_hosts", "printed", "restore_hosts", "run_on_hosts"]

T = TypeVar("T")

AGAIN: Final = "the same command with --resume"
_LOOK_S: Final = 0.2
_SEED_MAX: Final = 1 << 31
_NS_PER_MS: Final = 1e6


@frozen
class HostEnd:
    """End of a study on one host."""

    name: str
    directory: Path
    problem: IolabError | None
    """Reason why it is left out; None if it ran the study to its end."""


@frozen
class HostsRun:
    """End of a study on all hosts."""

    directory: Path
    ends: tuple[HostEnd, ...]
    is_comparison: bool

    @property
    def left_out(self) -> tuple[HostEnd, ...]:
        """Hosts that did not run the study to its end."""
        return tuple(end for end in self.ends if end.problem is not None)

    def verdict(self, note: Callable[[str], None]) -> FleetVerdict | None:
        """Verdict over the others; None if they are too few, or nothing was compared.

        Raises
        ------
        IolabError : a study cannot be read or judged.
        """
        whole = [(end.name, end.directory) for end in self.ends if end.problem is None]
        if len(whole) < HOSTS_MIN or not self.is_comparison:
            return None
        return read_named(whole, None, note)


def run_on_hosts(
    study: Study,
    options: RunOptions,
    hosts: Sequence[Host],
    services: Services,
    observer: Observer,
) -> HostsRun:
    """Run or continue a study on all hosts; each one's results go to a directory of its name.

    Raises
    ------
    IolabError : it cannot be run so, a host is not reached, or the user stopped it.
    """
    check_possible_on_hosts(checked_study(study), options)
    out_dir = _directory(study, options, hosts)
    if study.seed is None:
        study = study.with_seed(_seed(out_dir))
    shared = _Shared(observer, RoundBarrier(host.name for host in hosts))
    prepared = [
        _prepared(study, replace(options, out=out_dir / host.name, host=host), services, shared)
        for host in hosts
    ]
    connected = _each(hosts, partial(connect, needs_root=prepared[0].needs_root), observer)
    if options.is_resumed:
        _each(connected, partial(_restored, observer=shared), observer)
    note_plan(replace(prepared[0], observer=observer))
    observer.remark(announcement_text(replace(prepared[0], out_dir=out_dir)))
    observer.remark(f"iolab: on {counted(len(hosts), 'host')}: {_clocks(connected)}")
    for line in _one_machine(connected):
        observer.remark(f"iolab: note: {line}")
    ready = [
        replace(one, options=replace(one.options, host=host, is_announced=False))
        for one, host in zip(prepared, connected, strict=True)
    ]
    ends = _conducted(ready, shared.barrier)
    observer.clear_line()
    return HostsRun(out_dir, tuple(ends), study.is_comparison)


def restore_hosts(
    hosts: Sequence[Host], run_id: str | None, observer: Observer
) -> list[tuple[str, Restoration]]:
    """Undo what killed runs left on hosts: as who connects and, if it can be had, as root.

    Raises
    ------
    IolabError : a host is not reached, or its agent fails.
    """
    found = list[tuple[str, Restoration]]()
    for agents in _each(hosts, _agents, observer):
        found += [
            (one.name, restored_by(one.agent_command, run_id, observer.note)) for one in agents
        ]
    return found


def _agents(host: Host) -> list[Host]:
    """A host with the agent of who connects and, where that is another one, of root."""
    own = connect(host, needs_root=False)
    try:
        root = connect(host, needs_root=True)
    except TestbedError:
        return [own]
    return [own] if root.agent == own.agent else [own, root]


# Before the first trial.


def _directory(study: Study, options: RunOptions, hosts: Sequence[Host]) -> Path:
    """Directory of all results, which holds none yet, or those that are continued.

    Raises
    ------
    StudyError : it holds others, or nothing to continue.
    """
    out_dir = options.out or outputs.fresh_directory(study.name, options.root)
    if (out_dir / STORE_NAME).exists():
        raise StudyError(f"{out_dir} holds the study of one machine", "choose another --out")
    stored = _stored(out_dir)
    if options.is_resumed:
        if not stored:
            raise StudyError(
                f"there is nothing to resume: {out_dir} holds no study of a host",
                "begin it with the same command without --resume",
            )
        return out_dir
    if stored:
        names = ", ".join(path.name for path in stored)
        raise StudyError(
            f"{out_dir} already holds studies ({names})",
            f"{AGAIN} continues them; or choose another --out",
        )
    outputs.check_free(out_dir)
    return out_dir


def _stored(out_dir: Path) -> list[Path]:
    """Directories of hosts in which there is a study."""
    return sorted(path.parent for path in out_dir.glob(f"*/{STORE_NAME}"))


def _seed(out_dir: Path) -> int:
    """Seed of what is stored, else a new one: all hosts have the same order."""
    stored = _stored(out_dir)
    if stored:
        return outputs.stored_seed(stored[0] / STORE_NAME)
    return int.from_bytes(os.urandom(8)) % _SEED_MAX


def _prepared(study: Study, options: RunOptions, services: Services, shared: _Shared) -> Prepared:
    """The study of one host, checked; one that has nothing yet begins although others go on."""
    assert options.host is not None, "it is for a host"
    assert options.out is not None, "each host has a directory"
    name = options.host.name
    is_begun = (options.out / STORE_NAME).exists()
    options = replace(options, is_resumed=is_begun, continued_by=AGAIN)
    together = RoundsTogether(shared.barrier, name)
    observer = _OfHost(name, shared)
    core = services.load_core()
    return prepare(checked_study(study), options, core, services.analysis, observer, together)


def _each(hosts: Sequence[Host], ask: Callable[[Host], T], observer: Observer) -> list[T]:
    """Answers of all hosts, which are asked at the same time.

    Raises
    ------
    IolabError : that of the first host that failed; the others' are told.
    """
    with ThreadPoolExecutor(max_workers=len(hosts)) as pool:
        asked = [pool.submit(ask, host) for host in hosts]
    problems = [error for one in asked if (error := one.exception()) is not None]
    for error in problems[1:]:
        if not isinstance(error, IolabError):
            raise error
        observer.note(f"iolab: {error}")
    return [one.result() for one in asked]


def _restored(host: Host, *, observer: _Shared) -> None:
    """Undo what a lost run left on a host before its study goes on.

    Raises
    ------
    RestoreError : something could not be put back.
    """
    one = _OfHost(host.name, observer)
    found = restored_by(host.agent_command, None, one.note)
    for line in found.restored:
        one.note(f"iolab: restored {line}")
    if found.problems:
        raise RestoreError(
            f"{host.name}: not everything could be put back: {'; '.join(found.problems)}",
            "correct the cause there, then type the same command again",
        )


def _one_machine(hosts: Sequence[Host]) -> Iterator[str]:
    """Sentence about each machine that has several of the names."""
    names = dict[str, list[str]]()
    for host in hosts:
        if host.boot_id:
            names.setdefault(host.boot_id, []).append(host.name)
    for same in names.values():
        if len(same) > 1:
            yield f"{', '.join(same)} are one machine: they are measured at the same time"


def _clocks(hosts: Sequence[Host]) -> str:
    """Names of the hosts, with their clocks against this one's."""
    return ", ".join(f"{host.name} ({_clock(host)})" for host in hosts)


def _clock(host: Host) -> str:
    clock = host.clock
    if clock is None:
        return "clock not known"
    off, most = clock.offset_ns / _NS_PER_MS, clock.uncertainty_ns / _NS_PER_MS
    return f"clock {off:+.1f} ± {most:.1f} ms"


# All of them.


def _conducted(ready: Sequence[Prepared], barrier: RoundBarrier) -> list[HostEnd]:
    """Conduct the study on each host, until all have ended."""
    switches = [StopSwitch() for _ in ready]
    try:
        with (
            pressed_by_signals() as pressed,
            ThreadPoolExecutor(max_workers=len(ready)) as pool,
        ):
            pending: set[Future[HostEnd]] = set()
            ends = [
                pool.submit(_conduct_one, one, barrier, switch)
                for one, switch in zip(ready, switches, strict=True)
            ]
            pending, heeded = set(ends), 0
            while pending:
                _, pending = wait(pending, _LOOK_S)
                for _ in range(heeded, pressed.presses):
                    for switch in switches:
                        switch.press()
                heeded = max(heeded, pressed.presses)
    finally:
        for switch in switches:
            switch.close()
    return [end.result() for end in ends]


def _conduct_one(prepared: Prepared, barrier: RoundBarrier, switch: StopSwitch) -> HostEnd:
    """Conduct the study on one host; what it does wrong is its end."""
    host = prepared.options.host
    assert host is not None, "it is for a host"
    problem: IolabError | None
    try:
        problem = conduct(prepared, switch).problem
    except IolabError as error:
        problem = error
    except Exception as error:  # The answers of a host can be anything.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        problem = TestbedError(
            f"its answers cannot be used ({type(error).__name__}: {visible_line(str(error))})",
            f"see that the agent there is ours; {DEBUG_VARIABLE}=1 shows where it went wrong",
        )
    finally:
        barrier.leave(host.name)
    if problem is not None and not isinstance(problem, StoppedError):
        prepared.observer.note(f"iolab: ended early: {problem.message}")
    if isinstance(problem, LostAgentError | RestoreError):
        problem.hint = f"{AGAIN} restores it when it can be reached, and completes it"
    return HostEnd(host.name, prepared.out_dir, problem)


# What they tell.


class _Shared:
    """Share of all threads: an observer that they tell one after the other, and the barrier."""

    def __init__(self, observer: Observer, barrier: RoundBarrier) -> None:
        self.observer, self.barrier = observer, barrier
        self.lock = threading.Lock()


class _OfHost:
    """Tells an observer what one host does, with its name."""

    def __init__(self, name: str, shared: _Shared) -> None:
        self._name, self._shared = name, shared

    def _named(self, text: str) -> str:
        return f"iolab: {self._name}: {text.removeprefix('iolab: ')}"

    def note(self, text: str) -> None:
        """Hand on a message."""
        with self._shared.lock:
            self._shared.observer.note(self._named(text))

    def remark(self, text: str) -> None:
        """Hand on a message."""
        with self._shared.lock:
            self._shared.observer.remark(self._named(text))

    def result(self, text: str = "") -> None:
        """Hand on a line."""
        self.note(text)

    def progress(self, progress: Progress) -> None:
        """Hand it on."""
        message = f"on {self._name}{f': {progress.message}' if progress.message else ''}"
        with self._shared.lock:
            self._shared.observer.progress(replace(progress, message=message))

    def clear_line(self) -> None:
        """Leave the line to those who go on."""

    def ask(self, question: str, flag: str) -> str:
        """Refuse.

        Raises
        ------
        RefusedError : always; names the option that answers the question.
        """
        del question
        raise nobody_asked(flag)
