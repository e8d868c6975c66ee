"""First words of documentation: a docstring or a `///` comment begins by naming its subject.

A beginning such as "What ..." or "Where ..." leaves the subject to be guessed. A noun phrase or a
verb names it: "Path of the report", "Check that ...", "Tell whether ...".
"""

import ast
import re
from collections.abc import Iterator

from python_source import nodes

_THINGS = ("What", "Whatever", "Which", "Whether", "Where", "When", "Why", "How")
_PERSONS = ("Who", "Whoever", "Whom", "Whose", "Nobody", "Somebody", "Someone", "Everybody")
_PRONOUNS = ("It", "They")
BANNED = frozenset({*_THINGS, *_PERSONS, *_PRONOUNS})
"""Beginnings that name nothing; capitals, because a sentence begins with them."""

_COMMENT = re.compile(r"\s*(//[/!])(?!/) ?(.*)")
_WORD = re.compile(r"[`*\"(]*(\w+)")


def of_rust(text: str) -> Iterator[tuple[int, str]]:
    """Line and first word of every `///` and `//!` comment, tests included."""
    before = ""
    for number, line in enumerate(text.splitlines(), start=1):
        match = _COMMENT.match(line)
        mark = match[1] if match else ""
        if match and mark != before and (word := _WORD.match(match[2])):
            yield number, word[1]
        before = mark


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Line and first word of every docstring, those of attributes and private names included."""
    for node in nodes(text):
        body = node.body if isinstance(node, _WITH_DOCSTRINGS) else []
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value.value
                if isinstance(value, str) and (word := _WORD.match(value.lstrip())):
                    yield statement.lineno, word[1]


_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
