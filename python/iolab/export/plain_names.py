"""Names that may stand in what is exported: neither fio nor a shell makes anything else of them.

A job file of fio has no way to quote: a line feed begins another option, ``:`` another file, ``$``
a variable, and what ``exec_postrun`` names goes through a shell. So a name is written as it is or
the export is refused; nothing is escaped.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.errors import RefusedError
from iolab.store.cells import is_trial_id

_SIGNS: Final = "_.,+@%=/-"
_PLAIN: Final = re.compile(rf"(?!-)[\w{re.escape(_SIGNS)}]+")
"""Letters and digits of any script and a few signs; a leading ``-`` would be an option."""


def plain_name(what: str, name: str) -> str:
    """`name`, which no reader of an exported file takes for anything else.

    Parameters
    ----------
    what : whose name it is, for the message: "file", "phase".

    Raises
    ------
    RefusedError : it has a sign that means something to fio or to a shell.
    """
    if _PLAIN.fullmatch(name):
        return name
    raise RefusedError(
        f"the {what} {name!r} cannot be exported: fio or a shell would take a part of its name for"
        " something else. Nothing was written",
        f"run the study again with a name of letters, digits and {' '.join(_SIGNS)} that does not"
        " begin with '-'",
    )


def plain_trial_id(name: str) -> str:
    """`name`, if it is one that a trial may have: it becomes a part of a file's name.

    Raises
    ------
    RefusedError : it is not.
    """
    if is_trial_id(name):
        return name
    raise RefusedError(
        f"the trial {name!r} cannot be exported: iolab gives no trial such a name. Nothing was"
        " written",
        "do not use this study",
    )


def one_line(value: object) -> str:
    """Text of a value of a job file, which is one line.

    Raises
    ------
    RefusedError : it has control characters.
    """
    text = str(value)
    if text.isprintable():
        return text
    raise RefusedError(
        f"the value {text!r} cannot be exported: it has control characters. Nothing was written",
        "run the study again without them",
    )
