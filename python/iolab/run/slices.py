"""Executing a study in slices: one request of the agent measures many balanced units.

A round of such a study is a balanced unit: every treatment in as many slices as any other, in
random order. The agent's record of a session is cut into one record for each unit and treatment,
so that store, statistics and reports know rounds and trials as ever; each keeps its own slices.
What is interrupted keeps its complete units; what is killed keeps none of that session. Every
session makes its files anew, and records say to which one they belong.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypedDict, cast

from iolab.errors import TestbedError
from iolab.frozen import replace
from iolab.run.campaign import Campaign, Outcome
from iolab.run.contention import grants_of
from iolab.run.core import Core
from iolab.run.record import derive, failed_record, merge_histograms
from iolab.run.trial import trial_spec
from iolab.store.derived import DerivedRecord
from iolab.store.slices import COLUMNS
from iolab.study.factors import find_factor
from iolab.study.plan import Plan, Trial
from iolab.study.slice_lengths import IMAGE_UNITS, slice_limits
from iolab.study.validity import UNITS_MAX, devices_of, image_sets
from iolab.testbed.agent import AgentError

if TYPE_CHECKING:
    from iolab.protocol import (
        ClassHistograms,
        PairsCell,
        PairsImage,
        PairsImageRecord,
        PairsRecord,
        PairsSlices,
        PairsSpec,
        PairsTenant,
        PairsUnit,
        PhaseRecord,
        Progress,
        Record,
        SessionOfSlices,
        Stack,
        Status,
        StreamReport,
        TenantOutcome,
        TrialSpec,
    )

GRACE_NS: Final = 120_000_000_000
"""Beside the slices a session lays out files."""


class _Columns(TypedDict):
    """The slices of one tenant in one unit, column by column."""

    begin_ns: list[int]
    length_ns: list[int]
    ops: list[int]
    bytes: list[int]
    longest_ns: list[int]
    place: list[int]
    workers: list[int]


_Place = tuple[int, int, int]
"""Indices of unit, cell and tenant."""


def session_spec(
    plan: Plan, core: Core, *, units: int, time_ns: int, round_number: int
) -> TrialSpec:
    """Trial spec of a session that begins with a round.

    Parameters
    ----------
    units : balanced units at most.
    time_ns : none is begun that would end later; 0 is no such limit.
    round_number : of the first unit, 1-based; decides the seed.

    Raises
    ------
    StudyError : the builders refuse a workload.
    """
    trials = in_order(plan, round_number)
    specs = [trial_spec(trial, core, is_fresh_fs=True) for trial in trials]
    first = specs[0]
    limits = slice_limits(plan.study, plan.treatments)
    length_ns = time_ns or units * plan.round_cost().duration_ns
    pairs: PairsSpec = {
        "treatments": [{"knobs": spec["knobs"], "workload": spec["workload"]} for spec in specs],
        "slice_min_ns": limits.min_ns,
        "slice_max_ns": limits.max_ns,
        "washout_ns": limits.washout_ns,
        "settle_ns": limits.settle_ns,
        "unit_ns": limits.unit_ns,
        "units": units,
        "time_ns": time_ns,
        "seed": trials[0].seed,
    }
    if limits.images:
        _give_images(pairs, specs, plan, round_number)
    return {
        **first,
        "trial": trials[0].trial_id,
        "time_limit_ns": 2 * length_ns + GRACE_NS,
        "pairs": pairs,
    }


def _give_images(pairs: PairsSpec, specs: list[TrialSpec], plan: Plan, round_number: int) -> None:
    """Give each file system a device, another one in each round, and make them in random order."""
    from random import Random

    sets = image_sets(plan.treatments)
    place_of = {levels: (at + round_number) % len(sets) for at, levels in enumerate(sets)}
    stacks: dict[int, Stack] = {}
    for one, treatment, row in zip(specs, plan.treatments, pairs["treatments"], strict=True):
        place = place_of[treatment.whole_plot]
        row["place"] = place
        if one["stack"] is None:
            raise AssertionError("only a testbed with file systems has images")
        stacks[place] = one["stack"]
    rng = Random(f"iolab/{plan.seed}/images/{round_number}")
    order = sorted(stacks, key={place: rng.random() for place in sorted(stacks)}.__getitem__)
    images: list[PairsImage] = [{"place": place, "stack": stacks[place]} for place in order]
    pairs["images"] = images


def in_order(plan: Plan, round_number: int) -> list[Trial]:
    """Trials of a round in the order of the treatments."""
    known = {trial.treatment.place: trial for trial in plan.round_trials(round_number)}
    return [known[treatment.place] for treatment in plan.treatments]


def unit_records(record: Record, session: int) -> list[list[Record]]:
    """Cut the record of a session into one for each unit and treatment.

    Raises
    ------
    TestbedError : the record is not what the agent protocol promises.
    """
    try:
        return list(_unit_records(record, session))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise TestbedError(
            f"the record of a session of slices cannot be understood "
            f"({type(error).__name__}: {error})",
            "install the agent and this program from the same version",
        ) from error


def _unit_records(record: Record, session: int) -> Iterator[list[Record]]:
    pairs = record.get("pairs")
    if pairs is None:
        raise KeyError("pairs")
    cells = pairs["cells"]
    n_treatments = 1 + max(int(cell["treatment"]) for cell in cells)
    columns = _by_place(pairs["slices"])
    images = record.get("images") or []
    about: SessionOfSlices = {
        "number": session,
        "slice_ns": pairs["slice_ns"],
        "chosen_by": pairs["chosen_by"],
        "washout_ns": pairs["washout_ns"],
        "switch_cost_ns": pairs["switch_cost_ns"],
        "places": pairs.get("places", 1),
        "settle_ns": pairs.get("settle_ns", 0),
        "slices_per_unit": pairs["slices_per_unit"],
        "images": len(images),
    }
    if images:
        pairs = _as_one_unit(pairs)
        columns = _by_place(pairs["slices"])
    shared = record.copy()
    shared.pop("pairs", None)
    shared.pop("images", None)
    for number, unit in enumerate(pairs["units"]):
        each: list[Record] = []
        for treatment in range(n_treatments):
            phases = [
                _phase(cell, unit["service"][index], index, number, columns)
                for index, cell in enumerate(cells)
                if cell["treatment"] == treatment
            ]
            own = shared if not images else _on_its_image(shared, images, cells, treatment, columns)
            each.append(
                {
                    **own,
                    "actions": record.get("actions", []) if number == treatment == 0 else [],
                    "status": "ok",
                    "error": None,
                    "started_at_unix_ns": int(record["started_at_unix_ns"]) + unit["began_ns"],
                    "elapsed_ns": int(unit["elapsed_ns"]) // n_treatments,
                    "knobs": _knobs_read(record, pairs, treatment),
                    "session": about,
                    "phases": phases,
                }
            )
        yield each


def _as_one_unit(pairs: PairsRecord) -> PairsRecord:
    """Make one unit of all of a session: its images are one layout each, however long it takes."""
    units = pairs["units"]
    if not units:
        return pairs
    service = [
        [_together(unit["service"][cell][tenant] for unit in units) for tenant in range(len(own))]
        for cell, own in enumerate(units[0]["service"])
    ]
    whole: PairsUnit = {
        "began_ns": units[0]["began_ns"],
        "elapsed_ns": sum(unit["elapsed_ns"] for unit in units),
        "service": service,
    }
    slices: PairsSlices = {**pairs["slices"], "unit": [0] * len(pairs["slices"]["unit"])}
    return {**pairs, "units": [whole], "slices": slices}


def _together(services: Iterable[ClassHistograms]) -> ClassHistograms:
    """Times of operations of several units."""
    found = list(services)
    return {
        "read": merge_histograms([one["read"] for one in found]),
        "write": merge_histograms([one["write"] for one in found]),
        "sync": merge_histograms([one["sync"] for one in found]),
    }


def _on_its_image(
    shared: Record,
    images: Sequence[PairsImageRecord],
    cells: Sequence[PairsCell],
    treatment: int,
    columns: Mapping[_Place, _Columns],
) -> Record:
    """Give a record the file system that its treatment had: of the device where its slices were."""
    index = next(at for at, cell in enumerate(cells) if cell["treatment"] == treatment)
    image = images[columns[(0, index, 0)]["place"][0]]
    facts = {n: value for n, value in shared["facts"].items() if not n.startswith("fs.")}
    return {**shared, "stack": image["stack"], "facts": facts | image["facts"]}


def _knobs_read(record: Record, pairs: PairsRecord, treatment: int) -> dict[str, str]:
    """Every knob as read back under a treatment; of the device before the first slice if none
    ever changed.
    """
    found = pairs.get("knobs") or []
    return found[treatment] if found else record.get("knobs") or {}


def _by_place(slices: PairsSlices) -> dict[_Place, _Columns]:
    """Columns of the slices of each unit, cell and tenant."""
    columns = cast("Mapping[str, list[int]]", slices)
    found: dict[_Place, dict[str, list[int]]] = {}
    names = (*COLUMNS, "place", "workers")
    if "place" not in columns:  # An agent that knows one device.
        columns = {**columns, "place": [0] * len(slices["unit"])}
    places = zip(slices["unit"], slices["cell"], slices["tenant"], strict=True)
    values = zip(*(columns[name] for name in names), strict=True)
    for place, row in zip(places, values, strict=True):
        own = found.setdefault(place, {name: [] for name in names})
        for name, value in zip(names, row, strict=True):
            own[name].append(int(value))
    return cast("dict[_Place, _Columns]", found)


def _phase(
    cell: PairsCell,
    service: Sequence[ClassHistograms],
    index: int,
    unit: int,
    columns: Mapping[_Place, _Columns],
) -> PhaseRecord:
    """Record of a phase, as a trial of its own would have it; devices are not told apart.

    What slices do not know is left out: state of the cache, CPU time, cost of the harness.
    """
    tenants = [
        _tenant(tenant, service[number], columns[(unit, index, number)])
        for number, tenant in enumerate(cell["tenants"])
    ]
    elapsed = max(tenant["workers"][0]["elapsed_ns"] for tenant in tenants)
    told = {
        "name": cell["name"],
        "kind": cell["kind"],
        "io_size_bytes": cell["io_size_bytes"],
        "access": cell["access"],
        "elapsed_ns": elapsed,
        "devices": [],
        "tenants": tenants,
        "warnings": [],
    }
    return cast("PhaseRecord", told)


def _tenant(tenant: PairsTenant, service: ClassHistograms, slices: _Columns) -> TenantOutcome:
    """Record of a tenant with one worker: all of its workers together."""
    ops, moved = sum(slices["ops"]), sum(slices["bytes"])
    lengths = [
        length // workers
        for length, workers in zip(slices["length_ns"], slices["workers"], strict=True)
    ]
    worker = {
        "worker": 0,
        "ops": ops,
        "bytes": moved,
        "read_bytes": moved if tenant["kind"] == "read" else 0,
        "write_bytes": moved if tenant["kind"] == "write" else 0,
        "elapsed_ns": sum(lengths),
        "gap_ns_max": max(slices["longest_ns"]),
        "call_ns": sum(lengths),
    }
    told = {
        **tenant,
        "began_ns": 0,
        "workers": [cast("StreamReport", worker)],
        "service": service,
        "response": None,
        "slices": {
            "begin_ns": slices["begin_ns"],
            "length_ns": lengths,
            "ops": slices["ops"],
            "bytes": slices["bytes"],
            "longest_ns": slices["longest_ns"],
            "place": slices["place"] if any(slices["place"]) else [],
        },
        "depth_reached_mean": None,
    }
    return cast("TenantOutcome", told)


class SlicedCampaign(Campaign):
    """One start of a study in slices."""

    _longest_ns: int = 0
    """Longest time that a set of images has taken."""

    def run(self) -> Outcome:
        """Measure the units that the plan still lacks.

        Raises
        ------
        TestbedError : the agent is gone or refused; finished units are stored.
        StoppedError : the user asked twice.
        StoreError : a record could not be stored.
        """
        while True:
            done = self._rounds_complete()
            wanted = self._wanted(done)
            if wanted <= 0:
                return self._outcome("complete")
            self._start.attendant.before_round(done + 1)
            if self._start.stop.presses:
                return self._outcome("interrupted", "stopped on request")
            if done in self._plan.look_rounds and self._start.is_decided():
                return self._outcome("decided", f"all is decided after unit {done}")
            left_ns = self._left_ns()
            if left_ns is not None and left_ns <= 0:
                hint = self._larger_budget(in_order(self._plan, done + 1))
                return replace(self._outcome("budget", "the budget is spent"), hint=hint)
            ended = self._session(done, wanted, left_ns)
            if ended is not None:
                return ended

    def _wanted(self, done: int) -> int:
        """Units until the next planned look, or the end; with images each round is a session."""
        if devices_of(self._plan.study) == "images":
            return int(done < (self._plan.rounds or UNITS_MAX))
        looks = [number for number in self._plan.look_rounds if number > done]
        return (looks[0] if looks else self._plan.rounds or UNITS_MAX) - done

    def _left_ns(self) -> int | None:
        budget_ns = self._plan.study.budget_ns
        return None if budget_ns is None else budget_ns - self._spent_ns()

    def _session(self, done: int, wanted: int, left_ns: int | None) -> Outcome | None:
        """Measure and store up to `wanted` units; an outcome if there can be no more."""
        first = in_order(self._plan, done + 1)[0]
        has_images = devices_of(self._plan.study) == "images"
        if has_images and left_ns is not None and left_ns < self._longest_ns:
            return self._outcome("budget", f"{done} sets of images fit the budget")
        began_ns = self._clock()
        spec = session_spec(
            self._plan,
            self._core,
            units=IMAGE_UNITS if has_images else wanted,
            time_ns=0 if has_images else left_ns or 0,
            round_number=done + 1,
        )
        started_unix_ns = time.time_ns()

        def on_progress(params: Progress) -> None:
            message = str(params.get("message") or params.get("phase") or "")
            self._tell("phase", first, message)

        self._tell("phase", first, "preparing")
        with self._store.quiet():
            try:
                record = self._runner.run_trial(spec, on_progress)
            except AgentError as error:
                record = failed_record(
                    first.trial_id, str(error), started_at_unix_ns=started_unix_ns
                )
        pairs = record.get("pairs")
        if not pairs:
            return self._without_units(first, record)
        self._longest_ns = max(self._longest_ns, self._clock() - began_ns)
        # A session with images is a round, and has a number of its own.
        number = done + 1 if has_images else self._start.session_id
        if has_images and len(pairs["units"]) < IMAGE_UNITS:
            return self._outcome("interrupted", "stopped before a set of images was measured")
        records = unit_records(record, session=number)
        for number, each in enumerate(records):
            self._keep(done + 1 + number, each)
        if record["status"] == "interrupted":
            return self._outcome("interrupted", "stopped on request")
        if len(records) < wanted:
            return self._outcome("budget", f"{len(records)} balanced units fit the budget")
        return None

    def _keep(self, round_number: int, records: list[Record]) -> None:
        """Store the records of a unit."""
        self._store.add_trials(self._plan.round_trials(round_number))
        for trial, record in zip(in_order(self._plan, round_number), records, strict=True):
            knobs = {**(record.get("knobs") or {}), **_knobs_of(trial)}
            own: Record = {**record, "trial": trial.trial_id, "knobs": knobs}
            derived = derive(own, self._core, grants_of(trial.treatment.workload))
            self._commit(trial, derived)

    def _commit(self, trial: Trial, derived: DerivedRecord) -> None:
        self._store.commit_record(trial.trial_id, self._start.session_id, derived)
        self._note_status(trial, derived.status)

    def _without_units(self, first: Trial, record: Record) -> Outcome:
        """Store why a session has no unit."""
        self._store.add_trials(self._plan.round_trials(first.round))
        status: Status = "interrupted" if record["status"] == "interrupted" else "failed"
        error = record.get("error") or "no reason given"
        empty: Record = {**record, "status": status, "phases": [], "error": error}
        derived = derive(empty, self._core)
        self._commit(first, derived)
        if status == "interrupted":
            return self._outcome("interrupted", "stopped before the first unit was complete")
        return self._outcome("failing", f"the session of slices failed: {error}")


def _knobs_of(trial: Trial) -> dict[str, str]:
    effective = trial.treatment.effective
    return {name: level for name, level in effective.items() if find_factor(name).is_knob}
