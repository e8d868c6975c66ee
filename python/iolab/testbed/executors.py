"""Executors for simulated trials: processes of this machine, a Dask cluster, the caller's own.

An executor only simulates: the process that conducts the study stores every record, so that a
worker that dies costs the trials that it had, and nothing that is stored. Each worker of
`LocalProcesses` is a pool of its own, because the standard pool gives up all its workers when one
of them is killed.

Left out: starting jobs on a cluster (dask-jobqueue does that), and Dask clusters that need
credentials beside those of its own configuration.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from types import ModuleType
from typing import Final, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from iolab.errors import IolabError, TestbedError
from iolab.frozen import frozen

P = ParamSpec("P")
T = TypeVar("T")

AHEAD: Final = 8
"""Trials handed out per worker: the first in the order of the plan may be the slowest."""
IN_FLIGHT_MIN: Final = 32
IN_FLIGHT_UNKNOWN: Final = 256
"""Trials handed out to an executor that does not tell how many workers it has."""
_EACH: Final = 2
"""Trials of a local process: the one that runs and the next, so that it never waits for one."""
_COUNT_AGE_S: Final = 5.0
"""Age of a count of workers before the scheduler is asked again."""
_CONNECT_S: Final = 10.0
_LOGGERS: Final = (
    "distributed",
    *(f"distributed.{name}" for name in ("client", "nanny", "worker")),
)
"""Loggers to which Dask gives levels of their own."""


@frozen
class Workers:
    """An open executor, and how much it is given at a time."""

    executor: Executor
    in_flight: Callable[[], int]
    """Trials that may be handed out at the same time."""


OpenWorkers: TypeAlias = Callable[[], AbstractContextManager[Workers]]


@frozen
class TrialExecutor:
    """A wish to run trials on an executor."""

    asked: str
    """The words that asked for it, as in ``--jobs 4``."""
    open_workers: OpenWorkers


def in_flight(n_workers: int) -> int:
    """Trials to hand out to so many workers."""
    return max(IN_FLIGHT_MIN, AHEAD * n_workers)


# The caller's own.


@contextmanager
def given_workers(executor: Executor) -> Generator[Workers, None, None]:
    """An executor that stays the caller's: it is not shut down."""
    known = getattr(executor, "_max_workers", None)  # The standard library has it.
    most = in_flight(known) if isinstance(known, int) else IN_FLIGHT_UNKNOWN
    yield Workers(executor, lambda: most)


# Processes of this machine.


@contextmanager
def local_workers(n_processes: int) -> Generator[Workers, None, None]:
    """Processes of this machine, which end with this context, or with this process."""
    executor = LocalProcesses(n_processes)
    try:
        yield Workers(executor, lambda: in_flight(n_processes))
    finally:
        executor.shutdown(wait=False)


@frozen
class _Task:
    """A call that waits for a process."""

    future: Future[object]
    call: Callable[[], object]


class LocalProcesses(Executor):
    """Processes that end when this one does; one that is killed is replaced.

    Parameters
    ----------
    n_processes : number of workers.
    """

    def __init__(self, n_processes: int) -> None:
        # A forked copy of a process with threads may hold locks that nobody opens.
        self._context = multiprocessing.get_context("spawn")
        self._ended, self._end = self._context.Pipe(duplex=False)
        self._pools = [self._pool() for _ in range(n_processes)]
        self._free = deque(list(range(n_processes)) * _EACH)
        self._tasks = deque[_Task]()
        self._lock = threading.Lock()
        self._is_shut = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function of a module in one of the processes.

        Raises
        ------
        RuntimeError : it was shut down.
        """
        future = Future[T]()
        task = _Task(cast("Future[object]", future), partial(fn, *args, **kwargs))
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._tasks.append(task)
        self._feed()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; without `wait` whatever they do is given up."""
        del cancel_futures  # What no process has is given up anyway.
        with self._lock:
            self._is_shut = True
            tasks = list(self._tasks)
            self._tasks.clear()
        for task in tasks:
            task.future.cancel()
        if not wait:
            self._end.close()
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)
        self._end.close()
        self._ended.close()

    def _pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_end_with, initargs=(self._ended,)
        )

    def _feed(self) -> None:
        """Give tasks to processes that may take one, the oldest first."""
        while True:
            with self._lock:
                if self._is_shut or not self._tasks or not self._free:
                    return
                place, task = self._free.popleft(), self._tasks.popleft()
                if not task.future.set_running_or_notify_cancel():
                    self._free.appendleft(place)
                    continue
                inner = self._begun(place, task)
            inner.add_done_callback(partial(self._done, place, task))

    def _begun(self, place: int, task: _Task) -> Future[object]:
        try:
            return self._pools[place].submit(task.call)
        except BrokenExecutor:
            self._pools[place].shutdown(wait=False)
            self._pools[place] = self._pool()
            return self._pools[place].submit(task.call)

    def _done(self, place: int, task: _Task, inner: Future[object]) -> None:
        """Hand on what a process returned, from the thread that watches it."""
        with self._lock:
            self._free.append(place)
        try:
            task.future.set_result(inner.result())
        except (Exception, CancelledError) as error:
            task.future.set_exception(error)
        self._feed()


def _end_with(parent: Connection) -> None:
    """Let this worker end when its parent does, however that ends; Ctrl-C is the parent's."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end() -> None:
        wait_for([parent])
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


# Dask.


@contextmanager
def dask_workers(address: str) -> Generator[Workers, None, None]:
    """Workers of a Dask cluster whose scheduler runs already, as in ``tcp://host:8786``.

    Raises
    ------
    IolabError : Dask is not installed.
    TestbedError : nothing answers there.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TestbedError(
            f"no Dask scheduler answers at {address} ({type(error).__name__})",
            "start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from None
    try:
        yield _of_client(client)
    finally:
        with suppress(Exception):  # A scheduler that is gone cannot be told.
            client.close(timeout=1)


@contextmanager
def local_dask_workers(n_workers: int) -> Generator[Workers, None, None]:
    """Dask workers on this machine, each a process.

    Raises
    ------
    IolabError : Dask is not installed.
    """
    distributed = _distributed()
    with (
        tempfile.TemporaryDirectory(prefix="iolab-dask-", ignore_cleanup_errors=True) as folder,
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield _of_client(client)


class _Client(Protocol):
    """Functions of a Dask client that are needed."""

    def nthreads(self) -> Mapping[str, int]:
        """Threads of each worker."""
        ...

    def get_executor(self, *, pure: bool) -> Executor:
        """Executor on the client's cluster."""
        ...


def _of_client(client: _Client) -> Workers:
    """Workers of a Dask client; a lost trial is no result to be looked up (``pure=False``)."""
    counted, asked_s = 0, -_COUNT_AGE_S

    def count() -> int:
        nonlocal counted, asked_s
        if time.monotonic() - asked_s >= _COUNT_AGE_S:
            with suppress(Exception):  # What is wrong is told by the trials.
                counted = sum(client.nthreads().values())
            asked_s = time.monotonic()
        return in_flight(counted)

    return Workers(client.get_executor(pure=False), count)


def _distributed() -> ModuleType:
    """Dask's scheduler and workers, which say nothing of their own.

    Raises
    ------
    IolabError : not installed.
    """
    try:
        import distributed  # pyright: ignore
    except ImportError:
        raise IolabError(
            "--executor dask needs Dask, which is not installed",
            "pip install 'iolab[dask]', or use --jobs N, which needs nothing",
        ) from None
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed
