"""The real command line, the real agent, a state directory of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .machine_state import differences, machine_state

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def iolab(tmp_path: Path) -> Run:
    """Runs `iolab` with these arguments in a directory of its own."""

    def run(*arguments: str | Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "iolab.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80"},
        )

    return run


@pytest.fixture
def untouched_machine() -> Iterator[dict[str, str]]:
    """Fails the test if the machine is not as before when it ends."""
    before = machine_state()
    yield before
    changed = differences(before, machine_state())
    assert not changed, "the machine was changed: " + "; ".join(changed)
