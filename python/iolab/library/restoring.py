"""Restoring of changes that killed runs left."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.errors import TestbedError
from iolab.frozen import frozen
from iolab.testbed.agent import Agent, describe_problem
from iolab.testbed.command import agent_command, find_agent

if TYPE_CHECKING:
    from iolab.protocol import Restored

ROOTS_JOURNALS: Final = Path("/var/lib/iolab/journal")


@frozen
class Restoration:
    """Changes that were put back, and those that were not; each as a line for people."""

    restored: tuple[str, ...]
    obsolete: tuple[str, ...]
    """Changes that were gone already."""
    problems: tuple[str, ...]
    """Changes that could not be put back, with the reasons."""
    alive: tuple[str, ...]
    """Runs that are under way, whose changes are in place."""
    unasked: str | None
    """Reason why changes made as root were not looked at; None if they were."""

    @property
    def may_hold_more(self) -> bool:
        """Tell whether root may have journals that were not looked at."""
        return self.unasked is not None and may_hold_journals(ROOTS_JOURNALS)


def restore(run_id: str | None, note: Callable[[str], None]) -> Restoration:
    """Restore as this user and, if it can be had, as root.

    Parameters
    ----------
    run_id : only this run; None is all of them.
    note : hears of what the agent has to say.

    Raises
    ------
    TestbedError : the agent is missing, or fails.
    """
    results = [_restored([str(find_agent())], run_id, note)]
    unasked = None
    if os.geteuid() != 0:
        try:
            command = agent_command(needs_root=True)
        except TestbedError as error:
            unasked = str(error)
        else:
            results.append(_restored(command, run_id, note))
    return _restoration(results, unasked)


def restored_by(command: list[str], run_id: str | None, note: Callable[[str], None]) -> Restoration:
    """Restore by one agent, such as that of another host.

    Raises
    ------
    TestbedError : it fails.
    """
    return _restoration([_restored(command, run_id, note)], None)


def _restoration(results: Sequence[Restored], unasked: str | None) -> Restoration:
    return Restoration(
        tuple(describe_problem(one) for found in results for one in found.get("restored", [])),
        tuple(describe_problem(one) for found in results for one in found.get("obsolete", [])),
        tuple(describe_problem(one) for found in results for one in found.get("problems", [])),
        tuple(str(run) for found in results for run in found.get("alive", [])),
        unasked,
    )


def may_hold_journals(folder: Path) -> bool:
    """Tell whether journals may lie in a folder: it cannot be looked into, or there are some."""
    try:
        return any(path.suffix == ".jsonl" for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _restored(command: list[str], run_id: str | None, note: Callable[[str], None]) -> Restored:
    with Agent(command, tell=note) as agent:
        agent.hello(f"restore-{uuid.uuid4().hex[:8]}")
        result = agent.restore(run_id)
    return {**result, "problems": list(agent.unrestored)}
