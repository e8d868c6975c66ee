"""Commands of commands: `iolab trace show`, each with flags of its own."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from iolab.cli.console import Console
from iolab.cli.parser import Parser
from iolab.errors import IolabError
from iolab.library.services import Services
from iolab.wording import nearest

_WIDTH: Final = 79
"""Columns of the help."""

Subject: TypeAlias = tuple[
    Callable[[argparse.ArgumentParser], None],
    Callable[[argparse.Namespace, Services, Console], int],
    str,
]
"""Function that declares its flags, function that answers, and its subject."""


class _Formatter(argparse.HelpFormatter):
    """Folds text, but for a list, which is folded already."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_subjects(parser: argparse.ArgumentParser, subjects: Mapping[str, Subject]) -> None:
    """Declare that a subject follows, with whatever words; the help says what each does."""
    command = parser.prog
    parser.add_argument("subject", metavar="WHAT", nargs="?", help=", ".join(subjects))
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=f"see `{command} WHAT --help`")
    room = max(map(len, subjects))
    rows = (
        textwrap.fill(
            f"  {name:{room}}  {about}",
            _WIDTH,
            subsequent_indent=" " * (room + 4),
            break_on_hyphens=False,
        )
        for name, (_, _, about) in subjects.items()
    )
    parser.formatter_class = _Formatter
    parser.epilog = "\n".join(["what each does:", *rows])


def execute_subject(
    command: str,
    subjects: Mapping[str, Subject],
    arguments: argparse.Namespace,
    means: tuple[Services, Console],
) -> int:
    """Do what one subject of ``iolab COMMAND`` asks for; returns the exit code.

    Raises
    ------
    IolabError : there is no such subject, or its words mean nothing.
    """
    if arguments.subject is None:
        raise IolabError(
            f"`iolab {command}` needs a word that says what to do",
            f"name what to do: {', '.join(subjects)}",
        )
    name = f"iolab {command} {arguments.subject}"
    if arguments.subject not in subjects:
        raise IolabError(
            f"there is no '{name}'{nearest(arguments.subject, subjects)}",
            f"there are {', '.join(subjects)}",
        )
    declare, answer, about = subjects[arguments.subject]
    parser = Parser(prog=name, description=about, allow_abbrev=False)
    declare(parser)
    return answer(parser.understand(arguments.rest), *means)
