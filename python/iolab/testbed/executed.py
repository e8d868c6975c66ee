"""Simulated trials on an executor, with the face of the runner that simulates in this process.

Trials are handed out ahead of their turn; who conducts the study still asks for one after the
other and gets its record when it is there. So order, stopping rules and what is stored are those
of a run in one process, whatever the workers do. A trial whose worker dies is handed out again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self, cast

from iolab.errors import IolabError, StoppedError, TestbedError
from iolab.json_text import write_json
from iolab.testbed.agent import AgentError, OnProgress, Stop
from iolab.testbed.executors import OpenWorkers, Workers
from iolab.testbed.sim import SimRunner
from iolab.version import iolab_version

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import Record, TrialSpec

LOSSES_MAX: Final = 4
"""Times that a trial may lose its worker; Dask itself gives up after as many."""
_LOOK_S: Final = 0.1
"""Pause between looks at the user's wish to stop."""
_PRESSES_MEANING_NOW: Final = 2
_LOST_BY_DASK: Final = ("KilledWorker", "FutureCancelledError", "FuturesCancelledError")


def simulated(stack_json: str, spec_json: str, version: str) -> str:
    """Record of a trial, as JSON: a pure function but for the time of day, called in a worker.

    Parameters
    ----------
    stack_json, spec_json : as `iolab._core.simulate_trial` takes them.
    version : iolab's, where the study is conducted.

    Raises
    ------
    TestbedError : the worker has another version.
    StudyError : the trial cannot be simulated.
    """
    from iolab import _core

    if iolab_version() != version:
        raise TestbedError(
            f"a worker has iolab {iolab_version()}, and the study is conducted by {version}",
            "install the same version of iolab where the workers run",
        )
    return _core.simulate_trial(stack_json, cast("JsonText[TrialSpec]", spec_json), None)


class ExecutedRunner(SimRunner):
    """Runs trials on an executor.

    Parameters
    ----------
    open_workers : opens the executor.
    stop : the user's wish to stop: once lets trials end that a worker has, twice ends at once.
    """

    def __init__(self, open_workers: OpenWorkers, *, stop: Stop | None = None) -> None:
        super().__init__(stop=stop)
        self._open_workers = open_workers
        self._stack = ExitStack()
        self._workers: Workers | None = None
        self._ahead: Iterator[TrialSpec] | None = None
        self._handed_out = dict[str, Future[str]]()

    def __enter__(self) -> Self:
        """Open the executor."""
        self._workers = self._stack.enter_context(self._open_workers())
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Give up what was handed out, and close the executor."""
        for future in self._handed_out.values():
            future.cancel()
        self._stack.close()

    def announce(self, specs: Iterator[TrialSpec]) -> None:
        """Take the trials that will be asked for next, in their order."""
        self._ahead = specs

    def begun(self) -> list[str]:
        """Trials that workers have, or have finished, and that nobody has asked for yet.

        Those that no worker has begun are taken back.
        """
        self._take_back()
        return list(self._handed_out)

    def run_trial(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """Wait for the record of one trial; returns it.

        Raises
        ------
        AgentError : its workers died again and again.
        TestbedError : the executor, or a worker, cannot be used.
        StudyError : the workload or a knob cannot be simulated.
        StoppedError : the user asked twice.
        """
        if self._is_dry_run or self._ahead is None:
            return super().run_trial(spec, on_progress)
        if on_progress is not None:
            on_progress({"phase": "simulating", "message": ""})
        self._hand_out()
        future = self._handed_out.pop(spec["trial"], None) or self._submitted(spec)
        n_losses = 0
        while True:
            try:
                return self._understood(spec, self._waited_for(future))
            except (BrokenExecutor, CancelledError) as error:
                if self._presses() and future.cancelled():
                    return _interrupted(spec)
                n_losses += 1
                self._refuse_lost(spec, n_losses, error)
                future = self._submitted(spec)

    def _hand_out(self) -> None:
        """Hand out trials until the workers have enough."""
        if self._presses() or self._ahead is None or self._workers is None:
            return
        most = self._workers.in_flight()
        while len(self._handed_out) < most:
            spec = next(self._ahead, None)
            if spec is None:
                return
            self._handed_out[spec["trial"]] = self._submitted(spec)

    def _submitted(self, spec: TrialSpec) -> Future[str]:
        if self._workers is None:
            raise AssertionError("the runner is not open")
        words = (self._stack_json, write_json(spec), iolab_version())
        try:
            return self._workers.executor.submit(simulated, *words)
        except Exception as error:
            raise _unusable(error) from error

    def _waited_for(self, future: Future[str]) -> str:
        """Text that a worker returned; the user's wish to stop is heard meanwhile.

        Raises
        ------
        BrokenExecutor, CancelledError : the worker is lost.
        """
        is_told = False
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError as error:
                if future.done() and not future.cancelled() and future.exception() is error:
                    raise _failed_worker(error) from error
            except (BrokenExecutor, CancelledError, IolabError):
                raise
            except Exception as error:
                if type(error).__name__ in _LOST_BY_DASK:
                    raise BrokenExecutor(str(error)) from error
                raise _failed_worker(error) from error
            if self._presses() >= _PRESSES_MEANING_NOW:
                raise StoppedError("stopped at once; a simulation leaves nothing behind")
            if self._presses() and not is_told:
                is_told = True
                self._take_back()
                future.cancel()

    def _take_back(self) -> None:
        """Take back the trials that no worker has begun."""
        self._handed_out = {
            trial: future for trial, future in self._handed_out.items() if not future.cancel()
        }

    def _understood(self, spec: TrialSpec, text: object) -> Record:
        try:
            record = json.loads(cast("str", text))
            if record["trial"] == spec["trial"]:
                return cast("Record", record)
        except (TypeError, ValueError, KeyError):
            pass
        raise TestbedError(
            f"the executor lost the record of {spec['trial']}: it returned {str(text)[:60]!r}",
            "finished trials are kept; continue with another executor and --resume",
        )

    def _refuse_lost(self, spec: TrialSpec, n_losses: int, error: BaseException) -> None:
        """Give up a trial that loses every worker, and an executor that loses every trial."""
        if n_losses < LOSSES_MAX:
            return
        if isinstance(error, CancelledError):
            raise _unusable(error) from error
        raise AgentError(
            f"{n_losses} workers died while they had {spec['trial']}",
            "they were killed, or had too little memory",
        ) from error


def _interrupted(spec: TrialSpec) -> Record:
    """Record of a trial that the user stopped before a worker had it."""
    return {
        "trial": spec["trial"],
        "status": "interrupted",
        "error": None,
        "started_at_unix_ns": 0,
        "elapsed_ns": 0,
        "engine": spec["workload"]["engine"],
        "knobs": {},
        "stack": None,
        "facts": {},
        "warnings": [],
        "actions": [],
        "phases": [],
    }


def _unusable(error: BaseException) -> TestbedError:
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return TestbedError(
        f"the executor takes no trials any more ({told.rstrip(': ')})",
        "finished trials are kept; start its scheduler and workers, then continue with --resume",
    )


def _failed_worker(error: BaseException) -> TestbedError:
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return TestbedError(
        f"a worker cannot simulate ({told})",
        "install the same version of iolab where the workers run",
    )
