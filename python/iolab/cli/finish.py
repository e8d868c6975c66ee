"""The answer of a study, printed: the sentence, the table, and where the files lie."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console

if TYPE_CHECKING:
    from iolab.library.answer import AnswerForm, StudyAnswer

EXIT_UNDECIDED: Final = 4


def answer_form(arguments: argparse.Namespace, console: Console) -> AnswerForm:
    """Form in which the flags, as far as a command has them, want a study judged and shown."""
    from iolab.library.answer import AnswerForm

    return AnswerForm(
        metric=getattr(arguments, "metric", None),
        metric_of=getattr(arguments, "metric_of", None),
        units=arguments.units,
        width=console.width,
        overwrite=tuple(arguments.overwrite),
    )


def show_answer(answer: StudyAnswer, console: Console, *, is_strict: bool) -> int:
    """Print an answer; returns the exit code.

    Raises
    ------
    RefusedError : its report would have replaced somebody's file.
    """
    console.result(answer.text)
    if answer.files:
        console.result()
    for label, path in answer.files:
        console.result(f"{label + ':':10}{path}")
    if answer.refusal is not None:
        raise answer.refusal
    return EXIT_UNDECIDED if is_strict and answer.is_open else 0
