"""One trial on a simulated stack, without files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from iolab.errors import StoppedError, StudyError, TestbedError
from iolab.frozen import replace
from iolab.library.hints import in_python
from iolab.library.study import Level, Study, WorkloadTable, checked_study
from iolab.library.table import Cell, ResultTable, Row, table_of
from iolab.run.contention import grants_of
from iolab.run.core import load_core
from iolab.run.record import derive
from iolab.run.trial import trial_spec
from iolab.store.derived import DerivedRecord, PhaseRow
from iolab.store.rows import Caveat
from iolab.study.factors import find_factor
from iolab.study.model import TestbedRequest
from iolab.study.plan import Trial, make_plan
from iolab.testbed.model import Testbed, make_testbed
from iolab.testbed.runner import choose_runner

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingImports]

    from iolab.protocol import Record
    from iolab.run.stop import StopSwitch

_FIXED: Final = ("operation", "io_size_bytes", "elapsed_ns", "depth_reached_mean")


@dataclass(frozen=True)
class SimulatedTrial:
    """One simulated trial: what was measured, and under which levels.

    Parameters
    ----------
    testbed : where it ran: ``sim:PROFILE``.
    workload : name of the workload.
    levels : every factor with the level that applied, defaults included, as text.
    seed : the seed of the study that it is the first trial of.
    metrics : operation to metric to value, in the unit that the metric's name ends with.
    caveats : what speaks against the values.
    record : the whole record, as the agent protocol describes it; two trials that differ in it
        alone are equal, because it holds the time of day.
    """

    testbed: str
    workload: str
    levels: Mapping[str, str]
    seed: int
    metrics: Mapping[str, Mapping[str, float]]
    caveats: tuple[Caveat, ...]
    record: Record | None = field(repr=False, compare=False)
    _phases: tuple[dict[str, Cell], ...] = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of :meth:`to_rows`.

        First ``operation``, ``io_size_bytes`` (None if there are several), ``elapsed_ns`` (virtual
        time) and ``depth_reached_mean`` (operations in flight), then one per metric.
        """
        return self._table.columns

    def to_rows(self) -> list[Row]:
        """One row per operation, values in the order of :attr:`columns`."""
        return list(self._table.rows)

    def to_frame(self) -> pandas.DataFrame:  # pyright: ignore[reportUnknownParameterType]
        """The rows of :meth:`to_rows` as a pandas frame.

        Raises
        ------
        IolabError : pandas is not installed (``pip install 'iolab[notebook]'``).
        """
        return self._table.to_frame()

    @cached_property
    def _table(self) -> ResultTable:
        names = dict.fromkeys(name for values in self.metrics.values() for name in values)
        rows = [
            {**phase, **self.metrics[operation]}
            for phase, operation in zip(self._phases, self.metrics, strict=True)
        ]
        return table_of([*_FIXED, *names], rows)


@in_python
def simulate(  # noqa: PLR0913 - keyword arguments, each with a name of its own
    testbed: str,
    *,
    workload: str | WorkloadTable | None = None,
    knobs: Mapping[str, Level] | None = None,
    settings: Mapping[str, Level] | None = None,
    seed: int = 0,
    stop: StopSwitch | None = None,
) -> SimulatedTrial:
    """Run one trial in simulation; no file is written and nothing of the machine is changed.

    The measurements are those of the first trial of a study with these arguments.

    Parameters
    ----------
    testbed : ``"sim:PROFILE"`` or ``"sim:STACK.toml"``; `iolab sim profiles` lists the profiles.
    workload : as :class:`Study` takes it, one only.
    knobs : knob to its level: ``{"scheduler": "deadline", "nr_requests": 64}``.
    settings : other factors, each with one level: ``{"record_size": "4k", "workers": 4}``.
    seed : decides random positions and times, 0 to 2**63 - 1.
    stop : its ``press()``, from another thread, ends the trial.

    Returns
    -------
    SimulatedTrial : metrics per operation.

    Raises
    ------
    StudyError : an argument has no meaning, or the stack cannot be simulated so.
    TestbedError : the testbed is not simulated, or its files do not fit.
    StoppedError : `stop` was pressed.
    """
    study = Study(
        testbed=testbed,
        workload=workload,
        settings={**_knobs(knobs or {}), **(settings or {})},
        rounds=1,
        seed=seed,
    )
    checked = checked_study(study)
    request = checked.testbed
    opened = make_testbed(request.kind, request.argument, dict(request.options))
    if not opened.is_simulated:
        raise TestbedError(
            f"{opened.text} is not simulated", "name sim:PROFILE, or use iolab.run for real trials"
        )
    plan = make_plan(replace(checked, testbed=TestbedRequest(*opened.request)))
    opened.check_space(plan.round_cost().file_bytes)
    trial, *others = plan.round_trials(1)
    if others:
        raise StudyError(
            f"simulate(workload=...): {len(others) + 1} workloads are as many trials", "name one"
        )
    derived = _run(trial, opened, stop)
    return SimulatedTrial(
        testbed=opened.text,
        workload=trial.workload,
        levels=dict(trial.treatment.effective),
        seed=seed,
        metrics={phase.operation: dict(phase.metrics) for phase in derived.phases},
        caveats=derived.caveats + tuple(c for phase in derived.phases for c in phase.caveats),
        record=derived.record,
        _phases=tuple(_fixed(phase) for phase in derived.phases),
    )


def _fixed(phase: PhaseRow) -> dict[str, Cell]:
    size = phase.nature.io_size_bytes
    values = (phase.operation, size, phase.elapsed_ns, phase.depth_reached_mean)
    return dict(zip(_FIXED, values, strict=True))


def _knobs(knobs: Mapping[str, Level]) -> Mapping[str, Level]:
    for name in knobs:
        if not find_factor(name).is_knob:
            raise StudyError(f"simulate(knobs=...): {name} is no knob", "give it in settings")
    return knobs


def _run(trial: Trial, testbed: Testbed, stop: StopSwitch | None) -> DerivedRecord:
    core = load_core()
    spec = trial_spec(trial, core, is_fresh_fs=True)
    with choose_runner(testbed, needs_root=False)(stop, None) as runner:
        runner.hello("simulate")
        runner.open_testbed(testbed.agent_spec())
        record = runner.run_trial(spec)
    derived = derive(record, core, grants_of(trial.treatment.workload))
    if derived.status == "interrupted":
        raise StoppedError("the trial was stopped", "nothing of it is kept")
    if derived.status == "failed":
        reason = derived.error or "no reason given"
        raise TestbedError(f"{testbed.text}: the trial failed: {reason}")
    return derived
