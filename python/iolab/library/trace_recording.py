"""Block events of devices recorded into a file.

The agent, as root, records; the file is the user's, and is made here, under the rule for all files
that iolab writes. It has its name as soon as events are recorded, so that a killed recording
leaves what it has written. A command that is recorded is started here, with the rights of who asks.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError, TraceError
from iolab.frozen import frozen
from iolab.library.block_traces import STANDARD
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.users_files import Allowed, filled_elsewhere, refuse_existing
from iolab.study.trace_words import typed_events
from iolab.testbed.agent import Agent
from iolab.testbed.command import agent_command
from iolab.units import parse_bytes

if TYPE_CHECKING:
    from iolab.protocol import Backend, KernelLayer, Progress, RecordSpec, TraceRecorded

_SECONDS_MAX: Final = 30 * 86_400.0
_PID_DIGITS: Final = 9
_END_S: Final = 5.0
_LOOK_S: Final = 0.2
"""Time after which it is looked whether another signal has come."""
_WAITING: Final = """
import ctypes, os, signal, socket, sys
gate = socket.socket(fileno=int(sys.argv[1]))
if sys.argv[2] == "bound":
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
gate.send(b"r")
if gate.recv(1):
    gate.close()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv("/bin/sh", ["/bin/sh", "-c", sys.argv[3]])
"""
"""A program that becomes the command when it is told to, and ends if nobody is there to tell it.

38 is `PR_SET_NO_NEW_PRIVS` of Linux include/uapi/linux/prctl.h.
"""


@frozen
class RecordingWords:
    """A recording as it is typed."""

    devices: tuple[str, ...]
    out: Path
    """The file to make."""
    command: str | None = None
    """Shell command whose end ends it."""
    seconds: str | None = None
    """Time that it takes; without both it lasts until Ctrl-C."""
    events: str = "full"
    """Words of `iolab.study.trace_words`, separated by commas."""
    backend: Backend = "auto"
    """Way of events to the recorder."""
    pids: tuple[str, ...] = ()
    """Processes whose system calls are recorded."""
    buffer: str = "8 MiB"
    """Kernel memory of each CPU."""
    overwrite: tuple[str, ...] = ()
    """Files of the user's own that may be replaced."""
    is_followed: bool = False
    """The processes are what it is about: it ends with them, and a command, whose output is not
    the answer, ends with it.
    """


@frozen
class RecordedTrace:
    """A recording that has ended."""

    answer: TraceRecorded
    command_code: int
    """Exit code of the command, negative for a signal; 0 if there was none."""


def typed_buffer(text: str) -> int:
    """Bytes of the kernel's memory that was typed.

    Raises
    ------
    TraceError : it is no size.
    """
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise TraceError(f"--buffer: {error}", "it is the kernel's memory for each CPU") from error


def record_trace(
    asked: RecordingWords,
    note: Callable[[str], None],
    begun: Callable[[], None] = lambda: None,
) -> RecordedTrace:
    """Record until the command ends, the time is over, or Ctrl-C.

    Parameters
    ----------
    asked : devices, file and limits.
    note : hears of what the agent has to say.
    begun : hears, perhaps several times, that events are recorded; before that no command runs.

    Raises
    ------
    IolabError : it could not begin, or ended early; says what can be used.
    """
    if str(asked.out) == STANDARD:
        raise TraceError(
            "a recording is written into a file, not to standard output",
            "name one; `iolab trace show FILE` prints it",
        )
    limit_ns, buffer_bytes = limit_ns_of(asked.seconds), typed_buffer(asked.buffer)
    events = typed_events(asked.events, "--events")
    layers = list(events.layers)
    pids = _pids(asked.pids, layers)
    out, allowed = Path.cwd() / asked.out, Allowed.of(asked.overwrite)
    refuse_existing([out], allowed)
    with pressed_by_signals() as switch:
        command = _Command(asked.command, switch, is_followed=asked.is_followed)
        with (
            command.ended(),
            Agent(agent_command(needs_root=True), stop=command, tell=note) as agent,
        ):
            agent.hello(f"trace-{uuid.uuid4().hex[:12]}")
            if asked.command is not None and layers and not pids:
                pids = [command.prepare()]
            with ExitStack() as held:
                with _told(out):
                    file = held.enter_context(filled_elsewhere(out, allowed))
                spec: RecordSpec = {
                    "devices": list(asked.devices),
                    "output": {
                        "path": str(file.path),
                        "device": file.status.st_dev,
                        "inode": file.status.st_ino,
                    },
                    "events": events.block,
                    "layers": layers,
                    "pids": pids,
                    "backend": asked.backend,
                    "buffer_bytes": buffer_bytes,
                    "time_limit_ns": limit_ns,
                    "command": asked.command,
                }

                def heed(progress: Progress) -> None:
                    if "recording" in progress:
                        begun()
                        with _told(out):
                            file.begin()
                    command.heed(progress)

                if asked.is_followed and asked.command is None:
                    command.watch_others(pids)
                answer = agent.record_trace(spec, heed)
                is_there = file.is_there()
        if switch.presses and (asked.seconds is not None or asked.command is not None):
            note("iolab: note: a signal ended the recording before its time was over")
        code = command.wait(note)
    if not is_there:
        raise TraceError(
            f"{asked.out} is not the file any more that was recorded into: meanwhile another "
            "program removed it, moved it, or put another in its place",
            "record again, and leave that name alone until it is over",
        )
    return RecordedTrace(answer, code)


