"""``iolab install-agent``: the one program that must be root, where only root may change it."""

from __future__ import annotations

import argparse
from typing import Final

from iolab.cli.console import Console
from iolab.library import agent_install
from iolab.library.agent_install import InstalledAgent
from iolab.library.services import Services

NAME = "install-agent"
HELP = "let users measure without being root: root's own copy of the agent, and sudo's rule"

_SUDOERS_FILE: Final = "/etc/sudoers.d/iolab"
_PAGE: Final = "docs/how-to/let-users-measure-without-root.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    policy_file, _ = agent_install.default_policy()
    parser.add_argument(
        "--user", metavar="NAME", help="whom the rule for sudo names (default: who typed sudo)"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--policy",
        action="store_true",
        help=f"only print {policy_file} with its default values, to be edited; needs no root",
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
        console.result(agent_install.default_policy()[1].rstrip("\n"))
    elif arguments.remove:
        _tell_removed(console)
    else:
        done = agent_install.install(arguments.user)
        console.result(f"installed {done.path} ({done.version}), which only root can change")
        _tell_rule(done.sudoers_line, console)
        _tell_policy(done, console)
    return 0


def _tell_removed(console: Console) -> None:
    path, was_there = agent_install.remove()
    console.result(f"removed {path}" if was_there else f"there is no {path}")
    console.result(f"A rule for sudo stays until root removes it: visudo -f {_SUDOERS_FILE}")


def _tell_rule(line: str | None, console: Console) -> None:
    if line is None:
        console.result("For a user's rule for sudo: the same command with --user NAME")
        return
    console.result(
        f"\nNothing was allowed yet. An administrator may add this line (visudo -f "
        f"{_SUDOERS_FILE}):\n\n{line}\n"
    )


def _tell_policy(done: InstalledAgent, console: Console) -> None:
    if done.has_policy:
        console.result(f"What it does for such a user is said by {done.policy_file}.")
    else:
        console.result(
            "What it does for such a user, as there is no policy file: class B only. That is\n"
            "private loop devices on images in /var/tmp, of 64 GiB at most, their knobs, and\n"
            f"dropping the page cache. To change it: `iolab install-agent --policy` prints a\n"
            f"{done.policy_file} to begin with."
        )
    console.result(f"The whole story: {_PAGE}")
