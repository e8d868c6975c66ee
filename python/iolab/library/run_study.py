"""A study, run from Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.errors import IolabError, nobody_asked
from iolab.library.conducted import conducted
from iolab.library.hints import in_python
from iolab.library.open_result import open as open_result
from iolab.library.result import Result
from iolab.library.services import Services
from iolab.library.spreading import spread_on
from iolab.library.study import Study
from iolab.run.options import RunOptions
from iolab.run.progress import Progress
from iolab.run.stop import StopSwitch, pressed_by_signals

if TYPE_CHECKING:
    from concurrent.futures import Executor


@in_python
def run(  # noqa: PLR0913 - keyword arguments, each with a name of its own
    study: Study,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    stop: StopSwitch | None = None,
    erase_serial: str | None = None,
    accept_writes: str | None = None,
    allow_other_machine: bool = False,
    executor: Executor | None = None,
) -> Result:
    """Run a study to its end and read what it stored.

    Nothing is printed and nobody is asked. In the main thread the first Ctrl-C lets the running
    trial end and the second stops it; what was changed is put back in either case. In other
    threads, and with `stop`, no signal handler is installed.

    Parameters
    ----------
    study : what to run; without a seed one is drawn.
    out : new directory for the results; None is the first free ``iolab-out/NAME-N``.
    resume : continue what `out` holds (None: the newest study of this name).
    progress : called, in this thread, when a trial begins a phase, ends or fails, and with
        ``kind == "notice"`` for messages; times in it are nanoseconds. What it raises ends the run.
        ``iolab.ProgressBar()`` shows it, in a notebook or a terminal.
    stop : its ``press()``, from another thread, does what Ctrl-C does.
    erase_serial : serial number of the device that may be erased; needed by ``device:`` testbeds.
    accept_writes : size of what may be written to a device that wears: ``"2t"``.
    allow_other_machine : continue a study that was begun on another machine.
    executor : runs the trials of a simulated study; the same results, sooner. Its workers need
        the same version of iolab. It is not shut down.

    Returns
    -------
    Result : what was stored; :meth:`~iolab.library.result.Result.report` writes the report.

    Raises
    ------
    StudyError : the study cannot run so, or `out` holds another one.
    RefusedError : something is not done for safety; nothing was changed.
    TestbedError : the testbed cannot be prepared, or trials fail again and again.
    StoppedError : it was stopped; finished trials are kept.
    MismatchError : storage gave back other data than was written.
    RestoreError : something could not be put back.
    """
    options = RunOptions(
        out=None if out is None else Path(out),
        is_resumed=resume,
        erase_serial=erase_serial,
        accept_writes=accept_writes,
        is_other_machine_allowed=allow_other_machine,
        spread=None if executor is None else spread_on(executor),
    )
    listener = Listener(progress)
    with _switch(stop) as pressed:
        done = conducted(study, options, Services(), listener, pressed)
    if done is None:
        raise AssertionError("this is no rehearsal")
    if done.problem is not None:
        raise _with_place(done.problem, done.database.parent)
    return open_result(done.database.parent)


class Listener:
    """An observer that hands everything to one function and answers no question.

    Parameters
    ----------
    progress : the function; None hears nothing.
    """

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._tell = progress

    def note(self, text: str) -> None:
        """Hand on a message."""
        if self._tell is not None:
            message = text.removeprefix("iolab: ").removeprefix("note: ")
            self._tell(Progress("notice", None, 0, None, None, None, message))

    def remark(self, text: str) -> None:
        """Hand it on like a note."""
        self.note(text)

    def result(self, text: str = "") -> None:
        """Hand on a line."""
        self.note(text)

    def progress(self, progress: Progress) -> None:
        """Hand it on."""
        if self._tell is not None:
            self._tell(progress)

    def clear_line(self) -> None:
        """Do nothing."""

    def ask(self, question: str, flag: str) -> str:
        """Refuse.

        Raises
        ------
        RefusedError : always; names the argument that answers the question.
        """
        raise nobody_asked(flag)


@contextmanager
def _switch(stop: StopSwitch | None) -> Generator[StopSwitch, None, None]:
    """The caller's switch, or one of its own: pressed by signals in the main thread only."""
    if stop is not None:
        yield stop
    elif threading.current_thread() is threading.main_thread():
        with pressed_by_signals() as switch:
            yield switch
    else:
        switch = StopSwitch()
        try:
            yield switch
        finally:
            switch.close()


def _with_place(problem: IolabError, folder: Path) -> IolabError:
    """The same error, which also says how to see what is stored."""
    seen = f"iolab.open({str(folder)!r}) shows what is stored"
    problem.hint = f"{problem.hint}; {seen}" if problem.hint else seen
    return problem
