"""A dialect's plan as the front end reads it, and the study that stands for it in the store.

A plan comes from `iolab._core` as JSON: rows, each with a whole workload, and how results are
shown. In the store a plan is a study whose treatments are its rows (`iolab.study.table`), so that
reports, comparisons and archives know it like any other. What is measured is the plan's own
workload; the study's levels describe it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from iolab import units
from iolab.errors import DialectError, RefusedError, TestbedError
from iolab.frozen import frozen
from iolab.run.refusals import refusals
from iolab.store import made
from iolab.store.rows import Caveat
from iolab.store.users_files import Allowed, is_replaceable, refuse_special, refused
from iolab.study.model import Study, TestbedRequest
from iolab.study.plan import Plan, make_plan
from iolab.study.table import RowTable
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.model import DirectoryTestbed, Testbed, make_testbed
from iolab.testbed.refusal import RefusalCore

KEEPING: Final = "mkfile"
"""The dialect whose files are what it is run for."""
_FILE_FIRST: Final = {
    "iozone": "name one that exists, make it with -i 0 -w -f FILE, or add -i 0",
}
"""Advice where a file is missing."""
_DIRECT_ONLY: Final = {
    "iozone": "add -I, select tests with -i 0 to -i 5, or use --on loop:1g",
    "bonnie++": "add -D -f -n 0 for what is direct, or use --on loop:8g",
    "mkfile": "use --on loop:1g",
}
_CACHED: Final = frozenset({"page_cache", "mapping", "streams", "append", "many_files"})
"""Codes of refusals that the options of `_DIRECT_ONLY` avoid."""
Json = Mapping[str, Any]


class DialectCore(Protocol):
    """What is needed of `iolab._core`."""

    def dialect_parse(self, dialect: str, words: list[str], /) -> str:
        """Plan of a command line, as JSON."""
        ...

    def dialect_render(self, dialect: str, plan: str, event: str, /) -> str:
        """What the dialect prints at an event."""
        ...

    def dialect_file(self, dialect: str, plan: str, event: str, /) -> bytes:
        """A file that the dialect writes."""
        ...


@frozen
class DialectPlan:
    """A command line, understood."""

    dialect: str
    text: str
    """The plan as it came, to be handed back for rendering."""
    values: Json
    words: tuple[str, ...] = ()
    """As typed, without the dialect's name."""

    @classmethod
    def of_words(cls, core: DialectCore, dialect: str, words: Sequence[str]) -> DialectPlan:
        """What the words mean.

        Raises
        ------
        DialectError : nothing; says where and what to do.
        """
        text = core.dialect_parse(dialect, list(words))
        return cls(dialect, text, json.loads(text), tuple(words))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What is measured, in this order."""
        return self.values["rows"]

    @property
    def common(self) -> Json:
        """What iolab adds to the dialect's options."""
        return self.values["common"]

    @property
    def asked(self) -> Json:
        """What the front end is to do beside measuring."""
        return self.values.get("asked", {})

    @property
    def kept_bytes(self) -> int:
        """Bytes of the files that stay when it is done."""
        if self.dialect != KEEPING or not self.is_in_place:
            return 0
        return sum(int(row["file_kb"]) << 10 for row in self.rows)

    @property
    def rounds(self) -> int:
        """How often the whole is measured."""
        return max(1, int(self.common["repeat"]))

    @property
    def is_in_place(self) -> bool:
        """Whether files lie where the command says, not on a testbed."""
        return self.common["on"] is None


