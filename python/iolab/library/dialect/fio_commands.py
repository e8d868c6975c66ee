"""Commands that jobs of fio run before and after them: `exec_prerun` and `exec_postrun`.

They run here, as whoever typed the command line, in the working directory, and never by the agent.
Only a command line with ``--allow-exec`` has any; a stored one never runs them. As with fio, each
clone runs its command, the output goes to a file beside the job, and an exit code changes nothing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, RefusedError
from iolab.library.dialect.files import check_all_written
from iolab.library.dialect.plan import DialectPlan
from iolab.run.observer import Observer
from iolab.store.users_files import opened_replacing

NAME: Final = "fio"

if TYPE_CHECKING:
    from iolab.protocol import FioCommand, ShownByFio


def _commands_of(plan: DialectPlan) -> list[FioCommand]:
    if plan.dialect != NAME:
        return []
    return cast("ShownByFio", plan.values["show"]).get("commands", [])


def check_commands(plan: DialectPlan) -> list[Path]:
    """Refuse files of output that cannot or must not be written; returns them.

    Raises
    ------
    IolabError : a file cannot be written.
    RefusedError : a file is there that iolab did not make.
    """
    names = (command["file"] for command in _commands_of(plan))
    return check_all_written(names, plan.allowed, "exec_prerun and exec_postrun")


def refuse_stored_commands(plan: DialectPlan) -> None:
    """Refuse to run commands of a stored command line, which nobody has read today.

    Raises
    ------
    RefusedError : there are commands.
    """
    for command in _commands_of(plan):
        raise RefusedError(
            f"the stored command line runs a program for job {command['job']}: {command['line']}",
            "type the command line itself again, with --allow-exec",
        )


def run_commands(plan: DialectPlan, observer: Observer, *, is_before: bool) -> None:
    """Run the commands before the first job, or those after the last one, one after the other.

    Raises
    ------
    IolabError : a file of output cannot be written.
    RefusedError : a file was made meanwhile that is the user's own.
    """
    for command in _commands_of(plan):
        if command["is_before"] != is_before:
            continue
        observer.note(f"iolab: {command['job']}: saving output of a command in {command['file']}")
        path = Path(command["file"])
        for _ in range(command["times"]):
            try:
                with opened_replacing(path, plan.allowed) as file:
                    subprocess.run(
                        ["/bin/sh", "-c", command["line"]],
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        check=False,
                    )
            except OSError as error:
                raise IolabError(
                    f"{path} cannot be written: {error.strerror}", "name another job"
                ) from None
