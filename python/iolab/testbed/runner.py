"""Runner of the trials of a testbed: the agent on a real one, this process on a simulated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from iolab.testbed.agent import Agent, Hello, OnProgress, OpenTestbed, Stop
from iolab.testbed.command import THIS, agent_command
from iolab.testbed.hosts import Host
from iolab.testbed.model import Testbed

if TYPE_CHECKING:
    from iolab.protocol import Closed, Record, TrialSpec


class Runner(Protocol):
    """Runner, which conducts a study: opens a testbed, runs trials one by one, closes it."""

    def __enter__(self) -> Self:
        """Return the runner itself."""
        ...

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """End; whatever was changed is put back."""
        ...

    @property
    def process(self) -> int | None:
        """Process that measures and ends after this one; None if it is this one."""
        ...

    def hello(self, run_id: str, *, is_dry_run: bool = False) -> Hello:
        """Say who runs the trials."""
        ...

    def open_testbed(
        self, spec: Mapping[str, object], on_progress: OnProgress | None = None
    ) -> OpenTestbed:
        """Prepare a testbed."""
        ...

    def run_trial(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """Run one trial; returns its record."""
        ...

    def proceed(self) -> None:
        """Let a trial that waits for it begin its next phase."""
        ...

    def close_testbed(self, on_progress: OnProgress | None = None) -> Closed:
        """Take the testbed apart."""
        ...


StartRunner: TypeAlias = Callable[[Stop | None, Callable[[str], None] | None], Runner]
"""Starts a runner, given the switch that stops it and where it tells what the user should know."""


def choose_runner(
    testbed: Testbed, *, needs_root: bool, asked: tuple[str, str] = THIS
) -> StartRunner:
    """Starter of the runner of a testbed.

    A password, if one is needed, is asked here, while this process still owns the terminal. `asked`
    says what needs root, and what would not.

    Raises
    ------
    TestbedError : the agent is missing, or root is needed and cannot be had.
    """
    if testbed.is_simulated:
        from iolab.testbed.sim import SimRunner

        return lambda stop, _tell: SimRunner(stop=stop)
    command = agent_command(needs_root=needs_root, asked=asked)
    if testbed.has_null_target:
        from iolab.testbed.null import NullRunner

        return lambda stop, tell: NullRunner(command, stop=stop, tell=tell)
    return lambda stop, tell: Agent(command, stop=stop, tell=tell)


def on_host(host: Host) -> StartRunner:
    """Starter of the agent of a host, which was found there."""
    return lambda stop, tell: Agent(host.agent_command, stop=stop, tell=tell)
