"""``iolab restore``: put back what a killed run left changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iolab.cli import flags
from iolab.cli.console import Console
from iolab.cli.hosts import refuse_way_without_hosts
from iolab.errors import RestoreError
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.library.restoring import Restoration

NAME = "restore"
HELP = "put back what a killed run left changed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--run", metavar="ID", help="only this run (all of this user)")
    parser.add_argument(
        "--hosts", metavar="HOST,...", help="on these hosts over ssh, not on this machine"
    )
    flags.add_ssh_flag(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Restore as this user and, if it can be had, as root.

    Raises
    ------
    RestoreError : something could not be put back, is in use by a run that is under way, or could
        not be looked at.
    """
    from iolab.library.restoring import restore

    del services
    refuse_way_without_hosts(arguments)
    if arguments.hosts is not None:
        return _restore_hosts(arguments, console)
    found = restore(arguments.run, console.note)
    _tell_undone(found, console)
    _tell_alive(found, console)
    if found.unasked is not None:
        _tell_unasked(found, console)
    elif not found.restored:
        console.result("nothing to restore: the machine is as it was")
    return 0


def _restore_hosts(arguments: argparse.Namespace, console: Console) -> int:
    """Restore on hosts, and end with an error if something is left on one.

    Raises
    ------
    RestoreError : it is.
    """
    from iolab.library.hosts import parse_hosts, restore_hosts

    hosts = parse_hosts(arguments.hosts, arguments.ssh)
    left = list[str]()
    for name, found in restore_hosts(hosts, arguments.run, console):
        told = [*(f"restored: {one}" for one in found.restored)]
        told += [f"obsolete: {one}" for one in found.obsolete]
        told += [f"not restored: {one}" for one in found.problems]
        for line in [*told, *found.alive] or ["nothing to restore"]:
            console.result(f"{name}: {line}")
        if found.problems or found.alive:
            left.append(name)
    if left:
        raise RestoreError(
            f"something was left as it is on {', '.join(dict.fromkeys(left))} (see above)",
            "wait for runs that are under way; correct the cause of the rest, and type it again",
        )
    return 0


def _tell_undone(found: Restoration, console: Console) -> None:
    """Print what was put back, and end if something was not."""
    from iolab.library.restoring import ROOTS_JOURNALS

    for entry in found.restored:
        console.result(f"restored: {entry}")
    for entry in found.obsolete:
        console.result(f"obsolete: {entry}")
    for problem in found.problems:
        console.result(f"not restored: {problem}")
    if found.problems:
        raise RestoreError(
            "not everything could be put back: " + "; ".join(found.problems),
            "correct the cause of each, or put the values back by hand; what is left is kept in "
            f"{ROOTS_JOURNALS} (root's) or ~/.local/state/iolab/journal (yours)",
        )


def _tell_alive(found: Restoration, console: Console) -> None:
    """Print which runs are under way, and end if there are some: their changes are in place."""
    for run in found.alive:
        console.result(run)
    if found.alive:
        raise RestoreError(
            "what has not ended yet was left as it is (see above)",
            "wait until it has ended, or stop it with Ctrl-C; it puts back what it changed",
        )


def _tell_unasked(found: Restoration, console: Console) -> None:
    """Say what was looked at; end if root may have journals, which could not be asked for."""
    from iolab.library.restoring import ROOTS_JOURNALS

    if not found.restored:
        console.result("nothing to restore of your own runs")
    if not found.may_hold_more:
        console.result("nothing was ever changed as root: root has no journals")
        return
    raise RestoreError(
        f"changes made as root were not looked at: {ROOTS_JOURNALS} may hold some",
        """run `sudo "$(command -v iolab)" restore`""",
    )
