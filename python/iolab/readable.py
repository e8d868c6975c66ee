"""Waiting until one of several files has something to read."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Protocol, TypeVar


class HasFileno(Protocol):
    """An object with a file descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


T = TypeVar("T", bound=HasFileno | int)


def wait_readable(sources: Sequence[T], timeout_s: float | None = None) -> list[T]:
    """Wait until at least one of `sources` can be read, or has ended.

    By poll(2): select(2) refuses descriptors above 1023, which a notebook or a long test may have.

    Parameters
    ----------
    sources : descriptors, or objects that have one.
    timeout_s : seconds to wait at most; None: as long as it takes.

    Returns
    -------
    those that are ready, in the order of `sources`; empty after the timeout.
    """
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN | select.POLLHUP | select.POLLERR)
    ready = {found for found, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
    return [s for s in sources if (s if isinstance(s, int) else s.fileno()) in ready]
