"""Kind, size and way to the data of operations that were stored without them.

Records of today say what each operation is (schema 4). Of older ones it is known for certain where
the study's own text says it: its workloads describe their tests and streams. A command line of
another program has no such text; there the records count what was read and written. Whatever is
left has no kind, and nothing is claimed of it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from iolab.errors import IolabError
from iolab.frozen import frozen, replace
from iolab.store.cells import understood, unpack_record
from iolab.store.rows import Nature
from iolab.study.model import IozoneWorkload
from iolab.study.names import ENGINES, TESTS
from iolab.study.operations import Access, Kind, kind_of, operations_of
from iolab.study.treatment import Treatment, treatments_of

if TYPE_CHECKING:
    from iolab.protocol import Record

FIRST_VERSION: Final = 4
"""Schema version from which on records say it themselves."""
_TRANSFERS: Final = frozenset({"read", "write", "mixed", "update"})
_ALL: Final = "all"
"""Name of the sum of all streams of a phase."""
_COMPAT: Final = "--compat"
"""Word of bonnie++ with which direct I/O holds for one of its phases only."""
_TESTS: Final = {test.name: test for test in TESTS}
_DEFAULT_ACCESS: Final = {engine.name: engine.default_access for engine in ENGINES}


Place = tuple[int, str]
"""Record and operation."""


def has_natures(connection: sqlite3.Connection) -> bool:
    """Tell whether the table of phases has columns for kind and access."""
    return any(row[1] == "kind" for row in connection.execute("PRAGMA table_info(phase)"))


def unknown_natures(connection: sqlite3.Connection) -> dict[Place, Nature]:
    """Natures of the operations whose record does not say it.

    Those of which nothing is known but the size that is stored are left out.
    """
    where = " WHERE kind IS NULL AND access IS NULL" if has_natures(connection) else ""
    rows = connection.execute(
        "SELECT record_id, operation, io_size_bytes, workload, levels_json, is_direct "
        f"FROM phase JOIN record USING (record_id) JOIN trial USING (trial_id){where} "
        "ORDER BY record_id, phase.ordinal"
    ).fetchall()
    kind, spec_toml = connection.execute("SELECT kind, spec_toml FROM study").fetchone()
    if not rows or kind == "imported":
        return {}
    source = _of_text(spec_toml) or _of_command(spec_toml, connection)
    found, alike = dict[Place, Nature](), dict[tuple[Nature, int | None], Nature]()
    for record_id, operation, size, workload, levels, is_direct in rows:
        trial = _Trial(record_id, workload, levels, bool(is_direct))
        nature = source.nature(trial, _whole(operation)) if source is not None else None
        if "/" in operation:  # The size that was stored is that of the first stream.
            found[record_id, operation] = nature or Nature()
        elif nature is not None:
            key = (nature, size)
            if key not in alike:
                alike[key] = replace(nature, io_size_bytes=size)
            found[record_id, operation] = alike[key]
    return found


@frozen
class _Trial:
    """One record, and what its trial was."""

    record_id: int
    workload: str
    levels: str
    is_direct: bool


def _whole(operation: str) -> str:
    """Operation of which a segment is a part: ``mixed/reader`` of ``mixed/reader@0-5s``."""
    return operation.partition("@")[0]


class _Text:
    """Natures that the text of a study says."""

    def __init__(self, treatments: Sequence[Treatment]) -> None:
        self._treatments = treatments
        self._known = dict[tuple[str, str], dict[str, Nature]]()

    def nature(self, trial: _Trial, operation: str) -> Nature | None:
        """Nature of an operation of a trial; None if the text does not name it."""
        key = (trial.workload, trial.levels)
        if key not in self._known:
            self._known[key] = self._natures(trial)
        return self._known[key].get(operation)

    def _natures(self, trial: _Trial) -> dict[str, Nature]:
        levels: Mapping[str, str] = json.loads(trial.levels)
        for treatment in self._treatments:
            is_here = treatment.workload.name == trial.workload
            if is_here and dict(treatment.levels).items() <= levels.items():
                return _of_treatment(treatment)
        return {}


def _of_treatment(treatment: Treatment) -> dict[str, Nature]:
    workload = treatment.workload
    operations = operations_of(workload, treatment.effective)
    own = {one.id: Nature(one.kind, one.access, one.io_size_bytes) for one in operations}
    if isinstance(workload, IozoneWorkload):
        return own | {
            f"{name}/{part}": replace(own[name], kind=kind)
            for name in own
            if _TESTS[name].kind == "mixed"
            for part, kind in (("readers", "read"), ("writers", "write"), (_ALL, "mixed"))
        }
    if len(own) == 1:
        return {workload.name: next(iter(own.values()))}
    named = {f"{workload.name}/{name}": nature for name, nature in own.items()}
    return {**named, f"{workload.name}/{_ALL}": reduce(_together, named.values())}


def _together(one: Nature, other: Nature) -> Nature:
    """Nature of operations that run side by side."""
    kind: Kind | None = one.kind if one.kind == other.kind else "other"
    if one.kind != other.kind and {one.kind, other.kind} <= _TRANSFERS:
        kind = "mixed"
    return Nature(
        kind,
        one.access if one.access == other.access else None,
        one.io_size_bytes if one.io_size_bytes == other.io_size_bytes else None,
    )


class _Command:
    """Natures of the phases of a command line, which its dialect names and not the user."""

    def __init__(
        self, command: Sequence[str], engines: Mapping[str, str], connection: sqlite3.Connection
    ) -> None:
        self._dialect, *self._words = command
        self._engines = engines
        self._connection = connection
        self._moved = dict[int, dict[str, tuple[bool, bool]]]()

    def nature(self, trial: _Trial, operation: str) -> Nature | None:
        """Nature of a phase; None of one that moves no data, or of which nothing is certain."""
        moved = self._moved_by(trial.record_id).get(operation)
        if moved is None:
            return None
        reads, writes = moved
        # Whether each operation reads and writes, or one or the other, nobody counted.
        kind = None if reads and writes else kind_of(reads=reads, writes=writes)
        return Nature(kind, self._access(trial, operation))

    def _access(self, trial: _Trial, operation: str) -> Access | None:
        test = _TESTS.get(operation.partition("/")[0]) if self._dialect == "iozone" else None
        if test is not None and test.access == "stdio":
            return "stdio"
        if trial.is_direct:
            is_certain = self._dialect != "bonnie++" or _COMPAT not in self._words
            return "direct" if is_certain else None
        default = _DEFAULT_ACCESS.get(self._engines.get(trial.workload, ""))
        return next((way for way in ("plain", "mapped", "stdio") if way == default), None)

    def _moved_by(self, record_id: int) -> dict[str, tuple[bool, bool]]:
        if record_id not in self._moved:
            row = self._connection.execute(
                "SELECT record_zlib FROM record WHERE record_id = ?", (record_id,)
            ).fetchone()
            record = unpack_record(row[0], record_id)
            with understood(record_id):
                self._moved[record_id] = _moved(record)
        return self._moved[record_id]


def _moved(record: Record) -> dict[str, tuple[bool, bool]]:
    """Tell whether the operations that moved data read and wrote, as their workers counted."""
    found = dict[str, tuple[bool, bool]]()
    for phase in record.get("phases") or []:
        tenants = phase.get("tenants") or []
        named = {f"{phase['name']}/{tenant['name']}": [tenant] for tenant in tenants}
        parts = {**named, f"{phase['name']}/{_ALL}": tenants}
        for name, those in ({phase["name"]: tenants} if len(tenants) == 1 else parts).items():
            workers = [worker for tenant in those for worker in tenant["workers"]]
            reads, writes = (
                any(worker.get(key) for worker in workers) for key in ("read_bytes", "write_bytes")
            )
            if reads or writes:
                found[name] = reads, writes
    return found


def _of_text(spec_toml: str) -> _Text | None:
    """Content of a study file; None if the text is none."""
    from iolab.study.load import parse_study

    try:
        return _Text(treatments_of(parse_study(spec_toml)))
    except IolabError:
        return None


def _of_command(spec_toml: str, connection: sqlite3.Connection) -> _Command | None:
    """Nature of a command line; None if the text is none."""
    import tomllib

    try:
        text = tomllib.loads(spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    command, workloads = text.get("command"), text.get("workloads")
    if not isinstance(command, list) or not command or not isinstance(workloads, list):
        return None
    engines = dict[str, str]()
    for workload in workloads:  # pyright: ignore[reportUnknownVariableType]
        table: dict[str, Any] = workload if isinstance(workload, dict) else {}
        settings: Any = table.get("settings")
        if isinstance(settings, dict):
            engines[str(table.get("name"))] = str(settings.get("engine"))  # pyright: ignore
    words = [str(word) for word in command]  # pyright: ignore
    return _Command(words, engines, connection)


def fill(connection: sqlite3.Connection) -> None:
    """Store what is known of the operations of a study that was stored without it."""
    connection.executemany(
        "UPDATE phase SET kind = ?, access = ?, io_size_bytes = ? "
        "WHERE record_id = ? AND operation = ?",
        [
            (nature.kind, nature.access, nature.io_size_bytes, *place)
            for place, nature in unknown_natures(connection).items()
        ],
    )
