"""A dialect's plan as the front end reads it, and the study that a command line is.

A plan comes from `iolab._core` as JSON: rows, each with a whole workload, and how results are
shown. The study holds the words (`iolab.study.dialects`); it runs, is stored and is continued like
any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from iolab.errors import TestbedError
from iolab.frozen import frozen, replace
from iolab.run.options import RunOptions
from iolab.store.users_files import NOTHING, Allowed
from iolab.study.dialects import (
    Dialect,
    Entry,
    find_dialect,
    of_one_run,
    of_plan,
    own_factors,
    too_large,
    typed_again,
    usual_level,
)
from iolab.study.entry_plan import EntryPlan, entry_plan
from iolab.study.model import Levels, Study, TestbedRequest
from iolab.study.testbed_words import testbed_request
from iolab.study.trace_words import TraceEvents, typed_events
from iolab.testbed.read_devices import identity_of

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import (
        CommandExtras,
        CommandPlan,
        CommandRow,
        CommonOptions,
        Demand,
        IozoneRow,
        Workload,
    )

Json = Mapping[str, Any]


class DialectCore(Protocol):
    """Functions of `iolab._core` that are needed."""

    def dialect_parse(self, dialect: str, words: list[str], /) -> JsonText[CommandPlan]:
        """Plan of a command line, as JSON."""
        ...

    def workload_file(self, subject: str, text: str, /) -> JsonText[Workload]:
        """Workload description of a native workload file."""
        ...

    def workload_demand(self, workload_json: JsonText[Workload], /) -> JsonText[Demand | None]:
        """Space that the programs of a workload may take, as JSON."""
        ...

    def dialect_render(self, dialect: str, plan: str, event: str, /) -> str:
        """Text that the dialect prints at an event."""
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
    values: CommandPlan
    lowered: EntryPlan
    """The rows as a study takes them."""
    words: tuple[str, ...] = ()
    """As typed, without the dialect's name."""
    allowed: Allowed = NOTHING
    """Files of the user's own that may be replaced: named today, never by stored words."""

    @classmethod
    def of_words(cls, core: DialectCore, dialect: str, words: Sequence[str]) -> DialectPlan:
        """Plan of words that were typed just now.

        Raises
        ------
        DialectError : nothing; says where and what to do.
        """
        plan = cls.of_stored(core, dialect, words, NOTHING)
        return replace(plan, allowed=Allowed.of(plan.common["overwrite"]))

    @classmethod
    def of_stored(
        cls, core: DialectCore, dialect: str, words: Sequence[str], allowed: Allowed
    ) -> DialectPlan:
        """Plan of stored words; the files that they name with ``--overwrite`` count for nothing.

        `allowed` are the files that may be replaced now.

        Raises
        ------
        DialectError : nothing; says where and what to do.
        """
        text = core.dialect_parse(dialect, list(words))
        values: CommandPlan = json.loads(text)
        return cls(dialect, text, values, entry_plan(core, values), tuple(words), allowed)

    @property
    def rows(self) -> Sequence[IozoneRow | CommandRow]:
        """Rows to measure, in this order."""
        return self.values["rows"]

    @property
    def common(self) -> CommonOptions:
        """Options that iolab adds to the dialect's."""
        return self.values["common"]

    @property
    def asked(self) -> CommandExtras:
        """Requests to the front end beside measuring."""
        return self.values["asked"]

    @property
    def rounds(self) -> int:
        """Number of rounds: how often the whole is measured."""
        return max(1, int(self.common["repeat"]))

    @property
    def row_of_dialect(self) -> Dialect:
        """The dialect's row in the registry."""
        return find_dialect(self.dialect)

    @property
    def options(self) -> RunOptions:
        """Options of its run."""
        out = self.common["out"]
        return RunOptions(
            out=Path(out) if out else None,
            is_resumed=bool(self.common.get("is_resumed")),
            trace=self._trace(),
            overwrite=tuple(self.common["overwrite"]),
            erase_serial=dict(self.common["testbed"]).get("erase_serial"),
            is_announced=False,
            failures_max=None,
        )

    def _trace(self) -> TraceEvents | None:
        """Events that are recorded, if any are; an unknown word is refused."""
        typed = self.common.get("trace_events")
        if typed is not None:
            return typed_events(typed, "--trace-events")
        return TraceEvents() if self.common.get("is_traced") else None


def study_of(plan: DialectPlan) -> Study:
    """The study that a command line is.

    Raises
    ------
    TestbedError : there is no such place.
    DialectError : a file would be larger than any.
    """
    problem = too_large(plan.lowered)
    if problem is not None:
        raise problem
    dialect = plan.row_of_dialect
    entry = Entry(dialect.name, dialect, typed_again(dialect, plan.words), is_line=True)
    workloads = of_plan(entry, plan.lowered)
    factors = own_factors(workloads)
    settings: Levels = (("cache", str(plan.values["cache"])), *_scheduler_of(plan))
    return Study(
        name=dialect.name,
        testbed=_testbed_of(plan),
        factors=factors,
        settings=settings,
        workloads=workloads,
        compared_factor=factors[0].name if factors else "",
        baseline=usual_level(workloads, factors[0]) if factors else "",
        rounds=plan.rounds,
        command=(dialect.name, *of_one_run(dialect, plan.words)),
    )


def _scheduler_of(plan: DialectPlan) -> Levels:
    """I/O scheduler that the command line asks for, as a setting; empty: none."""
    name = plan.values["show"].get("scheduler")
    return () if name is None else (("scheduler", str(name)),)


def _testbed_of(plan: DialectPlan) -> TestbedRequest:
    """Testbed of the plan: the directory that its command names, or the testbed of ``--on``.

    Raises
    ------
    TestbedError : there is no such place.
    """
    options = dict(plan.common["testbed"])
    asked = plan.common["on"]
    if asked is not None:
        options.pop("erase_serial", None)
        request = testbed_request(str(asked))
        return replace(request, options=(*sorted(options.items()), *request.options))
    for name in options:
        flag = "--" + name.replace("_", "-")
        raise TestbedError(f"{flag} belongs to a testbed", "add --on, for instance --on loop:1g")
    directory = Path(plan.values["directory"] or ".")
    try:
        path = directory.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TestbedError(
            f"{directory} cannot be used: {reason}", "name a directory that exists"
        ) from None
    if not path.is_dir():
        raise TestbedError(f"{directory} is not a directory", "name a directory that exists")
    # Nobody else ever reads scratch files: a directory of ours cannot be taken for another's.
    in_place = () if plan.asked.get("is_scratch") else (("in_place", "true"),)
    return TestbedRequest("dir", str(path), (*in_place, *_devices_of(plan, path)))


def _devices_of(plan: DialectPlan, directory: Path) -> Levels:
    """Block devices among the files of a command, as an option of the testbed."""
    names = plan.values["files"] if plan.row_of_dialect.reads_devices else ()
    found = sorted(
        {str(directory / name) for name in names if (directory / name).is_block_device()}
    )
    if not found:
        return ()
    return (("devices", ",".join(found)), ("identity", identity_of(found)))
