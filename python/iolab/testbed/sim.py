"""Simulated stacks: a testbed that needs nothing of the machine, and what runs trials on it.

``sim:PROFILE`` is a queue in front of a built-in device; ``sim:STACK.toml`` is a file (volumes,
queues of their own, other parameters; `docs/reference/stack-file.md`). Trials run in this process,
in virtual time: no agent, no root, nothing to restore. The record has the shape of the agent's.

Left out: file systems, the page cache, several processes at once.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, Self, cast

from iolab import units
from iolab.errors import StoppedError, TestbedError
from iolab.frozen import frozen
from iolab.json_text import read_json, write_json
from iolab.testbed.agent import Hello, OnProgress, OpenTestbed, Stop
from iolab.testbed.places import Place, options_with, text_with
from iolab.testbed.refusal import Abilities, Refusal, RefusalCore, parse_refusals
from iolab.wording import provenance_text

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.json_text import JsonText
    from iolab.protocol import (
        Action,
        ActionKind,
        Closed,
        Record,
        SchedulerBook,
        SimulatedStack,
        TrialSpec,
    )

CLASS_LETTER: Final = "S"
STACK_ENDING: Final = ".toml"
_PRESSES_MEANING_NOW: Final = 2
ASSUMED_OPS_PER_S: Final = 100_000
"""Operations that a modest processor simulates in a second; for a first guess only."""
_WAIT_NS: Final = 10_000_000_000
"""A round that may take longer is told with its time."""
_HEARTBEAT_S: Final = 5.0
"""Pause between two signs that a long simulated trial goes on."""
_DIGEST: Final = "digest"
"""Option of a testbed made from a file: a hash of the stack that the file described."""
_DIGEST_DIGITS: Final = 16


class Simulator(Protocol):
    """Functions of `iolab._core` that are needed."""

    def sim_profile_stack(self, profile: str, /) -> str:
        """Stack of a built-in profile, as JSON."""
        ...

    def sim_stack(self, subject: str, text: str, /) -> str:
        """Stack in a file, as JSON."""
        ...

    def sim_describe(self, stack_json: str, /) -> JsonText[SimulatedStack]:
        """Size, title and provenance, as JSON."""
        ...

    def sim_schedulers(self) -> JsonText[list[SchedulerBook]]:
        """Every scheduler with its tunables, as JSON."""
        ...

    def sim_knobs(
        self, stack_json: str, knobs_json: JsonText[Mapping[str, str]], /
    ) -> JsonText[dict[str, str]]:
        """Knobs as a trial would read them back, as JSON."""
        ...

    def simulate_trial(
        self,
        stack_json: str,
        trial_json: JsonText[TrialSpec],
        should_stop: Callable[[], bool] | None,
        /,
    ) -> JsonText[Record]:
        """Record of a trial, as JSON."""
        ...


@frozen
class SimTestbed:
    """A simulated stack (class S)."""

    needs_root: ClassVar[bool] = False
    can_need_root: ClassVar[bool] = False
    has_knobs_on_paper: ClassVar[bool] = True
    is_simulated: ClassVar[bool] = True
    has_null_target: ClassVar[bool] = False
    record_kind: ClassVar[Literal["real", "simulated"]] = "simulated"

    argument: str
    """Profile or absolute path of a stack file."""
    stack_json: str
    description: SimulatedStack
    """Description of the stack by `sim_describe`."""
    places: tuple[Place, ...] = ()

    @property
    def text(self) -> str:
        """Canonical short form."""
        return text_with(f"sim:{self.argument}", self.places)

    @property
    def has_faults(self) -> bool:
        """Tell whether the stack file injects failures."""
        return bool(json.loads(self.stack_json).get("faults"))

    @property
    def whole_stack_json(self) -> str:
        """The stack with those of all further places."""
        if not self.places:
            return self.stack_json
        stacks = {
            place.name: json.loads(place.testbed.stack_json)
            for place in self.places
            if isinstance(place.testbed, SimTestbed)
        }
        stack = cast("dict[str, dict[str, object]]", json.loads(self.stack_json))
        return json.dumps({**stack, "places": {**stack.get("places", {}), **stacks}})

    @property
    def request(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Kind and argument; of a file also what it said, so that another one is another plan."""
        if not self.argument.endswith(STACK_ENDING):
            return "sim", self.argument, options_with((), self.places)
        digest = (_DIGEST, _digest(self.stack_json))
        return "sim", self.argument, options_with((digest,), self.places)

    @property
    def title(self) -> str:
        """One line for people; the name if the stack has no title."""
        return self.description["title"] or self.description["name"]

    @property
    def provenance(self) -> str:
        """Sources of the numbers: ``12 from data sheets, 3 assumed``."""
        return provenance_text(self.description["provenance"])

    def agent_spec(self) -> Mapping[str, object]:
        """Description that the runner opens."""
        return {
            "kind": "sim",
            "name": self.argument,
            "stack": json.loads(self.whole_stack_json),
            "stack_json": self.whole_stack_json,
            "description": dict(self.description),
            "warning": self._warning(),
        }

    def check_space(self, file_bytes: int) -> None:
        """Refuse a study whose files do not fit onto the simulated device.

        Raises
        ------
        TestbedError : too little space.
        """
        capacity = self.description["capacity_bytes"]
        if file_bytes > capacity:
            raise TestbedError(
                f"{self.text} holds {units.format_bytes_rounded(capacity)}; the files need "
                f"{units.format_bytes_rounded(file_bytes)} at the same time",
                "use smaller files or fewer workers",
            )

    def refusals(
        self, core: RefusalCore, spec: TrialSpec, abilities: Abilities
    ) -> tuple[Refusal, ...]:
        """Everything in a trial spec that the stack cannot do; its engines are all alike."""
        del abilities
        return parse_refusals(core.sim_refusals(self.whole_stack_json, write_json(spec)))

    def round_text(self, written_bytes: int, duration_ns: int, ops: int | None) -> str:
        """Sentence about the effects of a round, and the time that it may take, as far as that can
        be guessed.
        """
        del written_bytes, duration_ns
        text = "simulated, nothing is written but the results"
        return text if ops is None else f"{text}; {simulation_text(ops)}"

    def expected_ns(self, duration_ns: int) -> int | None:
        """Nothing can be said about the duration before anything ran."""
        del duration_ns

    def _warning(self) -> dict[str, str]:
        profile = shlex.quote(self.argument)
        hint = f"`iolab sim profiles {profile}` prints every number with its source"
        if self.argument.endswith(STACK_ENDING):
            hint = "`iolab sim profiles NAME` prints every number of a profile with its source"
        n_parameters = sum(self.description["provenance"].values())
        return {
            "code": "simulated",
            "message": f"{self.title}, simulated; its {n_parameters} parameters: {self.provenance}",
            "hint": hint,
        }


