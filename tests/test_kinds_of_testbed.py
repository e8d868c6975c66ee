"""Nothing outside the testbeds asks for the name of a kind: properties of its row decide."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import iolab

PACKAGE = Path(iolab.__file__).parent
NAMES = frozenset({"sim", "simulated", "loop", "dir", "device"})
ATTRIBUTES = frozenset({"kind", "record_kind"})
ALLOWED = ("testbed/", "store/rows.py")
"""Modules in which kinds are made: the testbeds, and the column of the store."""


def comparisons(source: str) -> list[int]:
    """Lines that compare the kind of something with the name of a kind of testbed."""
    found = list[int]()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        attributes = {side.attr for side in sides if isinstance(side, ast.Attribute)}
        attributes |= {side.id for side in sides if isinstance(side, ast.Name)}
        words = {
            leaf.value
            for side in sides
            for leaf in ast.walk(side)
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
        }
        if attributes & ATTRIBUTES and words & NAMES:
            found.append(node.lineno)
    return found


def test_no_module_compares_the_name_of_a_kind() -> None:
    found = list[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(ALLOWED):
            found += [f"{name}:{n}" for n in comparisons(path.read_text(encoding="utf-8"))]
    assert found == [], "ask a property of the row in iolab.study.testbeds, or `is_simulated`"


@pytest.mark.parametrize(
    "source",
    [
        'if study.testbed.kind == "sim": pass',
        'if data.study.kind != "simulated": pass',
        'x = self.kind not in ("dir", "sim")',
        'x = testbed.record_kind == "simulated"',
        'if kind == "loop": pass',
        'if study.testbed.kind == "device": pass',
    ],
)
def test_the_check_can_fail(source: str) -> None:
    assert comparisons(source) == [1]
    assert comparisons("if study.is_simulated: pass") == []
