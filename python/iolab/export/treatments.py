"""Content of an export: each treatment of a stored study, lowered to the workload that was run.

The plan is made again from the stored study and must be the stored one; the environment (mkfs,
mount, knobs) comes from the records, as far as trials have finished.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from iolab.errors import StudyError
from iolab.export.command_lines import one_by_one, planned, without_ours
from iolab.export.environment import Site, environment_lines
from iolab.frozen import frozen
from iolab.run.core import Core
from iolab.run.trial import trial_spec
from iolab.store.contents import Contents
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData
from iolab.study.dialects import Entry, find_dialect, of_plan, text_at, words_of
from iolab.study.entry_plan import entry_plan
from iolab.study.load import parse_study
from iolab.study.model import DialectWorkload, Study
from iolab.study.plan import Trial, make_plan

if TYPE_CHECKING:
    from iolab.protocol import Action, TrialSpec, Workload

_EXPORTED_DIALECT: Final = "iozone"
"""The dialect whose rows are the phases that other programs know."""


@frozen
class Exported:
    """One treatment, ready to be written in another language."""

    name: str
    trials: tuple[tuple[str, int], ...]
    """Id and seed of each trial that executes it, in order; at least one."""
    workload: Workload
    """As it crosses to the agent: docs/design/0002, workload spec."""
    cache: str
    memory_limit_bytes: int | None
    environment: tuple[str, ...]
    """Place where it ran and the settings there: comments for people, commands for root."""
    midway: tuple[str, ...] = ()
    """Actions of the agent beside the workload: control groups, knobs that changed."""
    command: tuple[str, ...] = ()
    """The command line of another program that it is part of; its name comes first."""

    @property
    def trial_id(self) -> str:
        """Its first trial, which names its files."""
        return self.trials[0][0]

    @property
    def is_direct(self) -> bool:
        """Tell whether no op goes through the page cache."""
        tenants = [tenant for phase in self.workload["phases"] for tenant in phase["tenants"]]
        return all(tenant["access"] == "direct" for tenant in tenants)


def exported_treatments(data: StudyData, contents: Contents, core: Core) -> list[Exported]:
    """Every treatment, in the order in which the first round ran them.

    Raises
    ------
    StudyError : this program would not plan the stored study in the same way.
    """
    if data.study.kind == "imported":
        raise StudyError(
            f"study '{data.study.name}' was imported from a table, which says nothing that could"
            " be run",
            "write a study file for it",
        )
    if command := data.study.command:
        return _of_command(data, command, core)
    study = parse_study(data.study.spec_toml)
    _refuse_untranslated(study)
    plan = make_plan(study)
    if plan.digest != data.study.plan_digest:
        raise _planned_otherwise(data)
    same: dict[str, list[Trial]] = {}
    for trial in plan.trials(max(1, data.study.rounds_planned)):
        same.setdefault(trial.treatment.name, []).append(trial)
    actions = _actions(same, contents)
    devices = _devices(contents)
    found = list[Exported]()
    for trial in plan.round_trials(1):
        name = trial.treatment.name
        site = Site(machine_text(data), data, devices, actions.get(name, ()))
        found.append(_exported(same[name], core, site))
    return found


def _refuse_untranslated(study: Study) -> None:
    """Refuse workloads whose phases no other program knows.

    Raises
    ------
    StudyError : there is one; names the command that does the same.
    """
    for workload in study.workloads:
        if isinstance(workload, DialectWorkload) and workload.dialect != _EXPORTED_DIALECT:
            is_file = find_dialect(workload.dialect).has_file
            words = [] if is_file else [workload.dialect, *words_of(workload.text)]
            raise StudyError(
                f"workload '{workload.name}' is written for {workload.dialect}, which is not"
                " translated",
                f"its file is {workload.file}"
                if is_file
                else f"run that command: `{shlex.join(words)}`",
            )


def _of_command(data: StudyData, command: tuple[str, ...], core: Core) -> list[Exported]:
    """Rows of a dialect's plan, each a treatment.

    Raises
    ------
    StudyError : the dialect does what neither fio nor IOzone can be told.
    """
    if command[0] != _EXPORTED_DIALECT:
        raise StudyError(
            f"study '{data.study.name}' stands for a command line of {command[0]}, which is not"
            " translated",
            f"run that command: `{shlex.join(without_ours(command))}`",
        )
    plan = planned(core, command)
    dialect = find_dialect(command[0])
    workloads = of_plan(
        Entry(dialect.name, dialect, shlex.join(command[1:]), is_line=True), entry_plan(None, plan)
    )
    places = [(workload.name, row.levels) for workload in workloads for row in workload.rows]
    environment = (f"{machine_text(data)}", f"It ran on the testbed {data.study.testbed}.")
    found = [
        Exported(
            name=row["name"],
            trials=tuple(
                (trial.trial_id, data.study.seed)
                for trial in data.trials
                # In older stores every row is a workload of its own.
                if (trial.workload, trial.levels) == (name, dict(levels))
                or trial.workload == row["name"]
            ),
            workload=row["workload"],
            cache=plan["cache"],
            memory_limit_bytes=None,
            environment=environment,
            command=command,
        )
        for row, (name, levels) in zip(plan["rows"], places, strict=True)
    ]
    if not all(one.trials for one in found):
        raise _planned_otherwise(data)
    return found


def _planned_otherwise(data: StudyData) -> StudyError:
    return StudyError(
        f"study '{data.study.name}' cannot be exported: iolab {data.study.iolab_version} "
        "planned it in another way",
        "export it with that version",
    )


def _exported(same: Sequence[Trial], core: Core, site: Site) -> Exported:
    trial = same[0]
    spec = trial_spec(trial, core, is_fresh_fs=True)
    workload = trial.treatment.workload
    is_command = isinstance(workload, DialectWorkload)
    return Exported(
        name=trial.treatment.name,
        trials=tuple((other.trial_id, other.seed) for other in same),
        command=_command(workload, trial) if is_command else (),
        workload=one_by_one(spec["workload"]) if is_command else spec["workload"],
        cache=spec["cache"],
        memory_limit_bytes=spec["memory_limit_bytes"],
        environment=tuple(environment_lines(trial.treatment, site)),
        midway=tuple(_midway(spec)),
    )


def _command(workload: DialectWorkload, trial: Trial) -> tuple[str, ...]:
    """The command line of a treatment, its varied words at their levels."""
    return (workload.dialect, *shlex.split(text_at(workload, trial.levels)))


def _midway(spec: TrialSpec) -> Iterator[str]:
    for group in spec.get("io_groups", ()):
        limits = ", ".join(f"{k} = {v}" for k, v in group.items() if k != "tenants" and v)
        names = " and ".join(group["tenants"])
        yield f"the workers of {names} are in a control group ({limits or 'no limits'})."
    for change in spec.get("changes", ()):
        knobs = ", ".join(f"{name} = {value}" for name, value in change["knobs"].items())
        yield f"{change['at_ns'] / 1e9:g} s after the beginning {knobs} is set."


Actions: TypeAlias = "tuple[Action, ...]"


def _actions(same: Mapping[str, Sequence[Trial]], contents: Contents) -> dict[str, Actions]:
    """By treatment, how its file system was made and mounted: by a trial before it, perhaps."""
    names = {trial.trial_id: name for name, trials in same.items() for trial in trials}
    current: Actions = ()
    found = dict[str, Actions]()
    for trial_id, record in contents.records():
        made = tuple(_file_system_actions(record.get("actions") or []))
        current = made or current
        if trial_id in names:
            found.setdefault(names[trial_id], current)
        if len(found) == len(same):  # Later rounds say nothing new; there may be thousands.
            break
    return found


def _file_system_actions(actions: Iterable[Action]) -> list[Action]:
    return [action for action in actions if action.get("kind") in ("mkfs", "mount")]


def _devices(contents: Contents) -> tuple[str, ...]:
    """Devices whose knobs were switched, as the last session found them."""
    sessions = contents.sessions()
    found = sessions[-1]["testbed"].get("knob_devices") if sessions else None
    return tuple(cast("list[str]", found or []))
