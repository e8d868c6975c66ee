"""``--hosts``: a study run on several hosts over ssh, and the verdict over them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iolab.cli.finish import EXIT_UNDECIDED
from iolab.errors import IolabError, StoppedError

if TYPE_CHECKING:
    from iolab import Study
    from iolab.cli.console import Console
    from iolab.library.conducted import RunOptions
    from iolab.library.hosts import HostsRun
    from iolab.library.services import Services


def refuse_way_without_hosts(arguments: argparse.Namespace) -> None:
    """Refuse to say how hosts are reached where there are none.

    Raises
    ------
    IolabError : it was said.
    """
    if arguments.hosts is None and arguments.ssh is not None:
        raise IolabError("--ssh is about --hosts", "name hosts, or leave --ssh out")


def conduct_on_hosts(
    study: Study,
    options: RunOptions,
    arguments: argparse.Namespace,
    services: Services,
    console: Console,
) -> int:
    """Run or continue a study on hosts, and print the verdict over them; returns the exit code."""
    from iolab.library.hosts import parse_hosts, run_on_hosts

    hosts = parse_hosts(arguments.hosts, arguments.ssh)
    done = run_on_hosts(study, options, hosts, services, console)
    stopped = [end.name for end in done.left_out if isinstance(end.problem, StoppedError)]
    for end in done.left_out:
        if end.name not in stopped:
            console.note(f"iolab: {end.name} is left out: {end.problem}")
    if stopped:
        raise StoppedError(
            f"stopped on request on {', '.join(stopped)}",
            "finished trials are kept; the same command with --resume goes on",
        )
    code = _show(done, arguments, console)
    codes = [end.problem.exit_code for end in done.left_out if end.problem is not None]
    return max(codes, default=code)


def _show(done: HostsRun, arguments: argparse.Namespace, console: Console) -> int:
    """Print the verdict, if there can be one."""
    from iolab.library.hosts import printed

    verdict, code = done.verdict(console.note), 0
    if verdict is not None:
        text = verdict.verdict.sentence if console.is_quiet else printed(verdict, console.width)
        console.result(text)
        code = EXIT_UNDECIDED if arguments.strict and verdict.is_open else 0
    elif done.is_comparison:
        console.remark("iolab: fewer than two hosts ran the study to its end: no verdict")
    if not console.is_quiet:
        shown = " ".join(str(end.directory) for end in done.ends if end.problem is None)
        console.result(f"\nresults:  {shown}" if shown else f"\nresults:  {done.directory}")
    return code
