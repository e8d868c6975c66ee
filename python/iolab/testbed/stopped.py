"""Stopped processes (SIGSTOP), alone or below another, from which nothing will come.

Left out: processes of other users that ``/proc`` hides; they count as running.
"""

from __future__ import annotations

from pathlib import Path

_STOPPED = ("T", "t")
"""States of ``/proc/PID/stat`` in proc(5): by a signal, by a tracer."""


def stopped_process(pid: int) -> int | None:
    """The stopped one among `pid` and the processes below it; None if all run."""
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
            if stat.rpartition(")")[2].split()[0] in _STOPPED:
                return process
            for children in Path(f"/proc/{process}/task").glob("*/children"):
                waiting.extend(map(int, children.read_text(encoding="ascii").split()))
        except (OSError, IndexError):
            continue  # It has just ended.
    return None
