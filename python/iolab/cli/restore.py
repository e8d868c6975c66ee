"""``iolab restore``: put back what a killed run left changed."""

from __future__ import annotations

import argparse
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.errors import RestoreError, TestbedError
from iolab.library.services import Services
from iolab.testbed.agent import Agent, describe_problem
from iolab.testbed.command import agent_command, find_agent

if TYPE_CHECKING:
    from iolab.protocol import Restored

NAME = "restore"
HELP = "put back what a killed run left changed"
_ROOTS_JOURNALS: Final = Path("/var/lib/iolab/journal")
_JOURNALS: Final = f"{_ROOTS_JOURNALS} (root's) or ~/.local/state/iolab/journal (yours)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--run", metavar="ID", help="only this run (all of this user)")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Restore as this user and, if it can be had, as root.

    Raises
    ------
    RestoreError : something could not be put back, is in use by a run that is under way, or could
        not be looked at.
    """
    del services
    agent_path = find_agent()
    results = [_restore([str(agent_path)], arguments.run, console)]
    is_unasked = False
    if os.geteuid() != 0:
        try:
            command = agent_command(needs_root=True)
        except TestbedError:
            is_unasked = True
        else:
            results.append(_restore(command, arguments.run, console))
    _tell_undone(results, console)
    _tell_alive(results, console)
    if is_unasked:
        _tell_unasked(results, console)
    elif not any(result.get("restored") for result in results):
        console.result("nothing to restore: the machine is as it was")
    return 0


def _tell_undone(results: Sequence[Restored], console: Console) -> None:
    """Print what was put back, and end if something was not."""
    for word in ("restored", "obsolete"):
        for result in results:
            for entry in result.get(word, []):
                console.result(f"{word}: {describe_problem(entry)}")
    problems = [problem for result in results for problem in result.get("problems", [])]
    if problems:
        for problem in problems:
            console.result(f"not restored: {describe_problem(problem)}")
        raise RestoreError(
            "not everything could be put back: " + "; ".join(map(describe_problem, problems)),
            "correct the cause of each, or put the values back by hand; what is left is kept in "
            f"{_JOURNALS}",
        )


def _tell_alive(results: Sequence[Restored], console: Console) -> None:
    """Print which runs are under way, and end if there are some: their changes are in place."""
    alive = [str(run) for result in results for run in result.get("alive", [])]
    for run in alive:
        console.result(run)
    if alive:
        raise RestoreError(
            "what has not ended yet was left as it is (see above)",
            "wait until it has ended, or stop it with Ctrl-C; it puts back what it changed",
        )


def _tell_unasked(results: Sequence[Restored], console: Console) -> None:
    """Say what was looked at; end if root may have journals, which could not be asked for."""
    if not any(result.get("restored") for result in results):
        console.result("nothing to restore of your own runs")
    if not may_hold_journals(_ROOTS_JOURNALS):
        console.result("nothing was ever changed as root: root has no journals")
        return
    raise RestoreError(
        f"changes made as root were not looked at: {_ROOTS_JOURNALS} may hold some",
        """run `sudo "$(command -v iolab)" restore`""",
    )


def may_hold_journals(folder: Path) -> bool:
    """Whether journals may lie in a folder: it cannot be looked into, or there are some."""
    try:
        return any(path.suffix == ".jsonl" for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _restore(command: list[str], run_id: str | None, console: Console) -> Restored:
    with Agent(command, tell=console.note) as agent:
        agent.hello(f"restore-{uuid.uuid4().hex[:8]}")
        result = agent.restore(run_id)
    return {**result, "problems": list(agent.unrestored)}
