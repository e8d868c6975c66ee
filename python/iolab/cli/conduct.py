"""Conducting a study from the command line: the run, the answer printed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iolab.cli.console import Console
from iolab.cli.finish import answer_form, show_answer
from iolab.cli.hosts import conduct_on_hosts, refuse_way_without_hosts
from iolab.library.answer import answer_of_run
from iolab.library.conducted import RunOptions, conducted
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab import Study
    from iolab.library.conducted import Conducted


def conduct(
    study: Study,
    options: RunOptions,
    arguments: argparse.Namespace,
    services: Services,
    console: Console,
) -> int:
    """Run, continue or rehearse a study, and print its answer; returns the exit code.

    `arguments` say how the answer is printed: `iolab.cli.flags.add_run_flags`.
    """
    console.is_quiet = arguments.quiet
    if hasattr(arguments, "hosts"):
        refuse_way_without_hosts(arguments)
        if arguments.hosts is not None:
            return conduct_on_hosts(study, options, arguments, services, console)
    done = conducted(study, options, services, console)
    return 0 if done is None else show_conducted(done, arguments, services, console)


def show_conducted(
    done: Conducted, arguments: argparse.Namespace, services: Services, console: Console
) -> int:
    """Print the answer of a study that was conducted; of a shard the way to the whole."""
    if done.shard is not None:
        if done.problem is not None:
            raise done.problem
        console.result(
            f"{done.database.parent} holds shard {done.shard.text}; when all are done: "
            "`iolab merge DIR... --out DIR`"
        )
        return 0
    code, form = 0, answer_form(arguments, console)
    answer = answer_of_run(done, form, services, console.note)
    if answer is not None:
        code = show_answer(answer, console, is_strict=arguments.strict, is_full=arguments.full)
    if done.problem is not None:
        raise done.problem
    return code
