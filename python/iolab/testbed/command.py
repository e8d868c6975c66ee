"""Finding iolab-agent, and root for it alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.errors import TestbedError

AGENT_NAME: Final = "iolab-agent"
AGENT_VARIABLE: Final = "IOLAB_AGENT"


def find_agent(environment: Mapping[str, str] = os.environ) -> Path:
    """Path of the agent: ``$IOLAB_AGENT``, else beside this Python, else on the search path.

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
    found = shutil.which(AGENT_NAME)
    if found is None:
        raise TestbedError(
            f"{AGENT_NAME} is not installed", "run `pip install .` in the source directory"
        )
    return Path(found)


def agent_command(agent: Path, *, needs_root: bool) -> list[str]:
    """Command line that starts the agent, through sudo if it must be root and we are not.

    A password, if one is needed, is asked here, while this process still owns the terminal.

    Raises
    ------
    TestbedError : root is needed and cannot be had.
    """
    if not needs_root or os.geteuid() == 0:
        return [str(agent)]
    sudo = shutil.which("sudo")
    if sudo is None:
        raise TestbedError(
            "this needs root and there is no sudo", "run it as root, or use dir:PATH"
        )
    command = [sudo, "-n", "--", str(agent)]
    # An agent whose input is empty ends at once: that tells whether sudo would let it start.
    probe = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if probe.returncode == 0:
        return command
    if sys.stdin.isatty():
        sys.stderr.write("iolab: the agent needs root for this testbed; sudo asks:\n")
        if subprocess.run([sudo, "-v"], check=False).returncode == 0:
            return command
    raise TestbedError(
        "this needs root, and sudo does not give it without a password",
        "run `sudo -v` first, run as root, or use dir:PATH without knobs",
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
