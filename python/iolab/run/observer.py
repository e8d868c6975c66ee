"""Observer of a run, which answers its questions, too: a console, a notebook, nobody."""

from __future__ import annotations

from typing import Protocol

from iolab.run.progress import Progress


class Observer(Protocol):
    """Observer of a run while it goes on."""

    def note(self, text: str) -> None:
        """Take a message about the work."""
        ...

    def remark(self, text: str) -> None:
        """Take a message that nobody misses who wants only the answer."""
        ...

    def result(self, text: str = "") -> None:
        """Take a line of what was asked for, such as an action of a rehearsal."""
        ...

    def progress(self, progress: Progress) -> None:
        """Take the place where the run is."""
        ...

    def clear_line(self) -> None:
        """End what `progress` showed: other text follows."""
        ...

    def ask(self, question: str, flag: str) -> str:
        """Ask the user; returns one line, blanks made equal.

        Parameters
        ----------
        question : what is to be typed.
        flag : the option that answers it where there is nobody to ask.

        Raises
        ------
        RefusedError : nobody can be asked.
        """
        ...
