"""Processes of the agent below one that the test started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from .conversation import Conversation


def agents(ancestor: int) -> list[int]:
    """Processes of the agent that descend from one, its watchdog among them."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
                name = (entry / "exe").readlink().name
            except OSError:
                continue
            rest = text.rpartition(")")[2]
            parents[int(entry.name)] = (int(rest.split()[1]), name)
    return [
        process
        for process, (_, name) in parents.items()
        if name == "iolab-agent" and ancestor in _above(process, parents)
    ]


def _above(process: int, parents: dict[int, tuple[int, str]]) -> list[int]:
    found = [process]
    while found[-1] in parents:
        found.append(parents[found[-1]][0])
    return found


def kill_all(agent: Conversation) -> None:
    """Kill the agent and its watchdog, as root may and no user."""
    # The watchdog, which is younger, first: else it would restore when its agent has died.
    for victim in sorted(agents(agent.process.pid), reverse=True):
        os.kill(victim, signal.SIGKILL)


def peak_bytes(process: int) -> int:
    """The most memory that a process has had."""
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10