@contextmanager
def _told(out: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise TraceError(
            f"{out} cannot be written: {error.strerror or error}", "name another place"
        ) from None


def _pids(asked: tuple[str, ...], layers: list[KernelLayer]) -> list[int]:
    if asked and not layers:
        raise IolabError(
            "--pid: block events are those of devices, whichever process they are for",
            "name other layers, too: --events block,syscalls",
        )
    for text in asked:
        if not text.isdecimal() or not text.isascii() or len(text) > _PID_DIGITS:
            raise IolabError(f"--pid {text}: that is no process", "write its number, see `ps`")
    return [int(text) for text in asked]


def limit_ns_of(text: str | None) -> int | None:
    """Nanoseconds of the words of ``--seconds``; None for None.

    Raises
    ------
    IolabError : that is no time.
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _SECONDS_MAX:
        raise IolabError(
            f"--seconds {text}: that is no time",
            "write seconds: 10, 0.5; at most 30 days",
        )
    return int(seconds * 1e9)


class _Command:
    """The command that is recorded, if there is one: its end is the wish to stop.

    It is the agent's `Stop`. Ctrl-C on a terminal reaches the command, too; that both end then
    counts as one press. One that `is_followed` has a process group of its own, which ends with the
    recording, and its output is on standard error.
    """

    def __init__(self, line: str | None, switch: StopSwitch, *, is_followed: bool = False) -> None:
        self._line = line
        self._is_followed = is_followed
        self._is_ended_here = False
        self._switch = switch
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: threading.Thread | None = None
        self._is_over = False
        self._gate: socket.socket | None = None

    @property
    def presses(self) -> int:
        """Number of times that the user asked, or 1 if the command has ended."""
        return self._switch.presses or int(self._is_over)

    def fileno(self) -> int:
        """Descriptor that becomes readable at a press."""
        return self._switch.fileno()

    def drain(self) -> None:
        """Make the descriptor unreadable until the next press."""
        self._switch.drain()

    def heed(self, progress: Progress) -> None:
        """Start the command when events are recorded."""
        if "recording" not in progress or self._line is None:
            return
        if self._gate is not None:
            with self._gate as gate:
                gate.send(b"g")
            self._gate = None
            self._watch_it()
            return
        if self._process is not None:
            return
        self._process = subprocess.Popen(["/bin/sh", "-c", self._line])
        self._watch_it()

    def prepare(self) -> int:
        """Start the command without letting it begin; the number of its process.

        A user's command can gain no other rights from here on: what it does is recorded, and what
        programs of others do is nobody's business.
        """
        bound = "free" if os.geteuid() == 0 else "bound"
        ours, its = socket.socketpair()
        with its:
            words = ["-I", "-S", "-c", _WAITING, str(its.fileno()), bound, self._line or ":"]
            argv = [sys.executable, *words]
            self._process = subprocess.Popen(
                argv,
                pass_fds=[its.fileno()],
                start_new_session=self._is_followed,
                stdout=sys.stderr.fileno() if self._is_followed else None,
            )
        self._gate = ours
        if not ours.recv(1):
            raise TraceError("the command could not be started", "try it without recording")
        return self._process.pid

    @contextmanager
    def ended(self) -> Generator[None]:
        """Leave no command behind that has never begun."""
        try:
            yield
        except BaseException:
            if self._is_followed and self._watcher is not None and not self._is_over:
                self._signal(signal.SIGKILL)
            raise
        finally:
            if self._gate is not None and self._process is not None:
                self._gate.close()
                self._process.wait()

    def _watch_it(self) -> None:
        assert self._process is not None
        self._watcher = threading.Thread(target=self._watch, args=(self._process,), daemon=True)
        self._watcher.start()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._is_over = True
        with suppress(OSError):  # Of a recording that failed the switch is closed already.
            self._switch.wake()

    def watch_others(self, pids: Sequence[int]) -> None:
        """Be over when processes that were there before have ended."""
        handles: list[int] = []
        for pid in pids:
            with suppress(OSError):  # The agent says which of them is not there.
                handles.append(os.pidfd_open(pid))
        if len(handles) < len(pids):
            for handle in handles:
                os.close(handle)
        else:
            watcher = threading.Thread(target=self._watch_handles, args=(handles,), daemon=True)
            watcher.start()

    def _watch_handles(self, handles: list[int]) -> None:
        for handle in handles:
            select.select([handle], [], [])
            os.close(handle)
        self._is_over = True
        with suppress(OSError):
            self._switch.wake()

    def wait(self, note: Callable[[str], None]) -> int:
        """Exit code of the command, 0 if there is none or if it was ended here.

        Waits for its end; one that is followed ends now. Where a signal ended the recording alone,
        a further one ends the command.
        """
        if self._process is None or self._watcher is None:
            return 0
        if self._is_followed:
            self._end()
        seen = self._switch.presses
        if seen:
            self._watcher.join(_END_S)
            if not self._is_over:
                note("iolab: note: the command still runs; another signal ends it")
        while self._watcher.is_alive():
            self._watcher.join(_LOOK_S)
            if self._switch.presses > seen:
                (self._process.kill if seen > 1 else self._process.terminate)()
                seen = self._switch.presses
        return 0 if self._is_ended_here else self._process.wait()

    def _end(self) -> None:
        """End the command and what it started in its group: they were followed long enough."""
        assert self._process is not None
        assert self._watcher is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self._is_over:
                return
            self._is_ended_here = True
            self._signal(number)
            self._watcher.join(_END_S)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
