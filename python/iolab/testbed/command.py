"""Finding iolab-agent, and root for it alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.errors import TestbedError
from iolab.testbed import installed

AGENT_NAME: Final = "iolab-agent"
AGENT_VARIABLE: Final = "IOLAB_AGENT"


def find_agent(environment: Mapping[str, str] = os.environ) -> Path:
    """Path of our own agent: ``$IOLAB_AGENT``, else beside this Python, else on the search path.

    It is started as who we are, never through sudo.

    Raises
    ------
    TestbedError : it is nowhere.
    """
    named = environment.get(AGENT_VARIABLE)
    if named:
        path = Path(named)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise TestbedError(
                f"{AGENT_VARIABLE} names {named}, which is not a program",
                f"unset {AGENT_VARIABLE} or correct it",
            )
        return path.resolve()
    beside = Path(sys.executable).parent / AGENT_NAME
    if os.access(beside, os.X_OK):
        return beside
    from shutil import which

    found = which(AGENT_NAME)
    if found is None:
        raise TestbedError(
            f"{AGENT_NAME} is not installed", "run `pip install .` in the source directory"
        )
    return Path(found)


THIS: Final = ("this", "use dir:PATH without knobs")


def agent_command(
    *, needs_root: bool, is_asking: bool = True, asked: tuple[str, str] = THIS
) -> list[str]:
    """Command line that starts the agent: through sudo if it must be root and we are not.

    Through sudo only root's own copy is started: all others belong to somebody who could change
    them. A password, if one is needed and `is_asking`, is asked here, while this process still owns
    the terminal. `asked` says what needs root, and what would not.

    Raises
    ------
    TestbedError : the agent is missing, or root is needed and cannot be had.
    """
    what, instead = asked
    if not needs_root or os.geteuid() == 0:
        return [str(find_agent())]
    check_installed(asked)
    from shutil import which

    sudo = which("sudo")
    if sudo is None:
        raise TestbedError(
            f"{what} needs root and there is no sudo", f"run it as root, or {instead}"
        )
    command = [sudo, "-n", "--", str(installed.INSTALLED_AGENT)]
    # An agent whose input is empty ends at once: that tells whether sudo would let it start.
    probe = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if probe.returncode == 0:
        return command
    said = probe.stderr.decode(errors="replace").strip()
    if said.startswith(AGENT_NAME):
        raise TestbedError(f"it does not start as root: {said}", installed.INSTALL_COMMAND)
    if is_asking and sys.stdin.isatty():
        sys.stderr.write("iolab: the agent needs root for this testbed; sudo asks:\n")
        if subprocess.run([sudo, "-v"], check=False).returncode == 0:
            return command
    raise TestbedError(
        f"{what} needs root, and sudo does not start the agent without a password",
        f"run `{installed.AS_ROOT} ...`, or `sudo -v` first, or let root add the line that "
        f"`{installed.INSTALL_COMMAND}` prints, or {instead}",
    )


def check_installed(asked: tuple[str, str] = THIS) -> None:
    """Make sure that root's copy is there, and of our own version.

    Raises
    ------
    TestbedError : it is not; says how root comes by it.
    """
    agent, (what, instead) = installed.INSTALLED_AGENT, asked
    if not os.access(agent, os.X_OK):
        raise TestbedError(
            f"{what} needs root",
            f"run all of it as root, `{installed.AS_ROOT} ...`, or install the one program that "
            f"must be root, once: `{installed.INSTALL_COMMAND}`; or {instead}",
        )
    theirs, ours = installed.version_of(agent), installed.version_of(find_agent())
    if theirs != ours:
        raise TestbedError(
            f"{agent} is {theirs}, and this iolab goes with {ours}",
            f"install it anew: `{installed.INSTALL_COMMAND}`",
        )


def tell_agent(*words: str, hint: str) -> None:
    """Let the agent do one thing, as the user who asks.

    Raises
    ------
    TestbedError : it could not; with what it said.
    """
    command = [str(find_agent()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TestbedError(done.stderr.strip().removeprefix(f"{AGENT_NAME}: "), hint)
