"""Actions of a traced program, and of all that it started, on files: the changes, with whole
paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

_STARTS = ("clone", "clone3", "fork", "vfork")
_OPENS = ("open", "openat", "openat2")
_CHANGES = (
    *("creat", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat"),
    *("renameat2", "link", "linkat", "symlink", "symlinkat", "chmod", "fchmodat", "chown"),
    *("lchown", "fchownat", "truncate", "mknod", "mknodat", "mount", "move_mount", "umount2"),
    *("setxattr", "lsetxattr"),
)
TRACED = ",".join([*_STARTS, *_OPENS, *_CHANGES, "execve", "chdir", "fchdir"])
"""Calls for strace to write down."""

_CALL = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<words>.*)\) += (?P<result>-?\d+)")
_UNFINISHED = re.compile(r"^(?P<pid>\d+) +(?P<begun>\w+\(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)$")
_WRITING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FOLDER = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>")
_OWN_VIEW = 'NULL, "/", NULL, MS_REC|MS_SLAVE, NULL'
"""Arguments of the mount that keeps all later ones from being seen elsewhere."""


@dataclass(frozen=True, slots=True)
class Change:
    """A call that changed something, or opened it for that."""

    path: str
    line: str


@dataclass(slots=True)
class _Process:
    is_followed: bool = False
    folder: str = "/"


@dataclass(slots=True)
class _Reader:
    program: str
    processes: dict[str, _Process] = field(default_factory=dict)

    def process(self, pid: str) -> _Process:
        return self.processes.setdefault(pid, _Process())

    def change(self, line: str) -> Iterator[Change]:
        match = _CALL.match(line)
        if match is None or match["result"].startswith("-"):
            return
        process, name, words = self.process(match["pid"]), match["name"], match["words"]
        quoted = _QUOTED.findall(words)
        if name in _STARTS:
            self.processes[match["result"]] = _Process(process.is_followed, process.folder)
        elif name == "execve":
            process.is_followed |= quoted[0] == self.program
        elif name in ("chdir", "fchdir"):
            process.folder = self.whole(process, words, quoted)
        elif not process.is_followed or words == _OWN_VIEW:
            return
        elif name in _CHANGES or _WRITING.search(words):
            yield Change(self.whole(process, words, quoted, is_mount=name == "mount"), line)

    @staticmethod
    def whole(process: _Process, words: str, quoted: list[str], *, is_mount: bool = False) -> str:
        folder = _FOLDER.match(words)
        base = folder[1] if folder else process.folder
        name = quoted[1 if is_mount and len(quoted) > 1 else 0] if quoted else "."
        return str(PurePosixPath(base, name))


def traced(text: str, program: str) -> list[Change]:
    """Changes made by `program` and what it started."""
    reader = _Reader(program)
    lines = list(_births_first(_joined(text.splitlines())))
    return [change for line in lines for change in reader.change(line)]


def _joined(lines: list[str]) -> Iterator[str]:
    """Calls that strace wrote in two parts become one line, where they ended."""
    begun: dict[str, str] = {}
    for line in lines:
        if match := _UNFINISHED.match(line):
            begun[match["pid"]] = match["begun"]
        elif match := _RESUMED.match(line):
            yield f"{match['pid']} {begun.pop(match['pid'], '')}{match['rest']}"
        else:
            yield line


def _births_first(lines: Iterator[str]) -> Iterator[str]:
    """A process may do something before the call that made it returns: such lines wait."""
    waiting: dict[str, list[str]] = {}
    known: set[str] = set()
    for line in lines:
        pid = line.partition(" ")[0]
        if known and pid not in known:
            waiting.setdefault(pid, []).append(line)
            continue
        known.add(pid)
        pending = [line]
        while pending:
            now = pending.pop(0)
            yield now
            match = _CALL.match(now)
            if match and match["name"] in _STARTS and match["result"] not in known:
                known.add(match["result"])
                pending += waiting.pop(match["result"], [])
