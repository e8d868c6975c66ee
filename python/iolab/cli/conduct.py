"""Conducting a study from the command line: the run, the answer printed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iolab.cli.console import Console
from iolab.cli.finish import answer_form, show_answer
from iolab.library.answer import answer_of_run
from iolab.library.conducted import RunOptions, conducted
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab import Study


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
    done = conducted(study, options, services, console)
    if done is None:
        return 0
    code, form = 0, answer_form(arguments, console)
    answer = answer_of_run(done, form, services, console.note)
    if answer is not None:
        code = show_answer(answer, console, is_strict=arguments.strict, is_full=arguments.full)
    if done.problem is not None:
        raise done.problem
    return code