def simulation_text(ops: int) -> str:
    """Amount that is simulated in a round; a guess of how long that takes, if anybody would
    wait.
    """
    text = f"a round simulates {units.grouped(ops)} operation{'' if ops == 1 else 's'}"
    guessed_ns = ops * 1_000_000_000 // ASSUMED_OPS_PER_S
    if guessed_ns < _WAIT_NS:
        return text
    return (
        f"{text} (roughly {units.format_duration_rounded(guessed_ns)}, if this machine does "
        f"{units.grouped(ASSUMED_OPS_PER_S)} a second; smaller files or larger records take less)"
    )


def simulated_testbed(
    argument: str, options: Mapping[str, str], simulator: Simulator | None = None
) -> SimTestbed:
    """The testbed of ``sim:PROFILE`` or ``sim:STACK.toml``.

    Raises
    ------
    StudyError : no such profile, or the file is no stack; names the nearest, or the place.
    TestbedError : nothing is named, or the file cannot be read.
    """
    for name in options:
        if name != _DIGEST:
            raise TestbedError(f"a sim testbed has no {name}", "leave it out")
    simulator = simulator or _simulator()
    if not argument:
        raise TestbedError(
            "sim: needs a profile or a stack file",
            "as in --on sim:PROFILE; `iolab sim profiles` lists them",
        )
    if argument.endswith(STACK_ENDING) or "/" in argument:
        path = Path(argument).expanduser().absolute()
        stack_json = simulator.sim_stack(str(path), _read(path))
        argument = str(path)
    else:
        stack_json = simulator.sim_profile_stack(argument)
    if options.get(_DIGEST, _digest(stack_json)) != _digest(stack_json):
        raise TestbedError(
            f"{argument} was changed since the study was made",
            f"measure it as another study: type the command again with --out NEW (in a study file "
            f"leave {_DIGEST} out); or restore the file",
        )
    return SimTestbed(argument, stack_json, read_json(simulator.sim_describe(stack_json)))


