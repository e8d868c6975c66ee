"""The null testbed: every operation completes at once, so that iolab itself is measured.

Trials run in the agent as on a directory, with the same workers, clocks and records, but their
operations go to the null target (`crates/iolab-drive/src/target/null.rs`), which keeps nothing.
Workers are threads, because the null target is not shared between processes.

Left out: everything below a target: page cache, file systems, knobs, devices; what needs memory
that is mapped, locks, streams and sets of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Self

from iolab.errors import TestbedError
from iolab.frozen import frozen, replace
from iolab.testbed.agent import Agent, Hello, OnProgress, OpenTestbed, Stop
from iolab.testbed.places import Place
from iolab.testbed.real import RealTestbed
from iolab.testbed.refusal import Abilities, Refusal, RefusalCore

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.protocol import Closed, Phase, Record, TrialSpec, Workload
    from iolab.testbed.places import Place

KIND: Final = "null"
_REASON: Final = "nothing lies below the null target"
_HINT: Final = "leave it out, or use --on loop:1g"
_CAVEAT: Final[protocol.Warning] = {
    "code": "nothing_stored",
    "message": "null: every operation completed at once and nothing was stored: what was measured "
    "is iolab itself, not a device, a file system or memory",
    "hint": "use it to see what iolab costs; measure storage with --on loop:1g or --on dir:PATH",
}


@frozen
class NullTestbed(RealTestbed):
    """A target that completes every operation at once (class A)."""

    needs_root: ClassVar[bool] = False
    can_need_root: ClassVar[bool] = False
    has_null_target: ClassVar[bool] = True
    places: ClassVar[tuple[Place, ...]] = ()

    @property
    def text(self) -> str:
        """Canonical short form."""
        return KIND

    @property
    def request(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Kind, argument and options, canonically."""
        return KIND, "", ()

    def agent_spec(self) -> dict[str, object]:
        """Description that the runner opens: an empty directory, in which nothing will be
        written.
        """
        import tempfile

        return {"kind": "directory", "path": tempfile.gettempdir(), "allow_knobs_on": []}

    def check_space(self, file_bytes: int) -> None:
        """Accept files of any size: none is made."""
        del file_bytes

    def round_text(self, written_bytes: int, duration_ns: int, ops: int | None) -> str:
        """Sentence about the effects of a round."""
        del written_bytes, duration_ns, ops
        return "nothing is stored: operations complete at once"

    def expected_ns(self, duration_ns: int) -> int | None:
        """Nothing can be said about the duration before anything ran."""
        del duration_ns

    def refusals(
        self, core: RefusalCore, spec: TrialSpec, abilities: Abilities
    ) -> tuple[Refusal, ...]:
        """Settings of a trial that would lie below the target; it declines operations itself."""
        del core, abilities
        asked = [
            f"asks for {name} = {value}" for name, value in dict(spec.get("knobs", {})).items()
        ]
        asked += ["asks for a file system"] if spec.get("stack") else []
        asked += ["limits memory"] if spec.get("memory_limit_bytes") is not None else []
        return tuple(Refusal("no_storage", what, "", "", _REASON, _HINT) for what in asked)


def null_testbed(argument: str, options: Mapping[str, str]) -> NullTestbed:
    """The testbed of ``null:``.

    Raises
    ------
    TestbedError : an argument or an option is given.
    """
    if argument:
        raise TestbedError(f"null:{argument}: the null target has no names", "write --on null:")
    for name in options:
        raise TestbedError(f"a null testbed has no {name}", "leave it out")
    return NullTestbed()


class NullRunner:
    """The agent's client, whose trials go to the null target."""

    def __init__(
        self, command: list[str], *, stop: Stop | None, tell: Callable[[str], None] | None
    ) -> None:
        self._agent = Agent(command, stop=stop, tell=tell)

    def __enter__(self) -> Self:
        """Start the agent."""
        self._agent.__enter__()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *rest: object) -> None:
        """End the agent."""
        self._agent.__exit__(error_type, *rest)

    @property
    def process(self) -> int:
        """Process of the agent."""
        return self._agent.process

    def hello(self, run_id: str, *, is_dry_run: bool = False) -> Hello:
        """Identity of the agent."""
        return self._agent.hello(run_id, is_dry_run=is_dry_run)

    def proceed(self) -> None:
        """Let a trial that waits begin its next phase."""
        self._agent.proceed()

    def open_testbed(
        self, spec: Mapping[str, object], on_progress: OnProgress | None = None
    ) -> OpenTestbed:
        """Open the empty directory; the devices below it have no part in what is measured."""
        opened = self._agent.open_testbed(spec, on_progress)
        return replace(opened, devices=(), knob_devices=(), schedulers=(), warnings=(_CAVEAT,))

    def run_trial(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """Run one trial on the null target; returns its record."""
        return self._agent.run_trial(_on_null(spec), on_progress)

    def close_testbed(self, on_progress: OnProgress | None = None) -> Closed:
        """Remove the directory."""
        return self._agent.close_testbed(on_progress)


def _on_null(spec: TrialSpec) -> TrialSpec:
    """The trial with all its phases on the null target, and nothing done to a cache."""
    phases: list[Phase] = [
        {**phase, "engine": None} if "engine" in phase else phase
        for phase in spec["workload"]["phases"]
    ]
    workload: Workload = {
        **spec["workload"],
        "engine": KIND,
        "workers_as": "threads",
        "phases": phases,
    }
    return {**spec, "cache": "as_is", "workload": workload}
