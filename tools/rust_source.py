"""Just enough of Rust's syntax to count and to look for words: no parser, no dependency.

Left out: macro bodies are seen as plain tokens, and a function whose signature comes from a macro
(``fn $name``) is not seen. Source of the token rules: The Rust Reference, "Tokens".
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\b[bc]?r(?P<hashes>\#*)"(?s:.*?)"(?P=hashes))
  | (?P<string>\b[bc]"(?:\\(?s:.)|[^"\\])*"|"(?:\\(?s:.)|[^"\\])*")
  | (?P<char>\bb'(?:\\.[^']*|[^'\\])'|'(?:\\.[^']*|[^'\\\n])')
  """,
    re.VERBOSE,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)")
_SELF = re.compile(r"(&\s*('\w+\s+)?)?(mut\s+)?self\b")
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*\{")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Function:
    """One function with a body: where it stands, how long it is, what it takes."""

    name: str
    line: int
    line_count: int
    parameter_count: int


class RustSource:
    """One file: its text, and the same text with comments and literals blanked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines()

    @cached_property
    def code(self) -> str:
        """The text with comments, strings and characters replaced by blanks of the same size."""
        parts: list[str] = []
        position = 0
        while match := _TOKEN.search(self.text, position):
            parts.append(self.text[position : match.start()])
            end = self._block_end(match.end()) if match["block"] else match.end()
            parts.append(_blank(self.text[match.start() : end]))
            position = end
        parts.append(self.text[position:])
        return "".join(parts)

    @cached_property
    def code_lines(self) -> list[str]:
        """Lines of `code`."""
        return self.code.splitlines()

    @cached_property
    def test_lines(self) -> frozenset[int]:
        """Numbers of the lines inside ``#[cfg(test)] mod ... { }``."""
        inside: set[int] = set()
        for match in _TEST_MODULE.finditer(self.code):
            end = self.closing(match.end() - 1)
            inside.update(range(self.line_of(match.start()), self.line_of(end) + 1))
        return frozenset(inside)

    def line_of(self, position: int) -> int:
        """Line number, from 1, of a position in the text."""
        return self.text.count("\n", 0, position) + 1

    def closing(self, opening: int) -> int:
        """Position of the bracket that closes the one at `opening`; the end if none does."""
        opener = self.code[opening]
        closer = _CLOSING[opener]
        depth = 0
        for position in range(opening, len(self.code)):
            if self.code[position] == opener:
                depth += 1
            elif self.code[position] == closer:
                depth -= 1
                if depth == 0:
                    return position
        return len(self.code) - 1

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function that has a body."""
        return tuple(self._functions())

    def _functions(self) -> Iterator[Function]:
        for match in _FUNCTION.finditer(self.code):
            opening = _first_outside(self.code, match.end(), "(")
            if opening is None:
                continue
            closing = self.closing(opening)
            body = _first_outside(self.code, closing + 1, "{;")
            if body is None or self.code[body] == ";":
                continue
            line = self.line_of(match.start())
            yield Function(
                name=match[1],
                line=line,
                line_count=self.line_of(self.closing(body)) - line + 1,
                parameter_count=_count_parameters(self.code[opening + 1 : closing]),
            )

    def _block_end(self, position: int) -> int:
        depth = 1
        while depth and (edge := _BLOCK_EDGE.search(self.text, position)):
            depth += 1 if edge[0] == "/*" else -1
            position = edge.end()
        return len(self.text) if depth else position


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _depths(code: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """Each position with its character and how many brackets are open before it."""
    depth = 0
    for position in range(start, len(code)):
        character = code[position]
        is_arrow = character == ">" and code[position - 1] in "-="
        if character in ")]>" and not is_arrow:
            depth -= 1
        yield position, character, depth
        if character in "([<":
            depth += 1


def _first_outside(code: str, start: int, wanted: str) -> int | None:
    """Position of the first of the `wanted` characters outside brackets."""
    for position, character, depth in _depths(code, start):
        if depth == 0 and character in wanted:
            return position
    return None


def _count_parameters(code: str) -> int:
    cuts = [
        position for position, character, depth in _depths(code) if (character, depth) == (",", 0)
    ]
    edges = [-1, *cuts, len(code)]
    parts = [code[a + 1 : b].strip() for a, b in itertools.pairwise(edges)]
    return sum(1 for part in parts if part and not _SELF.match(part))
