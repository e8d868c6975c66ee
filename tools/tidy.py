"""The rules of size, shape and place, as a program: `make tidy`, also a test.

Each rule is a function from the tree to findings and stands in `RULES`; `tests/test_tidy.py` shows
for each that it can fail. The reasons are in CONTRIBUTING.md. Which crate and package may use
which is in `architecture.py`.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import first_words
import untyped
from python_source import nodes, parsed
from registries import missing_companions
from rust_source import RustSource
from type_names import REPEATS, declared_classes, exported_types

FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5
COLUMNS_MAX = 100
FILE_LINES_SOFT = 500
FILE_LINES_HARD = 800
GENERATED = "Written by `make docs`"
"""In the head of a file that is made from others, which may have any length."""
FILE_BYTES_MAX = 200_000

UNSAFE_CRATES = ("iolab-real", "iolab-kv", "iolab-agent")
SAFETY_DISTANCE_LINES = 3
BUILT_FOLDERS = {"target", "build", "dist", "demo-out"}  # in the root only
KEPT_HIDDEN = {".ci", ".gitignore", ".pre-commit-config.yaml"}
ROOT_FILES = {
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "pyproject.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "setup.py",
}
"""Files beside the folders. Anything else is a left-over, and would be committed with it."""
BUILT_SUFFIXES = {".so", ".pyc"}
NAMES_FILE = "tools/type_names.py"
SOURCE_SUFFIXES = {".rs", ".py", ".toml", ".sh", ".sql", ".md", ".yaml"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One departure from one rule."""

    path: str
    line: int
    rule: str
    message: str
    is_warning: bool = False

    def __str__(self) -> str:
        mark = "warning" if self.is_warning else "error"
        return f"{self.path}:{self.line}: {mark}: {self.message} [{self.rule}]"


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """One Python function, its docstring not counted."""

    name: str
    line: int
    line_count: int
    parameter_count: int


