"""A function of iolab that another process runs, while this one does something else.

Of a large study much is computed in Python, of which one process uses one processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib import import_module
from typing import Final, NoReturn, Self

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from iolab.store.beside import serve; serve(*sys.argv[2:])"
)


class Beside:
    """Call of ``module:function`` with texts; a context manager that leaves no process behind.

    It runs by the interpreter and with the modules of this process, and ends with it.
    """

    def __init__(self, function: str, *arguments: str) -> None:
        self._words = [function, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        words = ["-I", "-c", _PROGRAM, json.dumps(sys.path), *self._words]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.PIPE,  # At its end, whatever ended this process, it ends, too.
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:  # As one that gives no answer.
            self._process = None
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # Waits, and closes its pipes.
                pass

    def answer(self) -> object:
        """Wait for what the function returns, as JSON holds it.

        Raises
        ------
        ValueError : there is no answer, for whatever reason.
        """
        if self._process is None or self._process.stdout is None:
            raise ValueError("it was not started")
        return json.loads(self._process.stdout.read())


def serve(function: str, *arguments: str) -> NoReturn:
    """Print what a function returns, as JSON, and end; end without it where the caller ends."""
    threading.Thread(target=_end_with_caller, daemon=True).start()
    module, _, name = function.partition(":")
    told = json.dumps(getattr(import_module(module), name)(*arguments))
    sys.stdout.write(told)
    sys.stdout.flush()
    os._exit(0)


def _end_with_caller() -> None:
    os.read(0, 1)
    os._exit(1)
