"""Everything that is decided and checked before a run touches anything."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab import units
from iolab.errors import IolabError, RefusedError, StudyError, TestbedError
from iolab.frozen import frozen, replace
from iolab.run import outputs
from iolab.run.attendant import Attendant, Attendants
from iolab.run.core import Core
from iolab.run.dialect_requests import asked, fulfilled
from iolab.run.in_place import in_place
from iolab.run.kept_recordings import KeptRecordings, recordings_of
from iolab.run.observer import Observer
from iolab.run.options import RunOptions
from iolab.run.places import check_room
from iolab.run.progress import rounds_complete
from iolab.run.refusals import check_plan
from iolab.run.shard import check_shard, check_size, refuse_real
from iolab.run.traces import Traces, check_trace
from iolab.store.db import STORE_NAME, Store
from iolab.store.rows import StudyData
from iolab.store.users_files import Allowed
from iolab.study.dialects import find_dialect
from iolab.study.estimate import cost_of
from iolab.study.factors import find_factor, is_factor
from iolab.study.model import DialectWorkload, Study, TestbedRequest
from iolab.study.plan import Plan, make_plan, round_ops
from iolab.study.validity import PAIRS, twins_of
from iolab.testbed.agent import left_behind_text
from iolab.testbed.command import THIS
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.installed import AS_ROOT
from iolab.testbed.model import (
    DirectoryTestbed,
    Testbed,
    make_testbed,
    with_journal_device,
    with_twins,
)
from iolab.testbed.runner import Runner, StartRunner, choose_runner, on_host

if TYPE_CHECKING:
    from iolab.run.wear import Accepted, History, WriteBudget

_SEED_MAX: Final = 1 << 31


@frozen
class Analysis:
    """Analysis that a run asks of the statistics while it goes on; `iolab.stats` is above this
    package.
    """

    judge: Callable[[StudyData], Any]
    """Verdict of what is stored: asked at planned looks."""
    rounds_for_width: Callable[[Sequence[Any], float], int | None]
    """Rounds that give headline comparisons a wanted width: asked after the pilot."""


@frozen
class Prepared:
    """Everything decided before the first action."""

    plan: Plan
    testbed: Testbed
    out_dir: Path
    core: Core
    observer: Observer
    analysis: Analysis
    options: RunOptions
    run_id: str
    started_ns: int
    attendant: Attendant
    """Accompanies the trials."""
    accepted: Accepted | None = None
    """Agreed amount of writes to a whole device; None is as much as it takes."""
    writes: WriteBudget | None = None
    """Counter of those writes, once it runs."""

    @property
    def database(self) -> Path:
        """Path of the database with the records."""
        return self.out_dir / STORE_NAME

    @property
    def way_on(self) -> str:
        """The command that continues it."""
        place = shlex.quote(str(self.out_dir))
        return self.options.continued_by or f"`iolab run {place} --resume`"

    @property
    def is_resumed(self) -> bool:
        """Tell whether it continues what is stored."""
        return self.options.is_resumed

    @property
    def needs_root(self) -> bool:
        """Tell whether the testbed, or a factor in use, needs it."""
        study = self.plan.study
        is_asked = study.trace is not None or bool(root_factors(study))
        return self.testbed.needs_root or (self.testbed.can_need_root and is_asked)

    def choose_runner(self) -> StartRunner:
        """Starter of the runner of its testbed; a password is asked here, if one is needed.

        A rehearsal changes nothing, so it needs no root even where the study does.

        Raises
        ------
        TestbedError : the agent is missing, or root is needed and cannot be had.
        """
        if self.options.spread is not None:
            from iolab.testbed.executed import ExecutedRunner

            open_workers = self.options.spread.open_workers
            return lambda stop, _tell: ExecutedRunner(open_workers, stop=stop)
        if self.options.host is not None:
            return on_host(self.options.host)
        needs_root = self.needs_root and not self.options.is_dry_run
        return choose_runner(self.testbed, needs_root=needs_root, asked=self._root_words)

    @property
    def _root_words(self) -> tuple[str, str]:
        """Names of what needs root and what would not, for the user who has none."""
        study = self.plan.study
        names = ", ".join(root_factors(study))
        if self.testbed.needs_root or not (names or study.trace):
            return THIS
        what = f"setting {names}" if names else "recording a trace"
        instead = f"leave {names} out" if names else "leave the trace out"
        return what, f"{instead}: {self.testbed.text} alone needs no root"

    @property
    def round_text(self) -> str:
        """Sentence about the effects of a round on the testbed, and the time that it may take."""
        cost = self.plan.round_cost()
        return self.testbed.round_text(cost.written_bytes, cost.duration_ns, round_ops(self.plan))


def prepare(
    study: Study,
    options: RunOptions,
    core: Core,
    analysis: Analysis,
    observer: Observer,
    *more: Attendant,
) -> Prepared:
    """Decide and check everything that can be checked without touching anything.

    Parameters
    ----------
    study, options : what is asked, and how it is run.
    core, analysis : the compiled half, and the statistics.
    observer : hears of it.
    more : who accompanies the trials beside those that the workloads need.

    Raises
    ------
    StudyError : the study cannot run so, or the results have no place.
    RefusedError : a file of the user's own is in the way.
    """
    started_ns = time.monotonic_ns()
    testbed = _testbed(study, options)
    trace = options.trace or study.trace
    _check_divided(study, options, testbed, is_traced=trace is not None)
    request = TestbedRequest(*testbed.request)
    study = fulfilled(replace(study, testbed=request, trace=trace))
    allowed = Allowed.of(options.overwrite)
    begun = _begun(study, options) if options.is_resumed else None
    files = in_place(study, testbed, allowed)
    attendants = Attendants([*([files] if files else []), asked(study, testbed, observer), *more])
    if begun is not None:
        named = begun
        outputs.check_place_of_report(named, allowed, database=named / STORE_NAME)
        if study.seed is None:
            study = study.with_seed(outputs.stored_seed(named / STORE_NAME))
    else:
        named = options.out or outputs.fresh_directory(study.name, options.root)
        outputs.check_free(named)
        if study.seed is None:
            study = study.with_seed(int.from_bytes(os.urandom(8)) % _SEED_MAX)
    if study.trace is not None:
        check_trace(study.trace, testbed)
        attendants = Attendants([attendants, Traces(named, core, study.trace)])
    if recordings := recordings_of(study):
        kept = KeptRecordings(named, recordings, core, observer.note)
        attendants = Attendants([attendants, kept])
    allowed.refuse_useless([*outputs.reports_in(named), *attendants.written_files()])
    plan = make_plan(study)
    if begun is not None:
        plan = _not_fewer_rounds(plan, begun / STORE_NAME, observer)
        study = plan.study
    if options.shard is not None:
        check_size(plan, options.shard)
    if plan.design == PAIRS:
        testbed = with_twins(testbed, twins_of(study, plan.treatments))
    if isinstance(testbed, DeviceTestbed):
        testbed = replace(testbed, protected=_protected(named), plan_digest=plan.digest)
        if options.is_dry_run:
            testbed = replace(testbed, erase_serial=options.erase_serial)
    check_plan(testbed, plan, core)
    check_room(testbed, plan, _kept_bytes(plan, testbed))
    if files is not None:
        files.tell(observer)
    return Prepared(
        plan=plan,
        testbed=testbed,
        out_dir=named,
        core=core,
        observer=observer,
        analysis=analysis,
        options=options,
        run_id=f"r-{os.urandom(6).hex()}",
        started_ns=started_ns,
        attendant=attendants,
    )


def _check_divided(study: Study, options: RunOptions, testbed: Testbed, *, is_traced: bool) -> None:
    """Refuse executors and shards where trials are not simulated each by itself.

    Raises
    ------
    StudyError : they are not.
    """
    if options.spread is not None:
        refuse_real(testbed, options.spread.asked)
    if options.shard is not None:
        check_shard(study, options.shard, testbed)
    asked = options.spread.asked if options.spread is not None else None
    asked = f"--shard {options.shard.text}" if options.shard is not None else asked
    if asked is not None and is_traced:
        raise StudyError(
            f"{asked}: a trace is recorded of one trial at a time",
            "leave out the trace, or run the study in one process",
        )


def _kept_bytes(plan: Plan, testbed: Testbed) -> int:
    """Bytes of the files that stay when it is done."""
    if not isinstance(testbed, DirectoryTestbed) or not testbed.is_in_place:
        return 0
    return sum(
        cost_of(treatment).file_bytes
        for treatment in plan.treatments
        if isinstance(treatment.workload, DialectWorkload)
        and find_dialect(treatment.workload.dialect).keeps_files
    )


def _protected(out_dir: Path) -> tuple[str, ...]:
    """Paths of the results and of this program: never on a device that is erased (rule R4)."""
    places = [out_dir.absolute(), Path(sys.executable).resolve(), Path(__file__).resolve()]
    return tuple(str(outputs.existing(place)) for place in places)


def note_tiny_budget(prepared: Prepared) -> None:
    """Note that a budget may end before the first round does."""
    budget_ns = prepared.plan.study.budget_ns
    round_ns = prepared.testbed.expected_ns(prepared.plan.round_cost().duration_ns)
    if budget_ns is not None and round_ns is not None and round_ns > budget_ns:
        prepared.observer.remark(
            "iolab: note: not even one round may fit: it takes roughly "
            f"{units.format_duration_rounded(round_ns)} (estimate), the budget is "
            f"{units.format_duration_rounded(budget_ns)}: give a larger --budget"
        )


def _not_fewer_rounds(plan: Plan, database: Path, observer: Observer) -> Plan:
    """The same plan, of the rounds that are there already if these are more than it asks for."""
    asked = plan.study.rounds
    if asked is None or plan.study.looks is not None or plan.study.width is not None:
        return plan
    with Store.open_reader(database, is_checked=False) as store:
        n_stored = rounds_complete(store.finished_trials(), len(plan.treatments))
    if n_stored <= asked:
        return plan
    observer.remark(
        f"iolab: note: it has {n_stored} complete rounds already, more than the"
        f" {asked} asked for: nothing is to do; `--rounds {2 * n_stored}` would add as many again"
    )
    return make_plan(replace(plan.study, rounds=n_stored))


def _begun(study: Study, options: RunOptions) -> Path:
    """Directory of the study that is continued, once nothing measures for it any more."""
    named = options.out or outputs.latest_directory(study.name, options.root)
    outputs.check_begun(named)
    return named


def _testbed(study: Study, options: RunOptions) -> Testbed:
    wanted = dict(study.testbed.options)
    given = {
        "image_dir": options.image_dir,
        "allow_knobs_on": ",".join(options.allow_knobs_on),
        "precondition": options.precondition,
        "precondition_round": options.precondition_round,
    }
    wanted |= {name: value for name, value in given.items() if value}
    request, is_here = study.testbed, options.host is None
    testbed = make_testbed(request.kind, request.argument, wanted, is_here=is_here)
    if not isinstance(testbed, DeviceTestbed):
        for name in ("erase_serial", "accept_writes"):
            if getattr(options, name) is not None:
                raise IolabError(
                    f"{testbed.text} erases no device: --{name.replace('_', '-')} means nothing",
                    "leave it out",
                )
    _ = options.accepted_bytes  # What is no size is said before anything is touched.
    has_journal = "true" in study.levels_in_use("external_journal")
    return with_journal_device(testbed) if has_journal else testbed


def root_factors(study: Study) -> list[str]:
    """Factors of a study that only root can set."""
    held = [study.settings, *(workload.settings for workload in study.workloads)]
    names = [factor.name for factor in study.factors]
    names += [name for levels in held for name, _ in levels]
    known = [name for name in dict.fromkeys(names) if is_factor(name)]
    wanting = [name for name in known if find_factor(name).needs_root]
    if study.has_real_time_streams:
        wanting.append("priority rt")
    if study.has_cgroups:
        wanting.append("control groups (cgroup, cgroup_weight, limits)")
    return [*wanting, *(name for name in study.knobs_changed if name not in wanting)]


def greet(runner: Runner, prepared: Prepared, *, is_dry_run: bool) -> None:
    """Begin to talk to a runner.

    Raises
    ------
    RefusedError : an earlier run left changes that are not undone.
    TestbedError : root is needed.
    """
    hello = runner.hello(prepared.run_id, is_dry_run=is_dry_run)
    if hello.open_journals and not is_dry_run:
        host = prepared.options.host
        way = "run `iolab restore` first" if host is None else f"`{host.restored_by}` undoes it"
        raise RefusedError(left_behind_text(hello.open_journals), way)
    if prepared.needs_root and not hello.is_root and not is_dry_run:
        wanting = ", ".join(root_factors(prepared.plan.study)) or prepared.testbed.text
        raise TestbedError(f"{wanting} needs root", f"run `{AS_ROOT} ...`")


# Whole devices.


def confirmed(prepared: Prepared, start_runner: StartRunner) -> Prepared:
    """The same with the serial that the user has confirmed; asks where that is needed.

    Raises
    ------
    RefusedError : it was not confirmed.
    """
    testbed = prepared.testbed
    if not isinstance(testbed, DeviceTestbed):
        return prepared
    from iolab.run.confirm import Device, check_key, confirm_erasure, confirm_wear
    from iolab.run.wear import Accepted
    from iolab.run.writes import wear_of

    options, observer = prepared.options, prepared.observer
    with start_runner(None, observer.note) as runner:
        greet(runner, prepared, is_dry_run=True)
        opened = runner.open_testbed(testbed.agent_spec())
        runner.close_testbed()
    device = Device.of(opened.facts)
    check_key(testbed, device, is_from_file=options.is_testbed_from_file)
    serial = confirm_erasure(device, options.erase_serial, observer)
    earlier = history(prepared)
    wear = wear_of(prepared.plan, testbed, device, earlier)
    most = confirm_wear(wear, options.accepted_bytes, observer)
    accepted = None
    if most is not None:
        size = device.size_bytes
        before = testbed.precondition_bytes(size)
        least = testbed.least_precondition_bytes(size)
        accepted = Accepted(most, size, before, earlier, least)
    return replace(prepared, testbed=replace(testbed, erase_serial=serial), accepted=accepted)


def history(prepared: Prepared) -> History:
    """Writes of earlier starts of this study."""
    from iolab.run.wear import History
    from iolab.run.writes import stored_history

    if not prepared.is_resumed:
        return History()
    return stored_history(prepared.plan, prepared.database)