def _digest(stack_json: str) -> str:
    return hashlib.sha256(stack_json.encode()).hexdigest()[:_DIGEST_DIGITS]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TestbedError(
            f"there is no stack file {path}",
            "name a file, or a profile: `iolab sim profiles` lists them",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TestbedError(f"{path} cannot be read: {error}", "check the file") from None


def _simulator() -> Simulator:
    try:
        from iolab import _core
    except ImportError as error:
        raise TestbedError(
            f"the compiled part of iolab is missing ({error})",
            "run `pip install .` in the source directory",
        ) from None
    return _core


def _title_of(spec: Mapping[str, object]) -> str:
    """Title of the stack in a spec of `SimTestbed.agent_spec`."""
    return str(cast("Mapping[str, object]", spec["description"])["title"])


class SimRunner:
    """Runs trials on a simulated stack, with the face of the agent's client."""

    def __init__(self, *, stop: Stop | None = None, simulator: Simulator | None = None) -> None:
        self._stop = stop
        self._simulator = simulator or _simulator()
        self._is_dry_run = False
        self._name = ""
        self._stack_json = ""

    def __enter__(self) -> Self:
        """Return the runner itself."""
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Nothing was changed, so that nothing is to be put back."""
        del error_type

    @property
    def process(self) -> None:
        """None: this process simulates."""

    def hello(self, run_id: str, *, is_dry_run: bool = False) -> Hello:
        """Identity of the runner: this process, with the rights of its user."""
        del run_id
        self._is_dry_run = is_dry_run
        return Hello(version="", is_root=False, boot_id="", open_journals=())

    def proceed(self) -> None:
        """Nothing waits in a simulation."""

    def open_testbed(
        self,
        spec: Mapping[str, object],
        on_progress: OnProgress | None = None,
    ) -> OpenTestbed:
        """Take the stack; `spec` is what `SimTestbed.agent_spec` gave."""
        del on_progress
        self._name = f"sim:{spec['name']}"
        self._stack_json = str(spec["stack_json"])
        description = {key: value for key, value in spec.items() if key != "stack_json"}
        return OpenTestbed(
            class_letter=CLASS_LETTER,
            directory="",
            devices=(self._name,),
            knob_devices=(self._name,),
            schedulers=tuple(row["name"] for row in read_json(self._simulator.sim_schedulers())),
            warnings=(cast("protocol.Warning", spec["warning"]),),
            actions=(self._action("simulate", _title_of(spec)),),
            description={"class": CLASS_LETTER, **description},
        )

    def run_trial(
        self,
        spec: TrialSpec,
        on_progress: OnProgress | None = None,
    ) -> Record:
        """Simulate one trial; returns its record.

        Raises
        ------
        StudyError : the workload or a knob cannot be simulated.
        StoppedError : the user asked twice.
        """
        if self._is_dry_run:
            return self._rehearsed(spec)
        text = self._simulator.simulate_trial(
            self._stack_json, write_json(spec), self._watch(on_progress)
        )
        if self._presses() >= _PRESSES_MEANING_NOW:
            raise StoppedError("stopped at once; a simulation leaves nothing behind")
        return read_json(text)

    def close_testbed(self, on_progress: OnProgress | None = None) -> Closed:
        """End; there is nothing to restore."""
        del on_progress
        return {"is_restored": True, "problems": [], "actions": []}

    def _rehearsed(self, spec: TrialSpec) -> Record:
        """Actions of a trial that is not simulated; its knobs are checked nevertheless."""
        knobs = read_json(self._simulator.sim_knobs(self._stack_json, write_json(spec["knobs"])))
        actions = [self._action("set", f"{name} = {value}") for name, value in knobs.items()]
        phases = ", ".join(phase["name"] for phase in spec["workload"]["phases"])
        return {
            "trial": spec["trial"],
            "status": "dry_run",
            "error": None,
            "started_at_unix_ns": 0,
            "elapsed_ns": 0,
            "engine": spec["workload"]["engine"],
            "knobs": knobs,
            "stack": None,
            "facts": {},
            "warnings": [],
            "actions": [*actions, self._action("simulate", phases)],
            "phases": [],
        }

    def _action(self, kind: ActionKind, detail: str) -> Action:
        return {"class": CLASS_LETTER, "kind": kind, "target": self._name, "detail": detail}

    def _watch(self, on_progress: OnProgress | None) -> Callable[[], bool]:
        """Question that the simulator asks now and then: whether to stop; tells that it goes on."""

        def tell(phase: str) -> None:
            if on_progress is not None:
                on_progress({"phase": phase, "message": ""})

        tell("simulating")
        began_s = told_s = time.monotonic()

        def should_stop() -> bool:
            nonlocal told_s
            now_s = time.monotonic()
            if now_s - told_s >= _HEARTBEAT_S:
                told_s = now_s
                elapsed_ns = round((now_s - began_s) * 1e9)
                tell(f"simulating for {units.format_duration_rounded(elapsed_ns)}")
            return self._presses() > 0

        return should_stop

    def _presses(self) -> int:
        return 0 if self._stop is None else self._stop.presses
