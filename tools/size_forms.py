"""Forms of one value: the fields that hold the size of a transfer on its way and on its way back.

A form is a declared field of a struct or class, or a column of the store, that holds the size of a
record or of a transfer: one name, one type, one unit, one owner. Not counted: arguments and local
variables, tests, and what is generated (`python/iolab/protocol.py`), because it is the same
declaration. `python tools/size_forms.py` prints them; with a revision, those of that revision.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from python_source import nodes

NAMES: Final = frozenset(
    {"record_size", "record_kb", "record_bytes", "io_size_bytes", "bs", "chunk", "chunk_bytes"}
)
"""Names of such fields."""
TO_THE_DEVICE: Final = (
    *("python/iolab/study/", "python/iolab/run/", "crates/iolab-dialect/src/"),
    *("crates/iolab-workload/src/preset/", "crates/iolab-workload/src/spec"),
)
"""Places where a size is asked for; everywhere else it is told of what was done."""
TOLD: Final = ("crates/iolab-dialect/src/iozone/report.rs",)
"""Exceptions: what a dialect prints of results."""
LEFT_OUT: Final = ("tests", "python/iolab/protocol.py", "python/iolab/imported/", "iolab-sim/")
"""Tests, what is generated, results of other programs, and devices, whose sizes are their own."""
_STRUCT = re.compile(r"^(?:pub(?:\([a-z]+\))? )?struct (\w+)[^;{]*\{(.*?)^\}", re.S | re.M)
_FIELD = re.compile(r"^    (?:pub(?:\([a-z]+\))? )?(\w+): ([^\n]+?),$", re.M)
_COLUMN = re.compile(r"CREATE TABLE (\w+) \((.*?)\n\)", re.S)


def forms(name: str, text: str) -> Iterator[str]:
    """Forms that a file declares, as ``OWNER.FIELD: TYPE``."""
    if name.endswith(".rs"):
        for owner, body in _STRUCT.findall(text):
            yield from (f"{owner}.{f}: {kind}" for f, kind in _FIELD.findall(body) if f in NAMES)
    elif name.endswith(".sql"):
        for table, body in _COLUMN.findall(text):
            yield from (
                f"{table}.{n}: column" for n in re.findall(r"^\s*(\w+)", body, re.M) if n in NAMES
            )
    else:
        for node in nodes(text):
            if isinstance(node, ast.ClassDef):
                yield from _fields(node)


def _fields(owner: ast.ClassDef) -> Iterator[str]:
    for part in owner.body:
        is_field = isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        if is_field and part.target.id in NAMES:
            yield f"{owner.name}.{part.target.id}: {ast.unparse(part.annotation)}"


def direction(name: str) -> str:
    """Tell whether the fields of a file hold what is asked for, or tell of what was done."""
    is_asked = name.startswith(TO_THE_DEVICE) and name not in TOLD
    return "to the device" if is_asked else "back"


def sources(revision: str | None) -> Iterator[tuple[str, str]]:
    """Names and texts of the sources, of the working tree or of a revision."""
    root = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout

    listed = ["ls-files"] if revision is None else ["ls-tree", "-r", "--name-only", revision]
    for name in git(*listed).splitlines():
        is_source = re.match(r"(crates/[\w-]+/src/.*\.rs|python/iolab/.*\.(py|sql))$", name)
        if is_source and not any(part in name for part in LEFT_OUT):
            path = root / name
            is_here = revision is None and path.exists()
            if revision is None and not is_here:
                continue
            yield name, path.read_text("utf-8") if is_here else git("show", f"{revision}:{name}")


def main() -> None:
    """Print the forms of both directions, and their numbers."""
    revision = sys.argv[1] if len(sys.argv) > 1 else None
    found: dict[str, list[str]] = {"to the device": [], "back": []}
    for name, text in sources(revision):
        found[direction(name)] += [f"{form}  ({name})" for form in forms(name, text)]
    for way, listed in found.items():
        print(f"{len(listed):3} forms {way}")
        for form in listed:
            print(f"    {form}")


if __name__ == "__main__":
    main()
