"""A dialect's plan as the front end reads it, and the study that a command line is.

A plan comes from `iolab._core` as JSON: rows, each with a whole workload, and how results are
shown. The study holds the words (`iolab.study.dialects`); it runs, is stored and is continued like
any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iolab.errors import TestbedError
from iolab.frozen import frozen
from iolab.run.options import RunOptions
from iolab.store.users_files import Allowed
from iolab.study.demand import add_demands
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
from iolab.study.model import Levels, Study, TestbedRequest

Json = Mapping[str, Any]


class DialectCore(Protocol):
    """What is needed of `iolab._core`."""

    def dialect_parse(self, dialect: str, words: list[str], /) -> str:
        """Plan of a command line, as JSON."""
        ...

    def workload_demand(self, workload_json: str, /) -> str:
        """What the programs of a workload may take, as JSON."""
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
        return cls(dialect, text, add_demands(core, json.loads(text)), tuple(words))

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
    def rounds(self) -> int:
        """How often the whole is measured."""
        return max(1, int(self.common["repeat"]))

    @property
    def row_of_dialect(self) -> Dialect:
        """The dialect's row in the registry."""
        return find_dialect(self.dialect)

    @property
    def allowed(self) -> Allowed:
        """Files of the user's own that may be replaced."""
        return Allowed.of(self.common["overwrite"])

    @property
    def options(self) -> RunOptions:
        """How it is run."""
        out = self.common["out"]
        return RunOptions(
            out=Path(out) if out else None,
            is_resumed=bool(self.common.get("is_resumed")),
            overwrite=tuple(self.common["overwrite"]),
            erase_serial=dict(self.common["testbed"]).get("erase_serial"),
            is_announced=False,
            failures_max=None,
        )


def study_of(plan: DialectPlan) -> Study:
    """The study that a command line is.

    Raises
    ------
    TestbedError : there is no such place.
    DialectError : a file would be larger than any.
    """
    problem = too_large(plan.values)
    if problem is not None:
        raise problem
    dialect = plan.row_of_dialect
    entry = Entry(dialect.name, dialect, typed_again(plan.words), is_line=True)
    workloads = of_plan(entry, plan.values)
    factors = own_factors(workloads)
    settings: Levels = (("cache", str(plan.values["cache"])),)
    return Study(
        name=dialect.name,
        testbed=_testbed_of(plan),
        factors=factors,
        settings=settings,
        workloads=workloads,
        compared_factor=factors[0].name if factors else "",
        baseline=usual_level(workloads, factors[0]) if factors else "",
        rounds=plan.rounds,
        command=(dialect.name, *of_one_run(plan.words)),
    )


def _testbed_of(plan: DialectPlan) -> TestbedRequest:
    """Where the plan runs: the directory that its command names, or the testbed of ``--on``.

    Raises
    ------
    TestbedError : there is no such place.
    """
    options = dict(plan.common["testbed"])
    asked = plan.common["on"]
    if asked is not None:
        options.pop("erase_serial", None)
        kind, _, argument = str(asked).partition(":")
        return TestbedRequest(kind, argument, tuple(sorted(options.items())))
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
    return TestbedRequest("dir", str(path), in_place)
