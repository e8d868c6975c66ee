"""The exception tree of the Python front and the exit code that each branch stands for.

Every message says what failed and on what; ``hint`` says what to do. Exit codes are those of
rule R12, listed once in `iolab.cli.main.EXIT_CODES`. Statistical and environment caveats are not
exceptions: they are :class:`iolab.store.rows.Caveat` values that travel with the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from iolab.protocol import ErrorPlace, ExtensionError, ExtensionErrorCode

DEBUG_VARIABLE: Final = "IOLAB_DEBUG"
"""Name of the environment variable that shows where an error was raised."""


class IolabError(Exception):
    """Something a user can understand and act on; never shown as a traceback.

    Parameters
    ----------
    message : what failed, on what; one line.
    hint : what to do about it; may be empty.
    between : what stands between both in the text; None: a colon, or a blank behind a sentence.
    """

    exit_code: ClassVar[int] = 1
    code: ExtensionErrorCode | None = None
    """Kind of the error, if it is the extension's."""
    place: ErrorPlace | None = None
    """Place in a text that the extension read."""

    def __init__(self, message: str, hint: str = "", *, between: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.between = between
        self.values: dict[str, str] = {}
        """Values that an error of the extension is about, by name."""

    def __str__(self) -> str:
        """Message and hint as one line."""
        if not self.hint:
            return self.message
        between = self.between
        if between is None:
            between = " " if self.message.endswith((".", "?", "!")) else ": "
        return f"{self.message}{between}{self.hint}"

    @staticmethod
    def of_extension(text: str) -> IolabError:
        """Return the exception of an error of the extension; `iolab._core` raises it.

        Parameters
        ----------
        text : an ``ExtensionError`` (`iolab.protocol`), as JSON.
        """
        import json  # Few commands meet such an error.

        told: ExtensionError = json.loads(text)
        branch = {"study": StudyError, "dialect": DialectError, "trace": TraceError}
        kind = InternalError if told["code"] == "internal" else branch[told["branch"]]
        error = kind(told["message"], told["hint"], between=told["between"] or None)
        error.code, error.place, error.values = told["code"], told["place"], told["values"]
        return error


class InternalError(IolabError):
    """A fault of iolab itself: a model that lost an event, or goes on for ever."""

    exit_code = 70


class StudyError(IolabError):
    """The study, as a file or as flags, cannot mean anything that could be run."""


class DialectError(IolabError):
    """A text in another program's language could not be understood."""


class TestbedError(IolabError):
    """A testbed could not be prepared, or its agent failed."""

    __test__ = False  # The name is the domain's; pytest must not collect it.


class RefusedError(TestbedError):
    """The agent declined, to protect the machine or somebody's data."""

    exit_code = 2


class RestoreError(IolabError):
    """Something that was changed could not be put back."""

    exit_code = 3


class StoreError(IolabError):
    """The study's database could not be opened, read or written."""


class DamageError(StoreError):
    """Damage: stored content is not any more what it was when it was stored."""

    exit_code = 5


class TraceError(IolabError):
    """A block trace could not be understood, or not be written in the format that was asked for."""


class AnalysisError(IolabError):
    """The stored trials do not allow the analysis that was asked for."""


class MismatchError(IolabError):
    """Storage gave back something else than was written."""

    exit_code = 5


class StoppedError(IolabError):
    """The user stopped the study; what was finished is kept."""

    exit_code = 130


def nobody_asked(flag: str) -> RefusedError:
    """Error of a question where there is nobody who could answer it."""
    return RefusedError(
        "nobody can be asked: standard input is no terminal",
        f"give {flag} if you mean that; nothing was changed",
    )
