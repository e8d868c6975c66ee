"""The answer of a study, printed: the sentence, the table, and where the files lie."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.errors import IolabError

if TYPE_CHECKING:
    from pathlib import Path

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
        is_full=arguments.full,
        overwrite=tuple(arguments.overwrite),
        told=console.told,
    )


def show_answer(
    answer: StudyAnswer, console: Console, *, is_strict: bool, is_full: bool = True
) -> int:
    """Print an answer; returns the exit code.

    With `is_full` every file has a line of its own; else those beside the first have only names.

    Raises
    ------
    RefusedError : its report would have replaced somebody's file.
    """
    if console.is_quiet:
        console.result(answer.sentence or answer.text)
    else:
        _show_whole(answer, console, is_full=is_full)
    if answer.refusal is not None:
        raise answer.refusal
    return EXIT_UNDECIDED if is_strict and answer.is_open else 0


def _show_whole(answer: StudyAnswer, console: Console, *, is_full: bool) -> None:
    console.result(answer.text)
    if answer.files:
        console.result()
        console.result("\n".join(_named_files(answer, is_full=is_full)))


def _named_files(answer: StudyAnswer, *, is_full: bool) -> list[str]:
    """Write where the files of an answer lie."""
    (label, first), *others = answer.files
    beside = [path.name for _, path in others if path.parent == first.parent]
    apart = [(label, path) for label, path in others if is_full or path.parent != first.parent]
    lines = [f"{label + ':':10}{first}"]
    if beside and not is_full:
        lines[0] += f" (beside it {', '.join(beside)})"
    return [*lines, *(f"{label + ':':10}{path}" for label, path in apart)]


def open_report(answer: StudyAnswer, console: Console) -> None:
    """Show the page of an answer in the user's browser.

    Raises
    ------
    IolabError : there is no browser, or no screen.
    """
    page = next((path for label, path in answer.files if label == "report"), None)
    if page is not None:
        open_page(page, console)


def open_page(page: Path, console: Console) -> None:
    """Show a file in the user's browser.

    Raises
    ------
    IolabError : there is no browser, or no screen.
    """
    import webbrowser

    address = page.absolute().as_uri()
    try:
        is_shown = webbrowser.get().open(address)
    except webbrowser.Error:
        is_shown = False
    if not is_shown:
        raise IolabError(
            "no browser was found that could show the report",
            f"open {address} yourself, or name a browser in the variable BROWSER",
        )
    console.remark(f"iolab: {page} was handed to the browser")