def testbed_of(plan: DialectPlan) -> Testbed:
    """Where the plan runs: the directory that its command names, or the testbed of ``--on``.

    Raises
    ------
    TestbedError : there is no such place.
    """
    options = dict(plan.common["testbed"])
    asked = plan.common["on"]
    if asked is None:
        _refuse_options(options)
        directory = Path(plan.values["directory"] or ".")
        try:
            path = directory.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TestbedError(
                f"{directory} cannot be used: {reason}", "name a file in a directory that exists"
            ) from None
        if not path.is_dir():
            raise TestbedError(f"{directory} is not a directory", "name a file in a directory")
        if plan.asked.get("is_scratch"):
            # Nobody else ever reads these: a directory of ours cannot be taken for another's.
            return DirectoryTestbed(path)
        testbed = DirectoryTestbed(path, is_in_place=True)
        is_read_only = bool(plan.asked.get("is_read_only"))
        check_files(plan, path, is_read_only=is_read_only)
        return testbed
    kind, _, argument = str(asked).partition(":")
    serial = options.pop("erase_serial", None)
    testbed = make_testbed(kind, argument, options)
    if serial is not None:
        if not isinstance(testbed, DeviceTestbed):
            raise RefusedError(
                f"{testbed.text} erases no device: --erase-serial means nothing", "leave it out"
            )
        testbed = replace(testbed, erase_serial=serial)
    if testbed.is_simulated:
        _refuse_company(plan, testbed)
    return testbed


def _refuse_options(options: Mapping[str, str]) -> None:
    for name in options:
        flag = "--" + name.replace("_", "-")
        raise TestbedError(f"{flag} belongs to a testbed", "add --on, for instance --on loop:1g")


def check_files(plan: DialectPlan, directory: Path, *, is_read_only: bool) -> None:
    """Refuse, before anything is measured, what the measuring would refuse, too (safety R6).

    Raises
    ------
    TestbedError : a file that must be there is not, or cannot be used.
    RefusedError : a file that would be written is not iolab's, or none.
    """
    allowed = Allowed.of(plan.common["overwrite"])
    expected = files_expected(plan)
    for name in plan.values["files"]:
        path = directory / name
        try:
            status = path.lstat()
        except FileNotFoundError:
            if is_read_only:
                raise TestbedError(f"there is no file {path}", "name one that exists") from None
            if name in expected:
                raise TestbedError(
                    f"there is no file {path}, and {expected[name]} reads one",
                    _FILE_FIRST.get(plan.dialect, "name one that exists"),
                ) from None
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TestbedError(f"{path} cannot be used: {reason}", "name another file") from None
        try:
            refuse_special(path, status)
        except RefusedError as error:  # To the originals, and so here, it is a wrong option.
            hint = "name a file of its own; a device is used with --on device:"
            raise TestbedError(error.message, hint) from None
        is_written = name in written_files(plan)
        is_scratch = bool(plan.asked.get("is_scratch"))
        if is_written and not is_scratch and not is_replaceable(path, status, allowed):
            raise refused(path)
        what, access = ("written", os.W_OK) if is_written else ("read", os.R_OK)
        if not os.access(path, access):
            raise TestbedError(f"{path} may not be {what}", "name another file")


def files_expected(plan: DialectPlan) -> dict[str, str]:
    """Files that a phase uses before any other has made them, with the name of the first one."""
    seen = set[str]()
    found = dict[str, str]()
    for row in plan.rows:
        for phase in row["workload"]["phases"]:
            named = [
                (tenant["opening"], name)
                for tenant in phase["tenants"]
                for name in file_names(tenant)
            ]
            for opening, name in named:
                if opening == "existing" and name not in seen:
                    found.setdefault(name, phase["name"])
            seen.update(name for _, name in named)
    return found


def removed_files(plan: DialectPlan, directory: Path) -> list[str]:
    """Files that are there, that the user let be overwritten and that are gone at the end."""
    allowed = Allowed.of(plan.common["overwrite"])
    if plan.dialect == KEEPING or not plan.rows:
        return []
    if plan.rows[-1]["workload"]["phases"][-1]["keeps_files"]:
        return []
    written = written_files(plan)
    paths = {name: directory / name for name in plan.values["files"] if name in written}
    return [name for name, path in paths.items() if path.exists() and allowed.has(path)]


def foreign_reads(plan: DialectPlan, directory: Path) -> list[str]:
    """Files that are there, that iolab did not make and that are only read: they stay."""
    known = written_files(plan) | set(replaceable(plan, directory))
    return [
        name for name in plan.values["files"] if name not in known and (directory / name).exists()
    ]


