"""Parsed Python files: each text is parsed and walked once, however many rules look at it."""

import ast
from functools import cache


@cache
def parsed(text: str) -> ast.Module:
    """Tree of a file. A `SyntaxError` says where the text is not Python."""
    return ast.parse(text)


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Every node of a file, outer ones first."""
    return tuple(ast.walk(parsed(text)))
