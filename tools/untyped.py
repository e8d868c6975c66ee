"""Signatures without types: `Any` in Python, `serde_json::Value` in Rust, outside the border.

A file that is named in `LEFT` may have so many and not one more; one that is not named has none.
`python tools/untyped.py` prints the counts.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from python_source import nodes, parsed
from rust_source import RustSource

PYTHON_BORDER: Final = "python/iolab/protocol.py"
RUST_BORDER: Final = ("crates/iolab-protocol/", "crates/iolab-py/")
RECORD_WORDS: Final = frozenset(
    {"record", "phase", "tenant", "worker", "step", "segment", "device", "series", "histogram"}
)
"""Names that code gives to a record and its parts."""

EXCEPTIONS: Final[Mapping[str, str]] = {
    "python/iolab/frozen.py": "makes classes of any fields",
    "python/iolab/lazy.py": "stands for any attribute of a module",
    "python/iolab/deferred_import.py": "stands for any attribute of a module",
    "python/iolab/digest.py": "takes any value that JSON has",
    "python/iolab/store/cells.py": "looks at what a damaged database may hold before it has a type",
    "python/iolab/store/record_types.py": "looks at a record before it has a type",
    "crates/iolab-agent/src/protocol/request.rs": "parameters, until the method gives their type",
    "crates/iolab-agent/src/journal/record.rs": "asks a line for its version before it has a type",
    "crates/iolab-dialect/src/workload_file/read.rs": "completes a file before it has a type",
    "crates/iolab-dialect/src/workload_file/tree.rs": "TOML with the place of each key",
    "crates/iolab-dialect/src/fio/json.rs": "writes fio's own JSON",
}
"""Files that need it, and why."""

LEFT: Final[Mapping[str, int]] = {
    "crates/iolab-agent/src/journal/fuzz.rs": 1,
    "crates/iolab-sim/src/scenario/block_layer.rs": 1,
}
"""Signatures that are still to be typed, by file; the numbers only fall."""


def python_signatures(text: str) -> list[int]:
    """Lines of the parameters and results of functions that are `Any`, alone or inside.

    An alias of the module counts as what it stands for.
    """
    tree = parsed(text)
    vague = {"Any"} | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Subscript | ast.Name)
        if _names(node.value) & {"Any"}
    }
    return [part.lineno for part in _annotations(text) if _names(part) & vague]


def _annotations(text: str) -> Iterator[ast.expr]:
    for node in nodes(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            found = [one.annotation for one in every if one is not None]
            yield from (one for one in (*found, node.returns) if one is not None)


def _names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


_SIGNATURE = re.compile(r"\bfn\s+\w+[^{;]*")
_VALUE = re.compile(r"serde_json::Value|(?<![\w:])Value\b")


def rust_signatures(text: str) -> list[int]:
    """Lines of functions, tests left out, that take or give a `serde_json::Value`."""
    if "serde_json" not in text:
        return []
    tests = RustSource(text).test_lines
    found = list[int]()
    for match in _SIGNATURE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line not in tests and "type Value" not in match[0] and _VALUE.search(match[0]):
            found.append(line)
    return found


def record_keys(text: str) -> int:
    """Number of times that code asks a record, or a part of one, for a key by a text."""
    count = 0
    for node in nodes(text):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript):
            place, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            place, key = node.func.value, node.args[0] if node.func.attr == "get" else None
        else:
            continue
        is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
        count += is_text and isinstance(place, ast.Name) and place.id in RECORD_WORDS
    return count


def signatures(name: str, text: str) -> list[int]:
    """Lines of a file's signatures without a type; none inside the border."""
    if name.endswith(".py"):
        is_ours = name.startswith("python/iolab/") and name != PYTHON_BORDER
        return python_signatures(text) if is_ours else []
    is_ours = "/src/" in name and not name.startswith(RUST_BORDER) and "tests" not in name
    return rust_signatures(text) if is_ours else []


def main() -> None:
    """Print the counts of this repository."""
    root = Path(__file__).resolve().parents[1]
    files = [*root.glob("python/iolab/**/*.py"), *root.glob("crates/*/src/**/*.rs")]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    found, keys = Counter[str](), Counter[str]()
    for name, text in sorted(texts.items()):
        kind = "Any in Python" if name.endswith(".py") else "serde_json::Value in Rust"
        where = "with a reason" if name in EXCEPTIONS else "left"
        found[f"signatures with {kind}, {where}"] += len(signatures(name, text))
        if name.endswith(".py"):
            is_typed = "from iolab.protocol import" in text
            keys["checked" if is_typed else "not checked"] += record_keys(text)
    for what, count in found.items():
        print(f"{count:5} {what}")
    for what, count in keys.items():
        print(f"{count:5} keys of records as texts, {what} by a type")


if __name__ == "__main__":
    main()
