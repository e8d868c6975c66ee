"""Calls of a program recorded by the kernel's trace points, to be read for its access patterns.

The agent records them as root; whoever may not have it is told why, before the program is started.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.trace_recording import RecordedTrace, RecordingWords, record_trace
from iolab.testbed.command import agent_command
from iolab.testbed.installed import AS_ROOT, INSTALL_COMMAND

if TYPE_CHECKING:
    from iolab.library.patterns import Followed, Tell

_EVENTS: Final = "file-calls"
"""Layer of the agent's recorder with the calls that open files, move in them and close them."""
_CHOSEN: Final = (
    "followed by the kernel's trace points, which slow a program less than strace; "
    "--with strace names every file"
)


class PointsUnusable(IolabError):  # noqa: N818 (a reason, which need not be an error)
    """Trace points cannot be used here, and nothing was started."""


@frozen
class RecordedCalls:
    """Calls of a program that has been followed."""

    calls: Path
    """The recording."""
    command_code: int
    """Exit code of the command; 0 if there was none, or if its time was over."""


@contextmanager
def record_calls(followed: Followed, tell: Tell) -> Generator[RecordedCalls]:
    """Record the calls of a program until it ends, its time is over, or Ctrl-C.

    Raises
    ------
    PointsUnusable : it could not begin.
    IolabError : the recording failed later.
    """
    _check_rights(is_asking=followed.way is not None)
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        calls = followed.keep or Path(folder) / "calls.iotrace"
        words = RecordingWords(
            devices=(),
            out=calls,
            command=followed.command,
            seconds=None if followed.seconds is None else repr(followed.seconds),
            events=_EVENTS,
            pids=followed.pids,
            overwrite=followed.overwrite,
            is_followed=True,
        )
        recorded = _recorded(words, tell, is_chosen=followed.way is not None)
        result = recorded.answer["recorded"]
        if result["problem"]:
            tell(f"the recording ended early: {result['problem']}")
        yield RecordedCalls(calls, recorded.command_code)


def _recorded(words: RecordingWords, tell: Tell, *, is_chosen: bool) -> RecordedTrace:
    has_begun = False

    def begun() -> None:
        nonlocal has_begun
        if not has_begun and not is_chosen:
            tell(_CHOSEN)
        has_begun = True

    try:
        return record_trace(words, tell, begun)
    except IolabError as error:
        if has_begun:
            raise
        raise PointsUnusable(
            f"trace points cannot be used: {error.message}", _or_strace(error.hint)
        ) from None


def _or_strace(hint: str) -> str:
    return f"{hint}; or follow it with --with strace" if hint else "use --with strace"


def _check_rights(*, is_asking: bool) -> None:
    try:
        agent_command(needs_root=True, is_asking=is_asking)
    except IolabError as error:
        raise PointsUnusable(
            f"trace points cannot be used: {error.message}",
            f"run it as root (`{AS_ROOT} ...`), or let root install the one program that must be "
            f"root (`{INSTALL_COMMAND}`), or use --with strace",
        ) from None
