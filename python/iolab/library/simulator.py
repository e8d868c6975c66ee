"""Views into the simulator: scenarios, recordings replayed, probes, profiles, schedulers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from iolab.errors import StudyError
from iolab.frozen import frozen, replace
from iolab.json_text import write_json
from iolab.library.services import Services
from iolab.library.study import Study, checked_study
from iolab.regular_file import refuse_endless
from iolab.run.traces import ENDING, with_trace
from iolab.run.trial import trial_spec
from iolab.store.users_files import (
    Allowed,
    made_empty,
    refuse_existing,
    removed_if_empty,
    write_new,
)
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.study.trace_words import TraceEvents
from iolab.testbed.model import make_testbed
from iolab.testbed.sim import Simulator, simulated_testbed
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.protocol import (
        Judgement,
        Prediction,
        ProbeFindings,
        Profile,
        Record,
        ReplayTwin,
        SchedulerBook,
        TrialSpec,
    )

TRACE_ENDING: Final = ".csv.gz"
"""Of the files of events that are written, and of recordings."""
TRACE_ENDINGS: Final = (TRACE_ENDING, ENDING)
"""Of the files of events that are written; the second is the format of ``iolab trace``."""
_SEED_END: Final = 1 << 63


_Recording: TypeAlias = tuple[str, str, str]


class _Books(Simulator, Protocol):
    """Functions of the extension about the simulator."""

    def sim_scenarios(self, subject: str, text: str, /) -> str: ...
    def sim_predict(
        self, recording: _Recording, scheduler: str, tunables: str, explain: int | None = None, /
    ) -> str: ...
    def sim_replay(self, recording: _Recording, scheduler: str, tunables: str, /) -> str: ...
    def sim_probe(self, stack_json: str, seed: int, /) -> str: ...
    def sim_profile_names(self) -> list[str]: ...
    def sim_profile(self, name: str, /) -> str: ...
    def sim_software_names(self) -> list[str]: ...
    def sim_software(self, name: str, /) -> str: ...
    def sim_trace(self, stack_json: str, trial_json: str, /) -> str: ...


def _books(services: Services) -> _Books:
    return cast("_Books", services.load_core())


def _read(path: Path) -> str:
    refuse_endless(path)
    try:
        if path.name.endswith(".gz"):
            return gzip.decompress(path.read_bytes()).decode()
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file", "check its name") from None
    except OSError as error:
        raise StudyError(
            f"{path} cannot be read: {error.strerror or error}", "name a file"
        ) from None
    except (UnicodeDecodeError, EOFError) as error:
        raise StudyError(f"{path} cannot be read: {error}", "name a whole, plain file") from None


def run_scenarios(path: Path, only: str | None, services: Services) -> list[Judgement]:
    """Run the scenarios of a file, or those whose name begins with `only`.

    Raises
    ------
    StudyError : not a scenario file, or no scenario is called so.
    """
    found: list[Judgement] = json.loads(_books(services).sim_scenarios(str(path), _read(path)))
    if not only:
        return found
    chosen = [case for case in found if case["id"].startswith(only)]
    if not chosen:
        raise StudyError(f"{path}: no case is called {only}...", "leave out --only")
    return chosen


@frozen
class Replay:
    """A recording of the real kernel, replayed."""

    scheduler: str
    """The one that was simulated."""
    recorded: str
    """The one that was recorded."""
    prediction: Prediction | None
    """Prediction; None of a scheduler that is not the recorded one and cannot be forced."""
    twin: ReplayTwin | None
    """Twin; None of a device without a model."""


def replay(
    recording: str,
    scheduler: str | None,
    tunables: Sequence[str],
    services: Services,
    explain: int | None = None,
) -> Replay:
    """Predict every issue of a recording, then run its processes again.

    Parameters
    ----------
    recording : ``NAME.csv.gz``; ``NAME.json`` beside it describes the queue.
    scheduler : another one than the recorded.
    tunables : ``NAME=NUMBER``, in the units of sysfs.
    services : the compiled half.
    explain : number of an issue, from 0, whose decision is described.

    Raises
    ------
    StudyError : not a recording, or there is no such scheduler, tunable or issue.
    """
    path, core = Path(recording), _books(services)
    if not path.is_file():
        raise StudyError(
            f"'{recording}' is not a file",
            f"name a RECORDING{TRACE_ENDING}; what describes it, RECORDING.json, lies beside it",
        )
    if not path.name.endswith((".csv", TRACE_ENDING)):
        raise StudyError(
            f"'{recording}' is not a file of events",
            f"name the RECORDING{TRACE_ENDING}; its description, the .json, is found beside it",
        )
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    described = path.with_name(f"{stem}.json")
    text = _read(described)
    setup = _description(described, text)
    recorded = str(setup["scheduler"])
    row = schedulers(services, scheduler or recorded)[0]
    values = json.dumps(_tunables(tunables))
    inputs = ((str(path), _read(path), text), row["name"], values)
    wanted = explain if explain is None or explain >= 0 else None
    prediction: Prediction | None = json.loads(core.sim_predict(*inputs, wanted))
    if explain is not None:
        _check_explained(explain, prediction, row["name"])
    model = setup.get("device_model")
    has_model = isinstance(model, Mapping) and model.get("kind") == "hdd"
    twin = json.loads(core.sim_replay(*inputs)) if has_model else None
    return Replay(row["name"], recorded, prediction, twin)


def _check_explained(issue: int, prediction: Prediction | None, scheduler: str) -> None:
    if prediction is None:
        raise StudyError(
            f"--explain {issue}: {scheduler} was not recorded, so there is no decision to compare",
            "leave --scheduler out",
        )
    if prediction["explanation"] is None:
        n_issues = prediction["issues"]
        raise StudyError(
            f"--explain {issue}: the recording has {n_issues} issues",
            f"name one of 0 to {n_issues - 1}",
        )


_TUNABLE_MAX: Final = 2**63 - 1
"""Largest number that any tunable takes."""


def _description(path: Path, text: str) -> dict[str, object]:
    try:
        setup = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{path} is not JSON: {error}", "it describes the queue") from None
    if not isinstance(setup, dict) or not isinstance(setup.get("scheduler"), str):
        raise StudyError(f"{path} does not name the scheduler", 'as in "scheduler": "bfq"')
    return cast("dict[str, object]", setup)


def _tunables(texts: Sequence[str]) -> dict[str, int]:
    found = dict[str, int]()
    for name, value in map(_tunable, texts):
        if name in found:
            raise StudyError(
                f"--tunable {name} is given twice, as {found[name]} and as {value}",
                "keep one of them",
            )
        found[name] = value
    return found


def _tunable(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.isdecimal() or int(value) > _TUNABLE_MAX:
        raise StudyError(f"--tunable {text} is not NAME=NUMBER", "as in --tunable fifo_batch=8")
    return name, int(value)


def probe(stack: str, seed: int, services: Services) -> ProbeFindings:
    """Measure a simulated device like a stranger, in virtual time.

    Parameters
    ----------
    stack : name of a profile, or a ``STACK.toml``.
    seed : of random places, 0 to 2**63 - 1.
    services : the compiled half.

    Raises
    ------
    StudyError : there is no such profile, or the seed is none.
    """
    _check_seed(seed)
    core = _books(services)
    return json.loads(core.sim_probe(simulated_testbed(stack, {}, core).stack_json, seed))


def _check_seed(seed: int) -> None:
    if not 0 <= seed < _SEED_END:
        raise StudyError(f"--seed {seed} is not a seed", "from 0 to 2**63 - 1")


def profiles(services: Services) -> list[Profile]:
    """Every built-in device, by name."""
    return [profile(name, services) for name in _books(services).sim_profile_names()]


def profile(name: str, services: Services) -> Profile:
    """One built-in device with unit, provenance and source of every number.

    Raises
    ------
    StudyError : there is none of this name; names the nearest.
    """
    return json.loads(_books(services).sim_profile(name))


def software_tables(services: Services) -> list[Profile]:
    """Every built-in table of what schedulers cost a processor."""
    return [software(name, services) for name in _books(services).sim_software_names()]


def software(name: str, services: Services) -> Profile:
    """One table of what schedulers cost, with the source of every number.

    Raises
    ------
    StudyError : there is none of this name; names the nearest.
    """
    return json.loads(_books(services).sim_software(name))


def schedulers(services: Services, name: str | None = None) -> list[SchedulerBook]:
    """Every simulated scheduler, or the one that is named.

    Raises
    ------
    StudyError : there is none of this name; names the nearest.
    """
    rows: list[SchedulerBook] = json.loads(_books(services).sim_schedulers())
    if name is None:
        return rows
    names = [row["name"] for row in rows]
    if name not in names:
        raise StudyError(
            f"'{name}' is no simulated scheduler{nearest(name, names)}",
            f"there are {', '.join(names)}",
        )
    return [row for row in rows if row["name"] == name]


@frozen
class TracedTrial:
    """The block-layer events of one simulated trial, in a file."""

    name: str
    """Of the treatment."""
    n_events: int


def trace_trial(
    path: Path,
    trial_id: str,
    seed: int | None,
    place: tuple[Path, Sequence[str]],
    services: Services,
) -> TracedTrial:
    """Write the block-layer events of one trial of a simulated study.

    Parameters
    ----------
    path : the study file.
    trial_id : as ``t0001``.
    seed : where the study names none; None is 1.
    place : the file to make, of `TRACE_ENDINGS`, and files that may be replaced.
    services : the compiled half.

    Raises
    ------
    StudyError : the study is not simulated, or has no such trial; or the file cannot be written.
    """
    out, allowed = place[0], Allowed.of(place[1])
    if not out.name.endswith(TRACE_ENDINGS):
        raise StudyError(
            f"--out {out} ends in neither {TRACE_ENDING} nor {ENDING}",
            f"as in --out trace{ENDING}, which `iolab trace` reads, or --out trace{TRACE_ENDING}",
        )
    refuse_existing([out], allowed)
    study = checked_study(Study.load(path))
    if study.seed is None:
        _check_seed(1 if seed is None else seed)
        study = study.with_seed(1 if seed is None else seed)
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    if not testbed.is_simulated:
        raise StudyError(f"{testbed.text} is not simulated", "use a study on sim:...")
    plan = make_plan(replace(study, testbed=TestbedRequest(*testbed.request)))
    trials = {trial.trial_id: trial for trial in plan.trials(study.rounds or 1)}
    if trial_id not in trials:
        raise StudyError(f"there is no trial {trial_id}", f"the last is {max(trials)}")
    trial = trials[trial_id]
    spec = trial_spec(trial, services.load_core(), is_fresh_fs=False)
    stack = json.dumps(testbed.agent_spec()["stack"])
    if out.name.endswith(ENDING):
        count = _compact_trace(_books(services), stack, spec, (out, allowed))
        return TracedTrial(trial.treatment.name, count)
    text = _books(services).sim_trace(stack, json.dumps(spec))
    try:
        write_new({out: gzip.compress(text.encode(), mtime=0)}, allowed)
    except OSError as error:
        raise StudyError(f"{out} cannot be written: {error}", "name another file") from None
    return TracedTrial(trial.treatment.name, text.count("\n") - 1)


def _compact_trace(core: _Books, stack: str, spec: TrialSpec, place: tuple[Path, Allowed]) -> int:
    """Simulate the trial again with its trace in a file of ``iolab trace``; count of its events.

    Raises
    ------
    StudyError : the file cannot be written.
    """
    out, allowed = place
    try:
        made = made_empty(out, allowed)
    except OSError as error:
        raise StudyError(f"{out} cannot be written: {error}", "name another file") from None
    try:
        record: Record = json.loads(
            core.simulate_trial(stack, write_json(with_trace(spec, out, made, TraceEvents())), None)
        )
    finally:
        removed_if_empty(out, made)
    told = record.get("trace")
    if told is None or told["problem"]:
        reason = told["problem"] if told else "nothing was recorded"
        raise StudyError(f"{out} could not be written: {reason}", "make room")
    return told["events"]
