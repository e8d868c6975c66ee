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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from iolab.errors import DialectError, RefusedError, TestbedError
from iolab.store.rows import Caveat
from iolab.study.model import Study, TestbedRequest
from iolab.study.plan import Plan, make_plan
from iolab.study.table import RowTable
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.model import DirectoryTestbed, Testbed, make_testbed
from iolab.testbed.sim import SimTestbed

KEEPING: Final = "mkfile"
"""The dialect whose files are what it is run for."""
_DIRECT_ONLY: Final = {
    "iozone": "add -I, select tests with -i 0 to -i 5, or use --on loop:1g",
    "bonnie++": "add -D -f -n 0 for what is direct, or use --on loop:8g",
    "mkfile": "use --on loop:1g",
}
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


@dataclass(frozen=True, slots=True)
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
        scratch = tuple(plan.values["files"]) if plan.asked.get("is_scratch") else ()
        testbed = DirectoryTestbed(path, is_in_place=True, scratch=scratch)
        is_read_only = bool(plan.asked.get("is_read_only"))
        _refuse_special_files(path, plan.values["files"], is_read_only=is_read_only)
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
    if isinstance(testbed, SimTestbed):
        _refuse_buffered(plan, testbed)
        _refuse_company(plan, testbed)
    return testbed


def _refuse_options(options: Mapping[str, str]) -> None:
    for name in options:
        flag = "--" + name.replace("_", "-")
        raise TestbedError(f"{flag} belongs to a testbed", "add --on, for instance --on loop:1g")


def _refuse_special_files(directory: Path, names: Sequence[str], *, is_read_only: bool) -> None:
    """A test file may be made or replaced; anything else is somebody's."""
    for name in names:
        path = directory / name
        try:
            path.lstat()
        except FileNotFoundError:
            if is_read_only:
                raise TestbedError(f"there is no file {path}", "name one that exists") from None
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TestbedError(f"{path} cannot be used: {reason}", "name another file") from None
        if (path.exists() or path.is_symlink()) and (path.is_symlink() or not path.is_file()):
            what = "a symbolic link" if path.is_symlink() else "not a regular file"
            raise TestbedError(
                f"{path} is {what}", "name a file of its own; a device is used with --on device:"
            )
        what, access = ("read", os.R_OK) if is_read_only else ("written", os.W_OK)
        if path.exists() and not os.access(path, access):
            raise TestbedError(f"{path} may not be {what}", "name another file")


def _refuse_buffered(plan: DialectPlan, testbed: SimTestbed) -> None:
    """Simulated stacks know direct I/O only, for now."""
    for row in plan.rows:
        for phase in row["workload"]["phases"]:
            for tenant in phase["tenants"]:
                if tenant["access"] != "direct":
                    raise DialectError(
                        f"{phase['name']} on {testbed.text} goes through the page cache, and "
                        "buffered files in simulation come with a later release",
                        _DIRECT_ONLY.get(plan.dialect, _DIRECT_ONLY["iozone"]),
                    )


def _refuse_company(plan: DialectPlan, testbed: SimTestbed) -> None:
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


def order_caveats(plan: Plan, testbed: Testbed) -> tuple[Caveat, ...]:
    """What is to be said of levels that are never measured in random order.

    Simulated trials do not know each other, so that their order does not matter.
    """
    if not plan.study.is_comparison or testbed.record_kind == "simulated":
        return ()
    return (
        Caveat(
            "fixed_order",
            "rows were measured in the order of the table, not at random: what changes with time"
            " inside a round looks like a difference of sizes.",
            "To choose a size, let iolab compare sizes: it measures them in random order.",
        ),
    )
