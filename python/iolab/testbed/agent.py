"""Client of iolab-agent: one JSON object per line, one request at a time.

The protocol is `docs/design/0002-agent-protocol.md`. The agent lives in a process group of its own,
so that Ctrl-C on the terminal reaches only this process, which then asks politely. If this process
dies, the agent sees the end of its input and restores the machine.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Final, NoReturn, Protocol, Self, TypeAlias, TypedDict, cast

from iolab.errors import IolabError, RefusedError, RestoreError, StoppedError, TestbedError
from iolab.frozen import frozen
from iolab.readable import wait_readable
from iolab.testbed.stopped import stopped_process
from iolab.visible import visible_line
from iolab.wording import counted, is_or_are

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.protocol import (
        Action,
        BoundaryOf,
        Check,
        Checks,
        Closed,
        ErrorBody,
        Greeted,
        Method,
        OpenedTestbed,
        OpenJournal,
        Progress,
        Record,
        RecordSpec,
        Restored,
        ShutDown,
        TraceRecorded,
        TrialSpec,
        WatchSpec,
    )

PROTOCOL_VERSION: Final = 1
RESTORE_PATIENCE_S: Final = 60.0
"""Time that the agent may take to kill a trial, unmount and restore."""
STOPPED_LOOK_S: Final = 2.0
"""Pause between looks at an agent that is waited for, to see if it was stopped."""
_EXIT_RESTORE_INCOMPLETE: Final = 3
_STDERR_LINES: Final = 20
_CHUNK_BYTES: Final = 1 << 16
_ANSWER_BYTES_MAX: Final = 64 << 20
"""Of one line; the record of an hour has a few MiB."""
_INTEGERS: Final = range(-(1 << 63), 1 << 64)
"""Whole numbers of a message: what 64 bits hold."""
_PRESSES_MEANING_NOW: Final = 2
_INTERRUPTIBLE: Final = ("run_trial", "open_testbed", "record_trace", "watch_trace")
_STOPPED_WARNING: Final[protocol.Warning] = {
    "code": "stopped",
    "message": "the agent or its measuring was stopped by a signal during the trial",
    "hint": "do not trust its times; run the study again",
}

OnProgress: TypeAlias = "Callable[[Progress], None]"


class _Line(TypedDict, total=False):
    """A line of the agent: an answer, an error or an event."""

    id: int
    result: object
    error: ErrorBody
    event: str
    params: Progress


class Stop(Protocol):
    """The user's wish to stop: readable when a press happened."""

    @property
    def presses(self) -> int:
        """Number of times that the user asked."""
        ...

    def fileno(self) -> int:
        """Descriptor that becomes readable at a press."""
        ...

    def drain(self) -> None:
        """Make the descriptor unreadable until the next press."""
        ...


@frozen
class Hello:
    """Identity of an agent: version, rights, and what an earlier run left behind."""

    version: str
    is_root: bool
    boot_id: str
    open_journals: tuple[OpenJournal, ...]
    boundary: BoundaryOf | None = None
    """For whom and by which policy an agent works that another user started through sudo."""


@frozen
class OpenTestbed:
    """A prepared testbed, as the agent describes it."""

    class_letter: str
    directory: str
    devices: tuple[str, ...]
    knob_devices: tuple[str, ...]
    schedulers: tuple[str, ...]
    warnings: tuple[protocol.Warning, ...]
    actions: tuple[Action, ...]
    description: Mapping[str, object]
    """The whole answer, to be stored."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts that were found; empty in a simulation."""
        return cast("Mapping[str, str]", self.description.get("facts") or {})


class AgentError(TestbedError):
    """The agent answered a request with an error that concerns only this request."""


class LostAgentError(TestbedError):
    """The agent is gone, with whatever it was doing."""

    def with_next_step(self, step: str) -> LostAgentError:
        """The same, telling what to type when the machine has been looked at."""
        if self.hint.endswith(step):
            return self
        return LostAgentError(self.message, f"{self.hint}, then {step}")


