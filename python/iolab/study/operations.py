"""Operations of a workload: kind, size and way to the data of each, never from its name.

An id is the user's word. Properties of IOzone's tests come from `names.json`, which Rust writes
(crates/iolab-workload/src/preset/iozone.rs); those of streams from their description; those of
workload descriptions from `iolab._core.workload_operations`.

Left out: what was measured of an operation. A stored operation says kind, size and access itself
(`iolab.store.rows.Nature`), as its record did.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from iolab import units
from iolab.frozen import frozen, replace
from iolab.json_text import read_json
from iolab.study.model import DialectWorkload, MixedWorkload, Stream, WorkloadPlan
from iolab.study.names import ENGINES, TESTS, TestName
from iolab.study.treatment import Treatment

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import Workload

Kind: TypeAlias = Literal["read", "write", "mixed", "update", "sync", "name", "key_value", "other"]
"""Kind of an operation, as `OperationKind` of crates/iolab-workload/src/operation.rs."""
Access: TypeAlias = Literal["plain", "direct", "mapped", "stdio", "append"]
"""The way to the data."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
ACCESSES: Final[tuple[Access, ...]] = get_args(Access)
_TESTS: Final = {test.name: test for test in TESTS}
_DEFAULT_ACCESS: Final = {engine.name: engine.default_access for engine in ENGINES}
_DIRECT: Final = "direct"
_PLAIN: Final = "plain"


@frozen
class Operation:
    """Operation that a workload repeats, by its properties.

    ``io_size_bytes`` is None for several sizes, or where levels decide that are not known here;
    ``access`` is None for several ways, for none, or where levels decide that are not known here.
    """

    id: str
    """Word of the user: name of a test, a stream or a phase; decides nothing."""
    kind: Kind
    reads: bool
    writes: bool
    io_size_bytes: int | None = None
    access: Access | None = None
    has_own_calls: bool = False
    """True if it makes its calls in its own way, whatever engine is chosen."""


def operations_of(
    workload: WorkloadPlan, effective: Mapping[str, str] | None = None
) -> tuple[Operation, ...]:
    """Operations of a workload, in the order in which it names them.

    Parameters
    ----------
    workload : of a study.
    effective : levels that apply to it, by factor (`Treatment.effective`); without them sizes and
        ways to the data that levels decide are None.
    """
    levels = {} if effective is None else effective
    if isinstance(workload, MixedWorkload):
        return tuple(_of_stream(stream, levels) for stream in workload.streams)
    if isinstance(workload, DialectWorkload):
        return _of_rows([operations_of_description(row.description) for row in workload.rows])
    held = dict(workload.settings) | dict(levels)
    return tuple(
        _of_test(_TESTS[name], held, levels) if name in _TESTS else _unknown(name)
        for name in workload.tests
    )


def operations_of_treatment(treatment: Treatment) -> tuple[Operation, ...]:
    """Operations of one treatment, in the order in which its workload names them."""
    if treatment.row is not None:
        return operations_of_description(treatment.row.description)
    return operations_of(treatment.workload, treatment.effective)


def _of_rows(rows: Sequence[tuple[Operation, ...]]) -> tuple[Operation, ...]:
    """Operations of all rows, with what those of the same id have in common."""
    found: dict[str, Operation] = {}
    for one in itertools.chain(*rows):
        known = found.setdefault(one.id, one)
        if known.io_size_bytes != one.io_size_bytes:
            found[one.id] = known = replace(known, io_size_bytes=None)
        if known.access != one.access:
            found[one.id] = replace(known, access=None)
    return tuple(found.values())


def operations_of_description(text: JsonText[Workload]) -> tuple[Operation, ...]:
    """Operations of a workload description, as it crosses to the agent.

    Parameters
    ----------
    text : the description as JSON (docs/design/0002, workload spec).

    Raises
    ------
    StudyError : it is no workload description.
    """
    from iolab import _core

    rows = read_json(_core.workload_operations(text))
    return tuple(
        Operation(
            id=row["id"],
            kind=row["kind"],
            reads=row["reads"],
            writes=row["writes"],
            io_size_bytes=row["io_size_bytes"],
            access=_performed(row["access"], row["engine"]),
        )
        for row in rows
    )


def kind_of(*, reads: bool, writes: bool) -> Kind:
    """Kind of an operation that moves data."""
    if reads and writes:
        return "mixed"
    return "read" if reads else "write" if writes else "other"


def _of_test(test: TestName, held: Mapping[str, str], levels: Mapping[str, str]) -> Operation:
    size = units.parse_bytes(held["record_size"]) if "record_size" in held else None
    return Operation(
        id=test.name,
        kind=cast("Kind", test.kind),
        reads=test.reads,
        writes=test.writes,
        io_size_bytes=_grouped(size, test, held),
        access=cast("Access", test.access) if test.access else _chosen(levels),
        has_own_calls=test.has_own_calls,
    )


def _unknown(name: str) -> Operation:
    """Operation of another program, of which only the name is known here."""
    return Operation(id=name, kind="other", reads=False, writes=False)


def _grouped(size: int | None, test: TestName, held: Mapping[str, str]) -> int | None:
    """Bytes of one call: a group of records, where a file has as many."""
    if size is None or test.records_per_call == 1:
        return size
    if "file_size" not in held:
        return None
    records = max(1, units.parse_bytes(held["file_size"]) // size)
    return size * min(records, test.records_per_call)


def _of_stream(stream: Stream, levels: Mapping[str, str]) -> Operation:
    reads, writes = stream.read_share > 0, stream.read_share < 1
    return Operation(
        id=stream.name,
        kind=kind_of(reads=reads, writes=writes),
        reads=reads,
        writes=writes,
        io_size_bytes=stream.io_size_bytes,
        access=_chosen(levels),
    )


def _chosen(levels: Mapping[str, str]) -> Access | None:
    """Way to the data that levels choose; None if they are not known."""
    if not {_DIRECT, "engine"} <= levels.keys():
        return None
    if levels[_DIRECT] == "true":
        return "direct"
    return _performed(_PLAIN, levels["engine"])


def _performed(access: str | None, engine: str) -> Access | None:
    """Way to the data as an engine goes it unless a workload asks otherwise."""
    if access == _PLAIN:
        access = _DEFAULT_ACCESS.get(engine, _PLAIN)
    return cast("Access | None", access)
