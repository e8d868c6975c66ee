"""Block events of devices recorded into a file.

The agent, as root, records; the file is the user's, and is made here, under the rule for all files
that iolab writes. It has its name as soon as events are recorded, so that a killed recording
leaves what it has written. A command that is recorded is started here, with the rights of who asks.
"""

from __future__ import annotations

import subprocess
import threading
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError, TraceError
from iolab.frozen import frozen
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.users_files import Allowed, filled_elsewhere, refuse_existing
from iolab.testbed.agent import Agent
from iolab.testbed.command import agent_command
from iolab.units import parse_bytes

if TYPE_CHECKING:
    from iolab.protocol import EventSet, Progress, RecordSpec, TraceRecorded

EVENT_SETS: Final[dict[str, EventSet]] = {"full": "full", "issue-complete": "issue_complete"}
"""Sets of events by the names that users give them."""
_SECONDS_MAX: Final = 30 * 86_400.0


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
    """One of `EVENT_SETS`."""
    buffer: str = "8 MiB"
    """Kernel memory of each CPU."""
    overwrite: tuple[str, ...] = ()
    """Files of the user's own that may be replaced."""


@frozen
class RecordedTrace:
    """A recording that has ended."""

    answer: TraceRecorded
    command_code: int
    """Exit code of the command, negative for a signal; 0 if there was none."""


def record_trace(asked: RecordingWords, note: Callable[[str], None]) -> RecordedTrace:
    """Record until the command ends, the time is over, or Ctrl-C.

    Parameters
    ----------
    asked : devices, file and limits.
    note : hears of what the agent has to say.

    Raises
    ------
    IolabError : it could not begin, or ended early; says what can be used.
    """
    limit_ns, buffer_bytes = _limit_ns(asked.seconds), parse_bytes(asked.buffer)
    out, allowed = Path.cwd() / asked.out, Allowed.of(asked.overwrite)
    refuse_existing([out], allowed)
    with pressed_by_signals() as switch:
        command = _Command(asked.command, switch)
        with Agent(agent_command(needs_root=True), stop=command, tell=note) as agent:
            agent.hello(f"trace-{uuid.uuid4().hex[:12]}")
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
                    "events": EVENT_SETS[asked.events],
                    "buffer_bytes": buffer_bytes,
                    "time_limit_ns": limit_ns,
                    "command": asked.command,
                }

                def heed(progress: Progress) -> None:
                    if "recording" in progress:
                        with _told(out):
                            file.begin()
                    command.heed(progress)

                answer = agent.record_trace(spec, heed)
                is_there = file.is_there()
        code = command.wait()
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


def _limit_ns(text: str | None) -> int | None:
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
    counts as one press.
    """

    def __init__(self, line: str | None, switch: StopSwitch) -> None:
        self._line = line
        self._switch = switch
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: threading.Thread | None = None
        self._is_over = False

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
        if "recording" not in progress or self._process is not None or self._line is None:
            return
        self._process = subprocess.Popen(["/bin/sh", "-c", self._line])
        self._watcher = threading.Thread(target=self._watch, args=(self._process,), daemon=True)
        self._watcher.start()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._is_over = True
        with suppress(OSError):  # Of a recording that failed the switch is closed already.
            self._switch.wake()

    def wait(self) -> int:
        """Exit code of the command, 0 if there is none; waits for its end."""
        if self._process is None or self._watcher is None:
            return 0
        self._watcher.join()
        return self._process.wait()
