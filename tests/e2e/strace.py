"""Reads strace output of a program that transfers data through one descriptor at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_OPEN = re.compile(r'(?:openat\(AT_FDCWD, |open\(|creat\()"(?P<path>[^"]*)".* = (?P<fd>\d+)$')
_SEEK = re.compile(r"lseek\((?P<fd>\d+), .* = (?P<at>\d+)$")
_DATA = re.compile(r"(?P<call>read|write)\((?P<fd>\d+), .* = (?P<size>\d+)$")
_OF_NOTHING = re.compile(r", 0\) += 0$")
"""A transfer that asks for no bytes: iolab rehearses with some before the timed region."""
_CLOSE = re.compile(r"close\((?P<fd>\d+)\) += 0$")


@dataclass(slots=True)
class Session:
    """Calls between the opening and the closing of a descriptor of the test file."""

    flags: str
    transfers: list[tuple[str, int, int]] = field(default_factory=list)
    """(read or write, offset, size), in order."""


def sessions(text: str, file_name: str) -> list[Session]:
    """Sessions on files whose name ends with `file_name` in which data moved."""
    found: list[Session] = []
    open_files: dict[str, tuple[Session, int]] = {}
    for raw in text.splitlines():
        line = re.sub(r"^\d+ +", "", raw.strip())
        if _OF_NOTHING.search(line) and _DATA.search(line):
            continue
        if match := _OPEN.search(line):
            if match["path"].endswith(file_name):
                session = Session(flags=" ".join(re.findall(r"O_\w+", line)))
                open_files[match["fd"]] = (session, 0)
                found.append(session)
        elif (match := _SEEK.search(line)) and match["fd"] in open_files:
            open_files[match["fd"]] = (open_files[match["fd"]][0], int(match["at"]))
        elif (match := _DATA.search(line)) and match["fd"] in open_files:
            session, at = open_files[match["fd"]]
            size = int(match["size"])
            session.transfers.append((match["call"], at, size))
            open_files[match["fd"]] = (session, at + size)
        elif match := _CLOSE.search(line):
            open_files.pop(match["fd"], None)
    return [session for session in found if session.transfers]
