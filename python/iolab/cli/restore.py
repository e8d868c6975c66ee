"""``iolab restore``: put back what a killed run left changed."""

from __future__ import annotations

import argparse
import os
import uuid
from collections.abc import Mapping
from typing import Any

from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import RestoreError, TestbedError
from iolab.testbed.agent import Agent, describe_problem
from iolab.testbed.command import agent_command, find_agent

NAME = "restore"
HELP = "put back what a killed run left changed"
_JOURNALS = "/var/lib/iolab/journal (root's) or ~/.local/state/iolab/journal (yours)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--run", metavar="ID", help="only this run (all of this user)")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Restore as this user and, if it can be had, as root.

    Raises
    ------
    RestoreError : something could not be put back.
    """
    del services
    agent_path = find_agent()
    results = [_restore([str(agent_path)], arguments.run, console)]
    if os.geteuid() != 0:
        try:
            command = agent_command(agent_path, needs_root=True)
        except TestbedError as error:
            console.note(f"iolab: changes made as root were not looked at: {error}")
        else:
            results.append(_restore(command, arguments.run, console))
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
    if not any(result.get("restored") for result in results):
        console.result("nothing to restore: the machine is as it was")
    return 0


def _restore(command: list[str], run_id: str | None, console: Console) -> Mapping[str, Any]:
    with Agent(command, tell=console.note) as agent:
        agent.hello(f"restore-{uuid.uuid4().hex[:8]}")
        result = agent.restore(run_id)
    return {**result, "problems": agent.unrestored}
