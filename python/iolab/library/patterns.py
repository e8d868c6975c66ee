"""Access patterns of applications: from traces that exist, or of a program that is followed.

A program is followed by strace, with the rights of who asks, or by the kernel's trace points, which
the agent reads as root.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from iolab.errors import IolabError, TraceError
from iolab.frozen import frozen
from iolab.library.block_traces import STANDARD, Traced, inputs_of
from iolab.library.services import Services
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.users_files import Allowed, opened_new, refuse_existing

if TYPE_CHECKING:
    from iolab.library.trace_tables import Inputs
    from iolab.protocol import PatternFoundAnswer, PatternQuestion

Form: TypeAlias = Literal["study", "fio", "iozone"]
"""Form of a workload that does what a trace shows."""
Way: TypeAlias = Literal["tracepoints", "strace"]
"""Way to follow a program."""
Tell: TypeAlias = Callable[[str], None]
"""Hears what there is to say meanwhile."""

FILES_SHOWN: Final = 12
"""Files that are listed unless all are wanted."""
_OPTIONS: Final = ("-f", "-y", "-v", "-ttt", "-T", "-s", "0")
"""Options of strace(1): children, paths, whole lists, times, durations, no contents.

Without ``-v`` it leaves out the requests of ``io_submit`` beside ``-s 0``.
"""
_POLL_S: Final = 0.1
_END_S: Final = 5.0


class _Core(Protocol):
    """Functions of the extension about patterns."""

    def pattern_of(self, inputs: Inputs, question: str, /) -> str: ...
    def pattern_calls(self) -> str: ...


@frozen
class PatternsWanted:
    """Wishes of who asks for patterns."""

    only: str = ""
    """Only files whose names have this in them."""
    is_all: bool = False
    """All files, not only those with the most bytes."""
    has_pictures: bool = True
    """Pictures in the text."""
    form: Form | None = None
    """Form of a workload that is wanted, too."""

    def question(self) -> PatternQuestion:
        """The question as the extension takes it."""
        return {
            "only": self.only,
            "files_max": None if self.is_all else FILES_SHOWN,
            "has_pictures": self.has_pictures,
            "form": self.form,
        }


@frozen
class Followed:
    """A program that is followed."""

    command: str | None = None
    """Shell command that is started."""
    pids: tuple[str, ...] = ()
    """Processes that run already."""
    seconds: float | None = None
    """Time after which they are left alone; None: until they end, or Ctrl-C."""
    keep: Path | None = None
    """File for the calls, as text of strace or as recording; None keeps none."""
    overwrite: tuple[str, ...] = ()
    """Files of the user's own that may be replaced."""
    way: Way | None = None
    """Way; None: strace for a command where it is installed, as it sees every name; else trace
    points where they may be used.
    """


def patterns_of(traced: Traced, wanted: PatternsWanted, services: Services) -> PatternFoundAnswer:
    """Find the access patterns in the files of a trace.

    Parameters
    ----------
    traced : texts of strace or truss (one, or one of each thread by ``strace -ff``), or a block
        trace in any format that `iolab trace` reads.
    wanted : which files, and what beside the figures.
    services : the compiled half.

    Raises
    ------
    TraceError : no file is a trace.
    """
    core = cast("_Core", services.load_core())
    with inputs_of(traced) as inputs:
        return json.loads(core.pattern_of(inputs, json.dumps(wanted.question())))


def follow(
    followed: Followed, wanted: PatternsWanted, services: Services, tell: Tell
) -> tuple[PatternFoundAnswer, int]:
    """Find the access patterns of a program while it runs.

    Parameters
    ----------
    followed : the program, and how it is followed.
    wanted : which files, and what beside the figures.
    services : the compiled half.
    tell : hears which way was taken and why, unless it was asked for.

    Returns
    -------
    tuple : the patterns, and the exit code of the command; 0 if there was none, or if its time was
        over.

    Raises
    ------
    IolabError : strace is missing, or the process may not be followed; the file to keep exists.
    TraceError : nothing was recorded.
    """
    if followed.keep is not None:
        refuse_existing([followed.keep], Allowed.of(followed.overwrite))
    for pid in followed.pids:
        _checked(pid)
    if _is_by_strace(followed):
        return _follow_by_strace(followed, wanted, services)
    from iolab.library.point_recording import PointsUnusable, record_calls

    try:
        with record_calls(followed, tell) as recorded:
            traced = Traced([str(recorded.calls)])
            return patterns_of(traced, wanted, services), recorded.command_code
    except PointsUnusable as error:
        if followed.way is not None:
            raise
        tell(f"followed by strace, which slows every call: {error.message}")
    return _follow_by_strace(followed, wanted, services)