class Tree:
    """The repository's own files, read once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> dict[str, Path]:
        """Relative path to file, without what is built or hidden."""
        return {
            path.relative_to(self.root).as_posix(): path for path in sorted(self._walk(self.root))
        }

    def _walk(self, folder: Path) -> Iterator[Path]:
        for path in folder.iterdir():
            is_hidden = path.name.startswith(".") and path.name not in KEPT_HIDDEN
            if is_hidden or path.name.endswith(".egg-info") or path.is_symlink():
                continue
            if path.is_file() and path.suffix not in BUILT_SUFFIXES:
                yield path
            elif path.is_dir() and not self._is_built(path):
                yield from self._walk(path)

    def _is_built(self, folder: Path) -> bool:
        is_output = folder.parent == self.root and folder.name in BUILT_FOLDERS
        return is_output or folder.name == "__pycache__"

    @cached_property
    def rust(self) -> dict[str, RustSource]:
        """Rust files."""
        return {name: RustSource(text) for name, text in self.texts({".rs"}).items()}

    @cached_property
    def python(self) -> dict[str, str]:
        """Python files."""
        return self.texts({".py"})

    def texts(self, suffixes: set[str]) -> dict[str, str]:
        """Contents of the files with one of these suffixes."""
        return {
            name: path.read_text(encoding="utf-8")
            for name, path in self.files.items()
            if path.suffix in suffixes
        }


def is_test(name: str) -> bool:
    """Tell whether a file holds nothing but tests."""
    return bool(re.search(r"(^|/)(tests?|benches|fuzz)/|(^|/)tests\.rs$", name))


def crate_of(name: str) -> str:
    """Crate that a path belongs to, or an empty text."""
    return name.split("/")[1] if name.startswith("crates/") else ""


def python_functions(text: str) -> Iterator[PythonFunction]:
    """Every function of a Python file."""
    for node in nodes(text):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        documentation = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
        documented = 0
        if documentation is not None:
            documented = (documentation.end_lineno or 0) - documentation.lineno + 1
        names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        yield PythonFunction(
            name=node.name,
            line=node.lineno,
            line_count=(node.end_lineno or 0) - node.lineno + 1 - documented,
            parameter_count=len([name for name in names if name not in ("self", "cls")]),
        )


def function_size(tree: Tree) -> Iterator[Finding]:
    """Check the length of functions, and warn about long lists of parameters."""
    functions = [(name, f) for name, source in tree.rust.items() for f in source.functions]
    python = [(name, f) for name, text in tree.python.items() for f in python_functions(text)]
    for name, function in functions + python:
        where = f"`{function.name}`"
        if function.line_count > FUNCTION_LINES_MAX:
            message = f"{where} has {function.line_count} lines, at most {FUNCTION_LINES_MAX}"
            yield Finding(name, function.line, "function-size", message)
        if function.parameter_count > PARAMETERS_MAX and not is_test(name):
            message = f"{where} takes {function.parameter_count} parameters"
            yield Finding(name, function.line, "parameters", message, is_warning=True)


def line_length(tree: Tree) -> Iterator[Finding]:
    """Check the width of lines."""
    for name, text in tree.texts({".rs", ".py"}).items():
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > COLUMNS_MAX:
                yield Finding(name, number, "line-length", f"{len(line)} columns")


def file_size(tree: Tree) -> Iterator[Finding]:
    """Check the length of source files, tests excluded, and the size of any file."""
    for name, text in tree.texts({".rs", ".py"}).items():
        inside = tree.rust[name].test_lines if name in tree.rust else frozenset[int]()
        count = len(text.splitlines()) - len(inside)
        if not is_test(name) and count > FILE_LINES_SOFT and GENERATED not in text[:400]:
            is_soft = count <= FILE_LINES_HARD
            yield Finding(name, 1, "file-size", f"{count} lines without tests", is_warning=is_soft)
    for name, path in tree.files.items():
        if path.stat().st_size > FILE_BYTES_MAX and path.name != "Cargo.lock":
            yield Finding(name, 1, "file-size", f"larger than {FILE_BYTES_MAX} bytes")


_ITEM = re.compile(
    r"""\s+ | \#!?\[[^\]]*\]
    | (?:pub(?:\([^)]*\))?\s+)?(?:mod\s+\w+\s*;|use\b[^;]*;|extern\s+crate[^;]*;)
    | (?P<macro>[\w:]+!\s*(?=[({\[]))
    | (?P<tests>mod\s+tests\s*(?=\{))
    | ;""",
    re.VERBOSE,
)


def lists_only(tree: Tree) -> Iterator[Finding]:
    """Check that `mod.rs` and `__init__.py` hold lists and re-exports only."""
    rule = "lists-only"
    for name, source in tree.rust.items():
        position = 0
        while name.endswith("/mod.rs") and position < len(source.code):
            match = _ITEM.match(source.code, position)
            if match is None:
                first = source.text[position:].split("\n", 1)[0]
                yield Finding(name, source.line_of(position), rule, f"not a list: {first}")
                break
            position = match.end()
            if match["macro"] or match["tests"]:
                position = source.closing(position) + 1
    for name, text in tree.python.items():
        for node in parsed(text).body if name.endswith("__init__.py") else []:
            if not _is_list_statement(node):
                what = type(node).__name__
                yield Finding(name, node.lineno, rule, f"not a list or an import: {what}")


def _is_list_statement(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(
        node, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
    )


_OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!.*#\d)")


def open_ends(tree: Tree) -> Iterator[Finding]:
    """Check that whatever is left open names its issue."""
    for name, text in tree.texts(SOURCE_SUFFIXES).items():
        for number, line in enumerate(text.splitlines(), start=1):
            if _OPEN_END.search(line):
                yield Finding(name, number, "open-ends", "left open without an issue number (#12)")


_UNFINISHED = re.compile(r"\b(?:todo|unimplemented|dbg)!")
_PRINTS = re.compile(r"\be?print(?:ln)?!")


def banned_calls(tree: Tree) -> Iterator[Finding]:
    """Check for unfinished code, and for printing inside libraries."""
    rule = "banned-calls"
    for name, source in tree.rust.items():
        is_library = "/src/" in name and not re.search(r"/src/(bin/|main\.rs)", name)
        may_print = not is_library or is_test(name) or crate_of(name) == "iolab-agent"
        for number, line in enumerate(source.code_lines, start=1):
            if match := _UNFINISHED.search(line):
                yield Finding(name, number, rule, f"`{match[0]}` is not for committed code")
            match = _PRINTS.search(line)
            if match and not may_print and number not in source.test_lines:
                yield Finding(name, number, rule, f"`{match[0]}` in a library; return the text")
    for name, text in tree.python.items():
        if not name.startswith("python/iolab/") or name.startswith("python/iolab/cli/"):
            continue
        for node in nodes(text):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                yield Finding(name, node.lineno, rule, "`print` outside cli/; return the text")


_FILES = re.compile(r"\bfs::|\bOpenOptions\b|\bunistd::sync\b")
_CLOCK = re.compile(r"\bmonotonic\(|\bInstant::now\b")
_COUNTS = re.compile(r"\b(?:Recorder|StreamReport)\b")
TIMED_CRATES = ("iolab-workload", "iolab-drive")
"""Crates whose workers and pumps run in the timed region."""
LOGS = {
    "crates/iolab-drive/src/interim.rs",
    "crates/iolab-drive/src/kv/log.rs",
    "crates/iolab-drive/src/op_log.rs",
    "crates/iolab-drive/src/recorded.rs",
}
"""Files that write what was performed, or read what shall be; they perform no workload."""
AROUND = {"crates/iolab-drive/src/run_delay.rs"}
"""Files that ask the kernel before a worker opens its file and after it has closed it."""


def timed_files(tree: Tree) -> Iterator[Finding]:
    """Check that files are touched by lanes alone where time is measured.

    Nothing of the crates of workers and pumps opens a file. A function of the agent does not read
    a clock and touch files, and a file of it that counts operations touches none.
    """
    rule, message = "timed-files", "a file is touched in a timed region; do it as an op of a lane"
    for name, source in tree.rust.items():
        if "/src/" not in name or is_test(name) or name in LOGS | AROUND:
            continue
        lines = source.code_lines
        files = [
            number
            for number, line in enumerate(lines, start=1)
            if _FILES.search(line) and number not in source.test_lines
        ]
        is_agent = crate_of(name) == "iolab-agent" and "/src/measure/" in name
        timed = [
            number
            for function in source.functions
            for number in range(function.line, function.line + function.line_count)
            if _CLOCK.search("".join(lines[function.line - 1 :][: function.line_count]))
        ]
        counts = any(map(_COUNTS.search, lines))
        everywhere = crate_of(name) in TIMED_CRATES or (is_agent and counts)
        for number in files:
            if everywhere or (is_agent and number in timed):
                yield Finding(name, number, rule, message)


_UNSAFE = re.compile(r"\bunsafe\b")
_UNSAFE_USE = re.compile(r"\bunsafe\s*(?:\{|impl\b)|\bunsafe\s*$")


def unsafe_code(tree: Tree) -> Iterator[Finding]:
    """Check where `unsafe` stands, and that each use says why it is sound."""
    for name, source in tree.rust.items():
        for number, line in enumerate(source.code_lines, start=1):
            if _UNSAFE.search(line) and crate_of(name) not in UNSAFE_CRATES:
                allowed = ", ".join(UNSAFE_CRATES)
                yield Finding(name, number, "unsafe", f"`unsafe` outside {allowed}")
            elif _UNSAFE_USE.search(line) and not _has_safety_comment(source, number):
                yield Finding(name, number, "unsafe", "`unsafe` without `// SAFETY:` just above")


def _has_safety_comment(source: RustSource, number: int) -> bool:
    """Look at this line, three lines above, and the whole of a comment that begins there."""
    distance = 0
    for line in reversed(source.lines[:number]):
        if "// SAFETY:" in line:
            return True
        if not line.lstrip().startswith("//"):
            distance += 1
        if distance > SAFETY_DISTANCE_LINES + 1:
            break
    return False


_HOME_PATH = re.compile(r"(?<![\w.~$}])/(?:home|root|Users)/\w")


def machine_paths(tree: Tree) -> Iterator[Finding]:
    """Check that no file names a place that only one machine has."""
    clone = f"{tree.root.resolve()}/"
    for name, text in tree.texts(SOURCE_SUFFIXES | {"", ".cfg", ".json", ".txt"}).items():
        for number, line in enumerate(text.splitlines(), start=1):
            if _HOME_PATH.search(line) or clone in line:
                yield Finding(name, number, "machine-paths", "a path of one machine")


_CITED = re.compile(r"(?<![\w/.*}-])[\w/-]+\.md\b")


def root_files(tree: Tree) -> Iterator[Finding]:
    """Files in the root that `ROOT_FILES` does not list."""
    for name in tree.files:
        if "/" not in name and name not in ROOT_FILES:
            yield Finding(name, 1, "root-files", "no file of the project: remove it, or list it")


def cited_pages(tree: Tree) -> Iterator[Finding]:
    """Check that a page of Markdown that sources name is in the tree."""
    pages = {name for name in tree.files if name.endswith(".md")}
    known = pages | {Path(name).name for name in pages}
    for name, text in tree.texts({".rs", ".py", ".sh", ".toml"}).items():
        for number, line in enumerate([] if is_test(name) else text.splitlines(), start=1):
            for cited in _CITED.findall(line):
                if cited not in known:
                    yield Finding(name, number, "cited-pages", f"{cited} is not in the repository")


def final_newline(tree: Tree) -> Iterator[Finding]:
    """Check that sources end with one newline and carry no trailing blanks."""
    for name, text in tree.texts(SOURCE_SUFFIXES - {".md"}).items():
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield Finding(name, len(text.splitlines()), "final-newline", "not exactly one newline")
        for number, line in enumerate(text.splitlines(), start=1):
            if line != line.rstrip() and not name.startswith("tests/golden/"):
                yield Finding(name, number, "final-newline", "blanks at the end of the line")


def repeated_names(tree: Tree) -> Iterator[Finding]:
    """Check that a public type name is declared once, or that `type_names.py` says why not."""
    declared = dict[str, list[tuple[str, int]]]()
    for name, path, line in [*exported_types(tree.rust), *declared_classes(tree.python)]:
        declared.setdefault(name, []).append((path, line))
    for name, places in declared.items():
        first = "{}:{}".format(*places[0])
        for path, line in places[1:] if name not in REPEATS else ():
            yield Finding(path, line, "repeated-names", f"`{name}` is the name of {first}, too")
    if NAMES_FILE in tree.files:
        for name in REPEATS:
            if len(declared.get(name, ())) < 2:
                message = f"`{name}` is declared once: remove its row"
                yield Finding(NAMES_FILE, 1, "repeated-names", message, is_warning=True)


_RIDDLES = re.compile(r"\b[Ww]hom\b|\bof ours\b|\b[Ww]hat it is about\b|^Who\b")


def plain_docstrings(tree: Tree) -> Iterator[Finding]:
    """Check that docstrings of public Python code name the thing that they describe."""
    for name, text in tree.python.items():
        if name.startswith("python/iolab/"):
            for line, docstring in public_docstrings(parsed(text)):
                for found in _RIDDLES.findall(docstring):
                    message = f"'{found}' in a docstring: name the thing"
                    yield Finding(name, line, "plain-docstrings", message)


def first_words_of_comments(tree: Tree) -> Iterator[Finding]:
    """Check that documentation in Rust and Python, tests included, begins with its subject."""
    rust = [(name, first_words.of_rust(source.text)) for name, source in tree.rust.items()]
    python = [
        (name, first_words.of_python(text)) for name, text in tree.texts({".py", ".pyi"}).items()
    ]
    for name, words in rust + python:
        for line, word in words:
            if word in first_words.BANNED:
                message = f"begins with '{word}': begin with a noun phrase or a verb"
                yield Finding(name, line, "first-words", message)


def public_docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings of a module, its public classes and functions, and their public methods."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if getattr(node, "name", "module").startswith("_"):
        return
    docstring = ast.get_docstring(node)
    if docstring is not None:
        yield getattr(node, "lineno", 1), docstring
    for inner in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
        yield from public_docstrings(inner)


def list_rows(tree: Tree) -> Iterator[Finding]:
    """Check that every row of every list has its page and its test (see `registries.py`)."""
    for path, line, message in missing_companions(tree.root, sorted(tree.files)):
        yield Finding(path, line, "list-rows", message)


def untyped_signatures(tree: Tree) -> Iterator[Finding]:
    """Check that signatures outside the border have types."""
    for name, text in {**tree.python, **tree.texts({".rs"})}.items():
        lines = untyped.signatures(name, text)
        allowed = untyped.LEFT.get(name, 0)
        if name not in untyped.EXCEPTIONS and len(lines) > allowed:
            message = f"{len(lines)} signatures without a type (`Any`, `Value`), {allowed} allowed"
            yield Finding(name, lines[-1], "untyped", f"{message}: see tools/untyped.py")


RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    function_size,
    line_length,
    file_size,
    lists_only,
    open_ends,
    banned_calls,
    timed_files,
    unsafe_code,
    machine_paths,
    root_files,
    cited_pages,
    final_newline,
    repeated_names,
    plain_docstrings,
    first_words_of_comments,
    list_rows,
    untyped_signatures,
)


def check(root: Path) -> list[Finding]:
    """Findings of all rules."""
    tree = Tree(root)
    return [finding for rule in RULES for finding in rule(tree)]


def main() -> int:
    """Print the findings; 1 if any of them is an error."""
    tree_root = Path(__file__).resolve().parents[1]
    findings = check(tree_root)
    for finding in findings:
        print(finding)
    errors = [finding for finding in findings if not finding.is_warning]
    print(f"tidy: {len(errors)} errors, {len(findings) - len(errors)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
