"""Commands that a script of Filebench runs before its run: `system`.

They run here, as whoever typed the command line, in the working directory, and never by the agent.
Only a command line with ``--allow-exec`` has any; a stored one never runs them.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import RefusedError
from iolab.library.dialect.plan import DialectPlan
from iolab.run.observer import Observer

if TYPE_CHECKING:
    from iolab.protocol import FilebenchCommand, ShownByFilebench

NAME: Final = "filebench"


def _commands_of(plan: DialectPlan) -> list[FilebenchCommand]:
    if plan.dialect != NAME:
        return []
    return cast("ShownByFilebench", plan.values["show"]).get("commands", [])


def refuse_stored_commands(plan: DialectPlan) -> None:
    """Refuse to run commands of a stored script, which nobody has read today.

    Raises
    ------
    RefusedError : there are commands.
    """
    for command in _commands_of(plan):
        raise RefusedError(
            f"the stored script runs a program: {command['line']}",
            "type the command line itself again, with --allow-exec",
        )


def run_commands(plan: DialectPlan, observer: Observer) -> None:
    """Run the commands one after the other; what they print is shown as it is.

    As with Filebench, an exit code changes nothing.
    """
    for command in _commands_of(plan):
        done = subprocess.run(
            ["/bin/sh", "-c", command["line"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        text = done.stdout.decode(errors="replace").removesuffix("\n")
        if text:
            observer.result(text)