def written_files(plan: DialectPlan) -> set[str]:
    """Names of the files that some phase makes, removes or writes."""
    phases = (phase for row in plan.rows for phase in row["workload"]["phases"])
    return {
        name
        for tenant in (tenant for phase in phases for tenant in phase["tenants"])
        if tenant["opening"] != "existing" or tenant["direction"]["kind"] != "read"
        for name in file_names(tenant)
    }


def file_names(tenant: Json) -> list[str]:
    """Names of a tenant's files, as `Tenant::file_name` of iolab-workload has them."""
    named: list[str] = list(tenant.get("files") or ())
    count = int(tenant["workers"])
    first, step = int(tenant.get("file_first", 0)), int(tenant.get("file_step", 1))
    if tenant.get("is_file_shared"):
        return named[:1] or [tenant["file"]]
    rest = [f"{tenant['file']}.{first + worker * step}" for worker in range(count)]
    return [*named[:count], *rest[len(named) :]]


def replaceable(plan: DialectPlan, directory: Path) -> dict[str, Any]:
    """What the agent is told of files that are there: named by the user, or made by iolab."""
    allowed = Allowed.of(plan.common["overwrite"])
    found = dict[str, Any]()
    for name in plan.values["files"]:
        path = directory / name
        mark = made.Mark.of_path(path)
        if allowed.has(path):
            found[name] = "named"
        elif mark is not None and made.is_made(path.lstat()):
            found[name] = {"made": mark.to_dict()}
        elif (birth := made.birth_of(path)) is not None:
            found[name] = {"begun": birth.to_dict()}
    return found


def check_possible(plan: DialectPlan, testbed: Testbed, core: RefusalCore) -> None:
    """Refuse a command line of which the testbed cannot do something, in the dialect's words.

    Raises
    ------
    DialectError : names what, where and why, and the option that would do.
    """
    for row in plan.rows:
        for refusal in refusals(testbed, {"workload": row["workload"]}, core):
            hint = refusal.hint
            if refusal.code in _CACHED:
                hint = _DIRECT_ONLY.get(plan.dialect, _DIRECT_ONLY["iozone"])
            raise DialectError(refusal.text(testbed.text), hint)


def _refuse_company(plan: DialectPlan, testbed: Testbed) -> None:
    """Nobody's time is that of a simulation."""
    if plan.asked.get("waits"):
        raise DialectError(f"-y on {testbed.text}: a simulation waits for nobody", "leave it out")


def study_plan(plan: DialectPlan, testbed: Testbed, *, seed: int) -> Plan:
    """The study that stands for a plan in the store; its treatments are the plan's rows, in order.

    Raises
    ------
    StudyError : it cannot run on this testbed.
    """
    kind, argument, options = testbed.request
    _refuse_endless(plan)
    table = RowTable(plan.dialect, plan.rows)
    study = Study(
        name=plan.dialect,
        testbed=TestbedRequest(kind, argument, options),
        factors=table.factors,
        settings=(("cache", str(plan.values["cache"])), *table.settings),
        workloads=table.workloads,
        compared_factor=table.factors[0].name,
        baseline=table.baseline,
        rounds=plan.rounds,
        seed=seed,
        command=(plan.dialect, *plan.words),
    )
    return make_plan(study, table.places)


def _refuse_endless(plan: DialectPlan) -> None:
    """No file system has files of more than 2**62 bytes, and no number of the store either."""
    for row in plan.rows:
        if int(row["file_kb"]) << 10 > units.SIZE_MAX:
            raise DialectError(
                f"a file of {row['file_kb']} kB is larger than any file", "use at most 4 EiB"
            )


def order_caveats(plan: Plan, testbed: Testbed) -> tuple[Caveat, ...]:
    """What is to be said of levels that are never measured in random order.

    Simulated trials do not know each other, so that their order does not matter.
    """
    if not plan.study.is_comparison or testbed.is_simulated:
        return ()
    return (
        Caveat(
            "fixed_order",
            "rows were measured in the order of the table, not at random: what changes with time"
            " inside a round looks like a difference of sizes.",
            "To choose a size, let iolab compare sizes: it measures them in random order.",
        ),
    )
