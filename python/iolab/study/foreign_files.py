"""Files of other programs that are named where a study belongs: told by how they look."""

from __future__ import annotations

import re
from shlex import quote
from typing import Final

_SIGNS: Final = (
    (
        "a job file of fio",
        "iolab fio {}",
        re.compile(r"^\[global\]|^(rw|readwrite|ioengine|filename|iodepth)\s*=", re.MULTILINE),
    ),
    (
        "a script of Filebench",
        "iolab filebench -f {}",
        re.compile(r"^\s*(define\s+(file|fileset|process)|flowop|set \$|load )", re.MULTILINE),
    ),
    (
        "a file of properties of YCSB",
        "iolab ycsb run rocksdb -P {}",
        re.compile(r"^(recordcount|operationcount|readproportion)\s*=", re.MULTILINE),
    ),
)


def command_for(text: str, file_name: str) -> str:
    """Advice that names the command for a text of another program; empty if it looks like none."""
    for what, command, sign in _SIGNS:
        if sign.search(text):
            return f"it looks like {what}: `{command.format(quote(file_name))}`"
    return ""
