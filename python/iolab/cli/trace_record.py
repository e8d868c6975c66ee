"""``iolab trace record``: block events of devices recorded into a file.

The agent, as root, records; the file is the user's, and is made here, under the rule for all files
that iolab writes. It has its name as soon as events are recorded, so that a killed recording leaves
what it has written. The command of ``--for`` is started here, with the rights of who asks.
"""

from __future__ import annotations

import argparse
import subprocess
import threading
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.errors import IolabError, TraceError
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.users_files import Allowed, filled_elsewhere, refuse_existing
from iolab.testbed.agent import Agent
from iolab.testbed.command import agent_command
from iolab.units import format_bytes_rounded, parse_bytes
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import EventSet, Progress, RecordSpec, TraceRecorded

_SETS: Final[dict[str, EventSet]] = {"full": "full", "issue-complete": "issue_complete"}
_SECONDS_MAX: Final = 30 * 86_400.0
_EXIT_COMMAND_FAILED: Final = 1


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the words of a recording."""
    parser.add_argument("devices", metavar="DEVICE", nargs="+", help="sda, /dev/nvme0n1, loop3")
    parser.add_argument(
        "-o", "--out", metavar="FILE", required=True, help="file to make, such as t.iotrace"
    )
    until = parser.add_mutually_exclusive_group()
    until.add_argument(
        "--for", dest="command", metavar="COMMAND", help="record while this shell command runs"
    )
    until.add_argument(
        "--seconds", metavar="N", help="record so long; without --for and --seconds: until Ctrl-C"
    )
    parser.add_argument(
        "--events",
        choices=sorted(_SETS),
        default="full",
        help="all block events, or only what devices were given and when they were done",
    )
    parser.add_argument(
        "--buffer", metavar="SIZE", default="8 MiB", help="kernel memory of each CPU (8 MiB)"
    )
    add_overwrite_flag(parser)


def record(arguments: argparse.Namespace, core: object, console: Console) -> int:
    """Record, and say what was recorded.

    Raises
    ------
    IolabError : the recording could not begin, or ended early; says what can be used.
    """
    del core
    limit_ns, buffer_bytes = _limit_ns(arguments.seconds), parse_bytes(arguments.buffer)
    out, allowed = Path.cwd() / arguments.out, Allowed.of(arguments.overwrite)
    refuse_existing([out], allowed)
    with pressed_by_signals() as switch:
        command = _Command(arguments.command, switch)
        with Agent(agent_command(needs_root=True), stop=command, tell=console.note) as agent:
            agent.hello(f"trace-{uuid.uuid4().hex[:12]}")
            with ExitStack() as held:
                with _told(out):
                    file = held.enter_context(filled_elsewhere(out, allowed))
                spec: RecordSpec = {
                    "devices": arguments.devices,
                    "output": {
                        "path": str(file.path),
                        "device": file.status.st_dev,
                        "inode": file.status.st_ino,
                    },
                    "events": _SETS[arguments.events],
                    "buffer_bytes": buffer_bytes,
                    "time_limit_ns": limit_ns,
                    "command": arguments.command,
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
            f"{arguments.out} is not the file any more that was recorded into: meanwhile another "
            "program removed it, moved it, or put another in its place",
            "record again, and leave that name alone until it is over",
        )
    return _tell(answer, arguments.out, console) or _tell_command(code, console)


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
        """How often the user asked, or 1 if the command has ended."""
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


def _tell(answer: TraceRecorded, out: str, console: Console) -> int:
    """Print what was recorded; returns the exit code."""
    recorded = answer["recorded"]
    for warning in answer.get("warnings", ()):
        console.note(f"iolab: note: {warning['message']}; {warning['hint']}")
    lost = {int(cpu): int(count) for cpu, count in recorded["lost"].items()}
    elapsed_s, cpu_s = recorded["elapsed_ns"] / 1e9, recorded["cpu_ns"] / 1e9
    size = format_bytes_rounded(recorded["bytes"])
    console.result(
        f"{', '.join(answer['devices'])}: {counted(recorded['events'], 'event')} in "
        f"{elapsed_s:.1f} s, {sum(lost.values()) or 'none'} lost; {out} has {size}"
    )
    console.result(
        f"recording took {cpu_s:.2f} s of CPU time ({cpu_s / max(elapsed_s, 1e-9):.1%} of a CPU)"
    )
    if lost:
        listed = ", ".join(f"CPU {cpu}: {count}" for cpu, count in sorted(lost.items()))
        console.note(
            f"iolab: note: events were lost ({listed}): stages of requests of that time are "
            "missing or belong to others; use a larger --buffer or --events issue-complete"
        )
    if recorded["problem"]:
        raise TraceError(
            f"{out} could not be written any more after {elapsed_s:.1f} s: {recorded['problem']}",
            "make room or name another place; what was recorded before can be read up to the last "
            "block",
        )
    if recorded["vanished"]:
        raise TraceError(
            f"{', '.join(recorded['vanished'])} went away while it was recorded",
            f"what was recorded before is in {out}",
        )
    return 0


def _tell_command(code: int, console: Console) -> int:
    if code == 0:
        return 0
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    console.note(f"iolab: note: the command {how}")
    return _EXIT_COMMAND_FAILED