class Agent:
    """A running agent; a context manager that shuts it down, restoring whatever it changed."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stop: Stop | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._stop = stop
        self._tell = tell
        self._stopped: int | None = None
        self._was_stopped = False
        self._looked_at_s = time.monotonic()
        self._next_id = 1
        self._begun = bytearray()
        """Line that has not ended yet."""
        self._lines = deque[bytes]()
        self._is_interrupt_sent = False
        self._is_restoring = False
        self._unrestored = list[str]()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            raise TestbedError(
                f"{command[-1]} cannot be started: {error}", "see `iolab doctor`"
            ) from None
        self._stderr_tail = deque[str](maxlen=_STDERR_LINES)
        self._stderr_reader = threading.Thread(target=self._collect_stderr, daemon=True)
        self._stderr_reader.start()

    def __enter__(self) -> Self:
        """Return the agent itself."""
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Shut down; on the way out of an error, the end of input makes the agent restore."""
        if self._process.poll() is None and error_type is None:
            self.shutdown()
        else:
            self._end_input()
            is_told = error_type is not None and issubclass(error_type, RestoreError)
            is_told = is_told or self._is_restoring
            if self._process.returncode == _EXIT_RESTORE_INCOMPLETE and not is_told:
                _refuse_unrestored([])

    @property
    def process(self) -> int:
        """Process of the agent, or of who started it as root."""
        return self._process.pid

    # Requests.

    def hello(self, run_id: str, *, is_dry_run: bool = False) -> Hello:
        """Agree on the protocol.

        Raises
        ------
        TestbedError : the agent speaks another version.
        """
        asked: protocol.Hello = {
            "protocol": PROTOCOL_VERSION,
            "run": run_id,
            "is_dry_run": is_dry_run,
            "state_dir": None,
        }
        answer = cast("Greeted", self._request("hello", asked))
        if answer.get("protocol") != PROTOCOL_VERSION:
            raise TestbedError(
                f"iolab-agent speaks protocol {answer.get('protocol')}, this program "
                f"{PROTOCOL_VERSION}",
                "install both from the same version: `pip install .`",
            )
        return Hello(
            version=str(answer.get("version", "")),
            is_root=bool(answer.get("is_root")),
            boot_id=str(answer.get("boot_id", "")),
            open_journals=tuple(answer.get("open_journals", ())),
            boundary=answer.get("boundary"),
        )

    def doctor(self, paths: Sequence[str]) -> list[Check]:
        """Checks of what is possible and what is noisy on this machine."""
        return cast("Checks", self._request("doctor", {"paths": list(paths)}))["checks"]

    def open_testbed(
        self, spec: Mapping[str, object], on_progress: OnProgress | None = None
    ) -> OpenTestbed:
        """Prepare a testbed."""
        answer = cast("OpenedTestbed", self._request("open_testbed", spec, on_progress))
        return OpenTestbed(
            class_letter=str(answer.get("class", "")),
            directory=str(answer.get("directory", "")),
            devices=tuple(answer.get("devices", ())),
            knob_devices=tuple(answer.get("knob_devices", ())),
            schedulers=tuple(answer.get("schedulers", ())),
            warnings=tuple(answer.get("warnings", ())),
            actions=tuple(answer.get("actions", ())),
            description=cast("Mapping[str, object]", answer),
        )

    def run_trial(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """Run one trial; returns its record.

        Raises
        ------
        AgentError : this trial failed; the next may succeed.
        TestbedError : the agent is gone, or refused for good.
        StoppedError : the user asked twice; the machine has been restored.
        """
        self._was_stopped = False
        record = cast("Record", self._request("run_trial", spec, on_progress))
        if self._was_stopped:
            record.setdefault("warnings", []).append(_STOPPED_WARNING)
        return record

    def record_trace(
        self, spec: RecordSpec, on_progress: OnProgress | None = None
    ) -> TraceRecorded:
        """Record block events until the user stops it, or its time is over.

        Raises
        ------
        AgentError : it could not begin, or the recorder failed.
        RefusedError : the device or the file is not for this user.
        """
        return cast("TraceRecorded", self._request("record_trace", spec, on_progress))

    def watch_trace(self, spec: WatchSpec, on_progress: OnProgress | None = None) -> TraceRecorded:
        """Watch devices until the user stops it, or its time is over; progress has each second.

        Raises
        ------
        AgentError : it could not begin, or the recorder failed.
        RefusedError : the device is not for this user.
        """
        return cast("TraceRecorded", self._request("watch_trace", spec, on_progress))

    def proceed(self) -> None:
        """Let the running trial, which waits, begin its next phase."""
        self._send("proceed", {})

    def close_testbed(self, on_progress: OnProgress | None = None) -> Closed:
        """Take the testbed apart and restore what was changed.

        Raises
        ------
        RestoreError : something could not be put back.
        """
        answer = cast("Closed", self._request("close_testbed", {}, on_progress))
        if not answer.get("is_restored", False):
            _refuse_unrestored(answer.get("problems", []))
        return answer

    def restore(self, run_id: str | None = None) -> Restored:
        """Undo what earlier runs left behind.

        From now on the caller reports what is left, see `unrestored`; ending raises nothing.
        """
        self._is_restoring = True
        answer = cast("Restored", self._request("restore", {"run": run_id}))
        self._unrestored.extend(answer.get("problems", []))
        return answer

    @property
    def unrestored(self) -> tuple[str, ...]:
        """After the end of an agent that restored: what could not be put back."""
        if self._unrestored or self._process.returncode != _EXIT_RESTORE_INCOMPLETE:
            return tuple(self._unrestored)
        return (" | ".join(self._stderr_tail) or "iolab-agent did not say what",)

    def shutdown(self) -> None:
        """End the agent.

        Raises
        ------
        RestoreError : something could not be put back.
        """
        try:
            problems = cast("ShutDown", self._request("shutdown", {})).get("problems", [])
        finally:
            self._end_input()
        if self._is_restoring:
            new = (problem for problem in problems if problem not in self._unrestored)
            self._unrestored.extend(new)
        elif problems or self._process.returncode == _EXIT_RESTORE_INCOMPLETE:
            _refuse_unrestored(problems)

    # One request and its answer.

    def _request(
        self, method: Method, params: Mapping[str, object], on_progress: OnProgress | None = None
    ) -> object:
        request_id = self._send(method, params)
        while True:
            message = self._receive(method)
            if "event" in message:
                progress = message.get("params")
                if on_progress is not None and progress and message["event"] == "progress":
                    on_progress(progress)
            elif message.get("id") == request_id:
                if "error" in message:
                    _raise_agent_error(message["error"])
                return message.get("result", {})

    def _send(self, method: Method, params: Mapping[str, object]) -> int:
        request_id, self._next_id = self._next_id, self._next_id + 1
        line = json.dumps({"id": request_id, "method": method, "params": params}) + "\n"
        stdin = self._process.stdin
        assert stdin is not None, "the agent is started with a pipe"
        try:
            view = memoryview(line.encode())
            while view:
                view = view[stdin.write(view) :]
        except (BrokenPipeError, ValueError):
            self._raise_dead(method)
        return request_id

    def _receive(self, method: str) -> _Line:
        """Next message; turns presses of the stop switch into requests to the agent."""
        while not self._lines:
            self._heed_stop(method)
            chunk = self._read_chunk()
            if chunk is None:
                continue
            if not chunk:
                self._raise_dead(method)
            self._take(chunk)
            if len(self._begun) > _ANSWER_BYTES_MAX:
                self._refuse_answer(method, bytes(self._begun))
        line = self._lines.popleft()
        try:
            message = json.loads(
                line, parse_int=_whole, parse_float=_finite, parse_constant=_finite
            )
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self._refuse_answer(method, line)
        return cast("_Line", message)

    def _take(self, chunk: bytes) -> None:
        """Add the lines that end in a piece of output."""
        first, *others = chunk.split(b"\n")
        self._begun += first
        for other in others:
            if self._begun.strip():
                self._lines.append(bytes(self._begun))
            self._begun = bytearray(other)

    def _refuse_answer(self, method: str, line: bytes) -> NoReturn:
        """End an agent whose answers cannot be used; nobody reads more of them."""
        assert self._process.stdout is not None, "the agent is started with a pipe"
        self._process.stdout.close()
        self._end_input()
        shown = visible_line(line[:60].decode(errors="replace"))
        raise TestbedError(
            f"iolab-agent answered {method} with something that is not a message: '{shown}'",
            "check with `iolab restore`, and please report this",
        )

    def _read_chunk(self) -> bytes | None:
        """Bytes from the agent, empty at its end, or None if there are none yet."""
        stdout = self._process.stdout
        assert stdout is not None, "the agent is started with a pipe"
        sources: list[IO[bytes] | Stop] = [stdout] if self._stop is None else [stdout, self._stop]
        ready = wait_readable(sources, STOPPED_LOOK_S)
        self._look_for_stopped()
        if self._stop is not None and self._stop in ready:
            self._stop.drain()
            return None
        if not ready:
            return None
        return os.read(stdout.fileno(), _CHUNK_BYTES)

    def _look_for_stopped(self) -> None:
        """Say once that the agent, or its measuring, was stopped; and once that it goes on."""
        now_s = time.monotonic()
        if self._tell is None or now_s - self._looked_at_s < STOPPED_LOOK_S:
            return
        self._looked_at_s = now_s
        before, self._stopped = self._stopped, stopped_process(self._process.pid)
        if self._stopped == before:
            return
        if self._stopped is None:
            self._tell(f"iolab: process {before} goes on")
        else:
            self._was_stopped = True
            self._tell(
                f"iolab: iolab-agent (process {self._stopped}) was stopped by a signal; nothing "
                f"happens until it goes on: kill -CONT {self._stopped}"
            )

    def _heed_stop(self, method: str) -> None:
        if self._stop is None:
            return
        presses = self._stop.presses
        if presses >= _PRESSES_MEANING_NOW:
            self._end_input()
            if self._process.returncode == _EXIT_RESTORE_INCOMPLETE:
                _refuse_unrestored([])
            raise StoppedError("stopped at once; the machine was restored")
        if presses and method in _INTERRUPTIBLE and not self._is_interrupt_sent:
            self._is_interrupt_sent = True
            self._send("interrupt", {})

    # The end.

    def _end_input(self) -> None:
        """Close the agent's input, which makes it restore and exit; wait for that."""
        assert self._process.stdin is not None, "the agent is started with a pipe"
        assert self._process.stdout is not None, "the agent is started with a pipe"
        self._process.stdin.close()
        deadline = time.monotonic() + RESTORE_PATIENCE_S
        interrupt: KeyboardInterrupt | None = None
        while self._process.returncode is None and time.monotonic() < deadline:
            try:
                self._process.wait(min(STOPPED_LOOK_S, max(0, deadline - time.monotonic())))
            except KeyboardInterrupt as error:
                interrupt = error  # It is heeded once the machine is restored.
            except subprocess.TimeoutExpired:
                self._look_for_stopped()
        if self._process.poll() is None:
            raise RestoreError(
                f"iolab-agent (process {self._process.pid}) has not finished restoring after "
                f"{RESTORE_PATIENCE_S:.0f} s",
                "leave it running, then check with `iolab restore`",
            )
        self._process.stdout.close()
        self._stderr_reader.join(timeout=1)
        if interrupt is not None:
            raise interrupt

    def _raise_dead(self, method: str) -> NoReturn:
        self._end_input()
        code = self._process.returncode
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        tail = " | ".join(self._stderr_tail)
        message = f"iolab-agent {how} during {method}" + (f" ({tail})" if tail else "")
        if code == _EXIT_RESTORE_INCOMPLETE:
            hint = "correct the cause it names" if self._is_restoring else "run `iolab restore`"
            raise RestoreError(message, hint)
        raise LostAgentError(
            message, "check with `iolab restore`: it undoes what the watchdog has not"
        )

    def _collect_stderr(self) -> None:
        assert self._process.stderr is not None, "the agent is started with a pipe"
        with io.TextIOWrapper(self._process.stderr, errors="replace") as lines:
            for line in lines:
                if line.strip():
                    self._stderr_tail.append(visible_line(line.strip()))


def _raise_agent_error(error: ErrorBody) -> NoReturn:
    code = error.get("code")
    message = visible_line(str(error.get("message", "unknown error")))
    hint = visible_line(str(error.get("hint", "") or ""))
    kinds: dict[str | None, type[IolabError]] = {
        "usage": TestbedError,
        "refused": RefusedError,
        "failed": AgentError,
        "restore_incomplete": RestoreError,
        "interrupted": StoppedError,
    }
    raise kinds.get(code, TestbedError)(message, hint)


def _refuse_unrestored(problems: Sequence[str]) -> NoReturn:
    listed = "; ".join(describe_problem(problem) for problem in problems)
    raise RestoreError(
        "not everything could be put back" + (f": {listed}" if listed else ""),
        "run `iolab restore`",
    )


def left_behind_text(journals: Sequence[OpenJournal]) -> str:
    """Sentence about the number of earlier runs that left changes, and of the changes."""
    n_changes = sum(int(journal.get("entries", 0)) for journal in journals)
    runs = "an earlier run" if len(journals) == 1 else f"{len(journals)} earlier runs"
    if n_changes == 1:
        return f"{runs} left a change that is not undone"
    return f"{runs} left {counted(n_changes, 'change')} that {is_or_are(n_changes)} not undone"


def describe_problem(problem: object) -> str:
    """One line for an entry of ``problems``, whether a text or a warning object."""
    if isinstance(problem, Mapping):
        fields: Mapping[str, object] = problem  # pyright: ignore[reportUnknownVariableType]
        return str(fields.get("message") or json.dumps(dict(fields)))
    return str(problem)


def _whole(text: str) -> int:
    """A whole number of a message.

    Raises
    ------
    ValueError : it has more than 64 bits.
    """
    number = int(text)
    if number not in _INTEGERS:
        raise ValueError(text)
    return number


def _finite(text: str) -> float:
    """A number of a message.

    Raises
    ------
    ValueError : it is infinite, or none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
