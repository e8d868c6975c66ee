"""The user's wish to stop: first press finishes gracefully, the second stops now.

Signal handlers only count and wake; everything else happens in the loop that waits. There is never
a third press: after the second one the machine is being restored, and nothing may disturb that.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSwitch:
    """A switch that stops a run: once after the running trial, twice at once.

    It counts presses; its descriptor is readable while there are unseen ones. Its owner closes it.
    """

    def __init__(self) -> None:
        self._presses = 0
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)

    @property
    def presses(self) -> int:
        """Number of times that the user asked."""
        return self._presses

    def press(self) -> None:
        """Ask once more to stop; may be called from a signal handler and from other threads."""
        self._presses += 1
        self.wake()

    def wake(self) -> None:
        """Make whoever waits look again, without a press."""
        with suppress(BlockingIOError):  # A full pipe is readable anyway.
            os.write(self._write_fd, b"!")

    def fileno(self) -> int:
        """Descriptor to wait on."""
        return self._read_fd

    def drain(self) -> None:
        """Mark all presses as seen."""
        with suppress(BlockingIOError):
            os.read(self._read_fd, 4096)

    def close(self) -> None:
        """Release the descriptors."""
        os.close(self._read_fd)
        os.close(self._write_fd)


@contextmanager
def pressed_by_signals() -> Generator[StopSwitch, None, None]:
    """A switch that Ctrl-C, SIGTERM and SIGHUP press; earlier handlers come back at the end."""
    switch = StopSwitch()

    def handle(_number: int, _frame: FrameType | None) -> None:
        switch.press()

    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield switch
    finally:
        for number, handler in previous.items():
            # A handler that was not installed from Python is None, and cannot be put back from it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        switch.close()
