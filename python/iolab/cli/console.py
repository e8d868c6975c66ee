"""Printing: results to standard output, everything else to standard error.

On a terminal progress is one line that is rewritten; otherwise a line is printed now and then, so
that logs stay short. Who asked may have left: a closed pipe or a gone terminal ends the printing,
not the study. Names come from files of other people: no character in them reaches a terminal as a
command.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, TextIO

from iolab.errors import IolabError, nobody_asked
from iolab.visible import to_ascii, visible_line, visible_text

if TYPE_CHECKING:
    from iolab import Progress

SPARSE_INTERVAL_S: Final = 10.0
_WIDTH_MAX: Final = 100
_WIDTH_DEFAULT: Final = 80


class Console:
    """Both output streams and the progress line."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._is_terminal = self._err.isatty()
        self._is_out_terminal = self._out.isatty()
        self._has_line = False
        self.is_quiet = False
        """True if neither progress nor notices of the work are wanted."""
        self._is_err_gone = False
        self._printed_at_s = -SPARSE_INTERVAL_S
        self._remarks = list[str]()

    @property
    def is_terminal(self) -> bool:
        """Tell whether results go to a terminal."""
        return self._is_out_terminal

    @property
    def told(self) -> tuple[str, ...]:
        """Remarks that stand above the results, if both go to the same place."""
        return tuple(self._remarks) if _is_same_place(self._out, self._err) else ()

    @property
    def width(self) -> int:
        """Columns for tables."""
        if not self._is_out_terminal:
            return _WIDTH_DEFAULT
        columns = _terminal_columns()
        return max(_WIDTH_DEFAULT, min(columns, _WIDTH_MAX))

    def result(self, text: str = "") -> None:
        """Print a result.

        Raises
        ------
        IolabError : it cannot be written, for another reason than that its reader has left.
        """
        self.clear_line()
        try:
            _print(_writable(visible_text(text), self._out) + "\n", self._out)
        except OSError as error:
            _lead_nowhere(self._out)
            if isinstance(error, BrokenPipeError) or self._is_out_terminal:
                return  # Its reader has left: a terminal that is gone answers EIO.
            raise IolabError(
                f"the answer cannot be printed: {error.strerror}",
                "make room, or print it elsewhere; what is stored already is safe",
            ) from None

    def stream(self, piece: bytes) -> None:
        """Print a piece of a long result, in which no control character is left.

        Raises
        ------
        BrokenPipeError : its reader has left; there is nothing more to do.
        IolabError : it cannot be written, for another reason.
        """
        self.clear_line()
        try:
            binary = getattr(self._out, "buffer", None)
            if binary is None:
                self._out.write(piece.decode(errors="replace"))
            else:
                self._out.flush()
                _write_whole(binary, piece)
                binary.flush()
        except BrokenPipeError:
            _lead_nowhere(self._out)
            raise
        except OSError as error:
            _lead_nowhere(self._out)
            raise IolabError(
                f"the answer cannot be printed: {error.strerror}",
                "make room, or print it elsewhere",
            ) from None

    def note(self, text: str) -> None:
        """Print a message about the work."""
        self.clear_line()
        self._tell(visible_text(text) + "\n")

    def remark(self, text: str) -> None:
        """Print a message that is not wanted with ``--quiet``, folded at blanks on a terminal."""
        if self.is_quiet:
            return
        self._remarks.append(text)
        if self._is_terminal:
            import textwrap

            text = textwrap.fill(
                text,
                _terminal_columns() - 1,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        self.note(text)

    def ask(self, question: str, flag: str) -> str:
        """Ask who sits at the terminal; returns one line, blanks made equal.

        Raises
        ------
        RefusedError : standard input is no terminal; `flag` answers without one.
        """
        if not sys.stdin.isatty():
            raise nobody_asked(flag)
        self.note(f"iolab: {question}")
        return " ".join(sys.stdin.readline().split())

    def progress(self, progress: Progress) -> None:
        """Show where a campaign is."""
        if self.is_quiet and progress.kind != "failed":
            return
        if progress.kind == "notice":
            self.remark(f"iolab: note: {progress.message}")
            return
        if progress.kind == "failed" and progress.trial is not None:
            self.note(f"iolab: {progress.trial.trial_id} failed: {progress.message}")
            return
        text = visible_line(progress.text)
        if self._is_terminal:
            columns = _terminal_columns()
            self._tell("\r\x1b[K" + text[: columns - 1])
            self._has_line = True
        elif progress.kind == "finished" and self._is_time_for_a_line(progress):
            self._tell(text + "\n")

    def clear_line(self) -> None:
        """Make room for other text where the progress line is."""
        if self._has_line:
            self._tell("\r\x1b[K")
            self._has_line = False

    def _tell(self, text: str) -> None:
        if self._is_err_gone:
            return
        try:
            print(_writable(text, self._err), end="", file=self._err, flush=True)
        except OSError:
            self._is_err_gone = True
            _lead_nowhere(self._err)

    def _is_time_for_a_line(self, progress: Progress) -> bool:
        now_s = time.monotonic()
        is_last = progress.n_done == progress.n_planned
        if now_s - self._printed_at_s < SPARSE_INTERVAL_S and not is_last:
            return False
        self._printed_at_s = now_s
        return True


def _print(text: str, stream: TextIO) -> None:
    """Write a text at once, whatever the stream is made of."""
    raw = getattr(stream, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        _write_whole(raw, text.encode(stream.encoding, stream.errors or "strict"))
        return
    stream.write(text)
    stream.flush()


def _write_whole(stream: IO[bytes] | io.RawIOBase, piece: bytes) -> None:
    """Write all of a piece: an unbuffered stream (``python -u``) takes what there is room for."""
    rest = memoryview(piece)
    while rest:
        taken = stream.write(rest)
        if not taken:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        rest = rest[taken:]


def _writable(text: str, stream: TextIO) -> str:
    """Text that a stream can write: ordinary spaces, and ASCII where it knows nothing else."""
    text = text.replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
    try:
        text.encode(stream.encoding or "utf-8", stream.errors or "strict")
    except UnicodeEncodeError:
        return to_ascii(text)
    return text


def _is_same_place(one: TextIO, other: TextIO) -> bool:
    """Tell whether two streams write into the same terminal, file or pipe."""
    if one is other:
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError):  # One of them is closed, or no file.
        return False


def _terminal_columns() -> int:
    """Columns of the terminal, or of one whose size is not known."""
    import shutil

    return shutil.get_terminal_size((_WIDTH_DEFAULT, 24)).columns


def open_closed_streams() -> None:
    """Let standard streams that were closed lead nowhere.

    Otherwise the next file that is opened, such as the study's database, would get their number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _lead_nowhere(stream: TextIO) -> None:
    """Let what is still buffered go to the null device, also at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
