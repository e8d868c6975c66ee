"""Every numbered point of issue 14 has tests, and the table in tests/README.md names them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
ROWS: Final = re.findall(
    r"^\| (\d+) \| [^|]+ \| (.+) \|$", (ROOT / "tests" / "README.md").read_text(), re.MULTILINE
)
_DEFINED: Final = {".py": "def {}(", ".rs": "fn {}("}


def test_every_point_has_a_row() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, 19))


@pytest.mark.parametrize(("number", "named"), ROWS)
def test_every_named_test_is_there(number: str, named: str) -> None:
    tests = re.findall(r"`([^`]+)`", named)
    assert tests, number
    for test in tests:
        file, _, name = test.partition("::")
        path = ROOT / file
        assert _DEFINED[path.suffix].format(name) in path.read_text(), test
