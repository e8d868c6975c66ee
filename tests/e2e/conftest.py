"""The real command line, the real agent, a state directory of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from .machine_state import differences, machine_state, watch

_FAILED = pytest.StashKey[bool]()
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True, scope="session")
def watched_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the machine's state contain what the tests of this session make, and not of others."""
    watch(tmp_path_factory.getbasetemp())


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes which tests failed, for the fixture below."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def restored_after_a_failure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Puts back what a failed test left: else every later one would be refused for it."""
    yield
    if request.node.stash.get(_FAILED, False):
        argv = [sys.executable, "-m", "iolab.cli", "restore"]
        subprocess.run(argv, capture_output=True, check=False, timeout=100)