def _is_by_strace(followed: Followed) -> bool:
    """Tell whether strace follows, whatever may be used: a program that runs already is slowed as
    little as can be, of one that is started the names matter more.
    """
    if followed.way is None:
        return followed.command is not None and which("strace") is not None
    return followed.way == "strace"


def _follow_by_strace(
    followed: Followed, wanted: PatternsWanted, services: Services
) -> tuple[PatternFoundAnswer, int]:
    import tempfile

    allowed = Allowed.of(followed.overwrite)
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        text = Path(folder) / "calls"
        code, is_ended_here = _run_strace(followed, text, services)
        if not text.exists() or not text.stat().st_size:
            raise TraceError(
                f"strace recorded no call that reads or writes a file (exit code {code})",
                "follow it longer; if strace printed an error, that is the reason",
            )
        if followed.keep is not None:
            with opened_new(followed.keep, allowed) as kept, text.open("rb") as file:
                while piece := file.read(1 << 20):
                    kept.write(piece)
        found = patterns_of(Traced([str(text)]), wanted, services)
    return found, 0 if is_ended_here or followed.command is None else code


def strace_words(
    text: Path, services: Services, *, command: str | None = None, pids: Sequence[str] = ()
) -> list[str]:
    """The command line of strace that follows a program, and writes its calls into a file.

    Raises
    ------
    IolabError : strace is missing.
    """
    program = which("strace")
    if program is None:
        raise IolabError(
            "strace is not installed", "install it (Debian: apt install strace), or name a trace"
        )
    core = cast("_Core", services.load_core())
    calls = ",".join(f"?{name}" for name in json.loads(core.pattern_calls()))
    words = [program, *_OPTIONS, "-e", f"trace={calls}", "-o", str(text)]
    if command is not None:
        # Without it calls that are not wanted stop the program, too.
        words += ["--seccomp-bpf", "--", "/bin/sh", "-c", command]
    for pid in pids:
        words += ["-p", pid]
    return words


def _run_strace(followed: Followed, text: Path, services: Services) -> tuple[int, bool]:
    """Run strace to its end; returns its exit code, which is the command's, and who ended it."""
    words = strace_words(text, services, command=followed.command, pids=followed.pids)
    with pressed_by_signals() as switch, _started(words) as process:
        return _waited(process, followed.seconds, switch)


def _checked(pid: str) -> None:
    if not pid.isdecimal() or not Path("/proc", pid).exists():
        raise IolabError(f"there is no process {pid}", "name one that runs, see `ps -e`")


@contextmanager
def _started(words: Sequence[str]) -> Generator[subprocess.Popen[bytes]]:
    """A process in a group of its own, with what it starts; the group is gone in the end."""
    # Standard output is for the answer.
    process = subprocess.Popen(words, start_new_session=True, stdout=sys.stderr.fileno())
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process, signal.SIGKILL)
            process.wait()


def _waited(
    process: subprocess.Popen[bytes], seconds: float | None, switch: StopSwitch
) -> tuple[int, bool]:
    """Wait for the end, or end it: strace leaves processes alone that it did not start.

    Returns
    -------
    tuple : exit code, and True if it was ended here.
    """
    left = seconds
    while True:
        try:
            return process.wait(_POLL_S), False
        except subprocess.TimeoutExpired:
            left = None if left is None else left - _POLL_S
        if switch.presses or (left is not None and left <= 0):
            break
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # The whole group: strace itself does not heed signals while a command of its own runs.
        _end(process, number)
        try:
            return process.wait(_END_S), True
        except subprocess.TimeoutExpired:
            continue
    return process.wait(), True


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def refuse_workload(out: Path, overwrite: Sequence[str]) -> None:
    """Refuse a file for a workload before anything is started.

    Raises
    ------
    RefusedError : it exists, and `overwrite` does not name it.
    """
    refuse_existing([out], Allowed.of(overwrite))


def write_workload(text: str, out: Path, overwrite: Sequence[str]) -> None:
    """Write a workload into a new file.

    Raises
    ------
    RefusedError : the file exists, and `overwrite` does not name it.
    IolabError : it cannot be written.
    """
    try:
        with opened_new(out, Allowed.of(overwrite)) as file:
            file.write(text.encode())
    except OSError as error:
        raise IolabError(
            f"{out} cannot be written: {error.strerror or error}", "name another place"
        ) from None


__all__ = [
    "FILES_SHOWN",
    "STANDARD",
    "Followed",
    "Form",
    "PatternsWanted",
    "Traced",
    "Way",
    "follow",
    "patterns_of",
    "refuse_workload",
    "strace_words",
    "write_workload",
]
