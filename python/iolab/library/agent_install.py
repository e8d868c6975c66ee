"""Root's own copy of the agent, and the rule that lets a user start it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from iolab.errors import IolabError, RefusedError
from iolab.frozen import frozen
from iolab.testbed import installed
from iolab.testbed.command import find_agent


@frozen
class InstalledAgent:
    """The copy that was installed."""

    path: Path
    version: str
    sudoers_line: str | None
    """Rule that lets the user start it; None if no user is known."""
    policy_file: Path
    has_policy: bool
    """True if an administrator wrote that file."""


def default_policy() -> tuple[Path, str]:
    """Path of a policy, and the text of one with the default values."""
    return installed.POLICY_FILE, installed.DEFAULT_POLICY


def install(user: str | None, environment: Mapping[str, str] = os.environ) -> InstalledAgent:
    """Install the agent where only root may change it.

    Parameters
    ----------
    user : the user that the rule names; None is the one who typed sudo.
    environment : names the one who typed sudo.

    Raises
    ------
    RefusedError : this is not root, or others could change what is installed.
    """
    _refuse_unless_root()
    named = _user(user, environment)
    line = installed.sudoers_line(named) if named is not None else None
    version = installed.install(find_agent())
    policy = installed.POLICY_FILE
    return InstalledAgent(installed.INSTALLED_AGENT, version, line, policy, policy.exists())


def remove() -> tuple[Path, bool]:
    """Remove the copy; returns its path, and whether there was one.

    Raises
    ------
    RefusedError : this is not root.
    """
    _refuse_unless_root()
    return installed.INSTALLED_AGENT, installed.remove()


def _refuse_unless_root() -> None:
    if os.geteuid() != 0:
        raise RefusedError(
            f"only root can write to {installed.INSTALLED_AGENT.parent}",
            f"`{installed.INSTALL_COMMAND}`",
        )


def _user(named: str | None, environment: Mapping[str, str]) -> str | None:
    """For whom the rule is; None if nobody is named and a root shell asks."""
    if named is not None:
        if not named:
            raise IolabError("--user names nobody", "as in --user alice")
        return named
    user = environment.get("SUDO_USER", "")
    return user if user not in ("", "root") else None
