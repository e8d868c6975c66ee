"""``iolab install-agent``: the one program that must be root, where only root may change it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Final

from iolab.cli.console import Console
from iolab.errors import IolabError, RefusedError
from iolab.library.services import Services
from iolab.testbed import installed
from iolab.testbed.command import find_agent
from iolab.testbed.installed import INSTALLED_AGENT, POLICY_FILE

NAME = "install-agent"
HELP = "let users measure without being root: root's own copy of the agent, and sudo's rule"

_SUDOERS_FILE: Final = "/etc/sudoers.d/iolab"
_PAGE: Final = "docs/how-to/let-users-measure-without-root.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--user", metavar="NAME", help="whom the rule for sudo names (default: who typed sudo)"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--policy",
        action="store_true",
        help=f"only print {POLICY_FILE} with its default values, to be edited; needs no root",
    )
    other.add_argument("--remove", action="store_true", help="remove the copy again")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Install, or remove, or print the policy.

    Raises
    ------
    RefusedError : this is not root, or others could change what is installed.
    """
    del services
    if arguments.policy:
        console.result(installed.DEFAULT_POLICY.rstrip("\n"))
        return 0
    if os.geteuid() != 0:
        raise RefusedError(
            f"only root can write to {INSTALLED_AGENT.parent}", f"`{installed.INSTALL_COMMAND}`"
        )
    if arguments.remove:
        _remove(console)
        return 0
    user = _user(arguments.user, os.environ)
    line = installed.sudoers_line(user) if user is not None else None
    version = installed.install(find_agent())
    console.result(f"installed {INSTALLED_AGENT} ({version}), which only root can change")
    _tell_rule(line, console)
    _tell_policy(console)
    return 0


def _remove(console: Console) -> None:
    if installed.remove():
        console.result(f"removed {INSTALLED_AGENT}")
    else:
        console.result(f"there is no {INSTALLED_AGENT}")
    console.result(f"A rule for sudo stays until root removes it: visudo -f {_SUDOERS_FILE}")


def _user(named: str | None, environment: Mapping[str, str]) -> str | None:
    """For whom the rule is; None if nobody is named and a root shell asks."""
    if named is not None:
        if not named:
            raise IolabError("--user names nobody", "as in --user alice")
        return named
    user = environment.get("SUDO_USER", "")
    return user if user not in ("", "root") else None


def _tell_rule(line: str | None, console: Console) -> None:
    if line is None:
        console.result("For a user's rule for sudo: the same command with --user NAME")
        return
    console.result(
        f"\nNothing was allowed yet. An administrator may add this line (visudo -f "
        f"{_SUDOERS_FILE}):\n\n{line}\n"
    )


def _tell_policy(console: Console) -> None:
    if POLICY_FILE.exists():
        console.result(f"What it does for such a user is said by {POLICY_FILE}.")
    else:
        console.result(
            "What it does for such a user, as there is no policy file: class B only. That is\n"
            "private loop devices on images in /var/tmp, of 64 GiB at most, their knobs, and\n"
            f"dropping the page cache. To change it: `iolab install-agent --policy` prints a\n"
            f"{POLICY_FILE} to begin with."
        )
    console.result(f"The whole story: {_PAGE}")
