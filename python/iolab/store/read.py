"""From the tables of a study to the rows that are judged and drawn."""

from __future__ import annotations

import gc
import sqlite3
import sys
import tomllib
from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from iolab.store.cells import CellError, read_json, unpack_record
from iolab.store.rows import (
    Caveat,
    ChangeMark,
    Measurement,
    SeriesRow,
    StudyData,
    StudyRow,
    TrialRow,
)
from iolab.study.influence import STREAM_TESTS

_FINISHED = "SELECT record_id FROM record WHERE status = 'ok'"


@dataclass(slots=True)
class _Texts:
    """JSON texts that many rows share, read once: what comes out is one object for all of them."""

    known: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])

    def read(self, text: str, table: str, row: object, column: str) -> Any:
        """Value of a JSON column, as `read_json`."""
        value = self.known.get((column, text))
        if value is None:
            value = read_json(text, table, row, column)
            self.known[column, text] = value
        return value

    def caveats(self, text: str, table: str, row: object) -> tuple[Caveat, ...]:
        """Caveats of a JSON column."""
        return () if text == "[]" else parse_caveats(text, table, row)


@contextmanager
def without_collecting() -> Generator[None, None, None]:
    """Millions of rows that all stay: looking for garbage among them again and again is in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load_study_data(connection: sqlite3.Connection) -> StudyData:
    """Everything stored about the study, read in one consistent snapshot."""
    with without_collecting():
        return _load_study_data(connection)


def _load_study_data(connection: sqlite3.Connection) -> StudyData:
    connection.execute("BEGIN")
    try:
        study = read_study(connection)  # First: it says so if there is none.
        trials, finished = _trials(connection)
        facts, varying = _facts(connection, finished)
        return StudyData(
            study=study,
            trials=trials,
            measurements=_measurements(connection, finished),
            series=_series(connection, finished),
            facts=facts,
            varying_facts=varying,
            caveats=_study_caveats(connection),
            knobs={trial_id: knobs for trial_id, _, knobs in read_knobs(connection)},
            phase_details=_phase_details(connection, finished),
            marks=_marks(connection, finished),
        )
    finally:
        connection.execute("ROLLBACK")


def read_study(connection: sqlite3.Connection) -> StudyRow:
    """Return the only row of table ``study``; planned rounds are counted from the trials."""
    cursor = connection.execute("SELECT * FROM study")
    names = [column[0] for column in cursor.description]
    row = cursor.fetchone()
    if row is None:
        raise CellError("table study has no row")
    values = dict(zip(names, row, strict=True))
    rounds = connection.execute("SELECT coalesce(max(round), 0) FROM trial").fetchone()[0]
    values.pop("caveats_json")
    metric, metric_of = _asked(values["spec_toml"])
    lists = {
        name: read_json(values.pop(f"{name}_json"), "study", values["study_id"], f"{name}_json")
        for name in ("factors", "settings", "workloads")
    }
    return StudyRow(**lists, rounds_planned=rounds, metric=metric, metric_of=metric_of, **values)


def _asked(spec_toml: str) -> tuple[str | None, str | None]:
    """Metric that the study asks for, and whose; a study of an older program may be unreadable."""
    try:
        asked = tomllib.loads(spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None, None
    metric, metric_of = asked.get("metric"), asked.get("metric_of")
    if not isinstance(metric, str | None) or not isinstance(metric_of, str | None):
        raise CellError("table study, row 1, column spec_toml: metric or metric_of is no text")
    return metric, metric_of


def read_knobs(
    connection: sqlite3.Connection,
) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    """Id, levels and knobs as read back of the finished trials of the first round."""
    rows = connection.execute(
        "SELECT record_id, trial_id, levels_json, record_zlib FROM record "
        "JOIN trial USING (trial_id) WHERE status = 'ok' AND round = 1 ORDER BY trial.ordinal"
    )
    return [
        (
            trial_id,
            read_json(levels, "trial", trial_id, "levels_json"),
            unpack_record(record, record_id).get("knobs") or {},
        )
        for record_id, trial_id, levels, record in rows
    ]


def _is_imported(connection: sqlite3.Connection) -> bool:
    """Whether trials are rows of a table, of which nobody knows when and how they were run."""
    return connection.execute("SELECT kind FROM study").fetchone()[0] == "imported"


def _trials(connection: sqlite3.Connection) -> tuple[list[TrialRow], dict[int, TrialRow]]:
    """Trials in planned order, and those that finished by record."""
    texts = _Texts()
    trials: dict[str, TrialRow] = {}
    for trial_id, ordinal, round_number, position, workload, levels in connection.execute(
        "SELECT trial_id, ordinal, round, position, workload, levels_json FROM trial "
        "ORDER BY ordinal"
    ):
        chosen = texts.read(levels, "trial", trial_id, "levels_json")
        trials[trial_id] = TrialRow(
            trial_id, ordinal, round_number, position, sys.intern(workload), chosen, None
        )
    finished: dict[int, TrialRow] = {}
    is_imported = _is_imported(connection)
    for record_id, trial_id, status, started, elapsed, error, caveats in connection.execute(
        "SELECT record_id, trial_id, status, started_at_unix_ns, elapsed_ns, error, caveats_json "
        "FROM record ORDER BY record_id"
    ):
        if trial_id not in trials:
            raise CellError(f"table record, row {record_id}: there is no trial {trial_id!r}")
        trials[trial_id] = replace(
            trials[trial_id],
            status=sys.intern(status),
            started_at_unix_ns=None if is_imported else started,
            elapsed_ns=None if is_imported else elapsed,
            error=error,
            caveats=texts.caveats(caveats, "record", record_id),
        )
        if status == "ok":
            finished[record_id] = trials[trial_id]
    return list(trials.values()), finished


_Phase = tuple[int, float | None, tuple[Caveat, ...]]
"""Place inside its record, cache share, caveats."""


def _measurements(
    connection: sqlite3.Connection, finished: dict[int, TrialRow]
) -> list[Measurement]:
    """Measurements in the order of trials, phases and names of metrics."""
    is_direct = dict(connection.execute("SELECT trial_id, is_direct FROM trial"))
    is_imported = _is_imported(connection)
    phases = _phases(connection, finished)
    found = list[Measurement]()
    here = list[tuple[int, Measurement]]()
    record = -1
    phase: _Phase | None = None
    operation, trial, direct = "", None, None
    for record_id, name, metric, value in connection.execute(
        "SELECT record_id, operation, metric, value FROM measurement "
        "ORDER BY record_id, operation, metric"
    ):
        if record_id != record or name != operation:
            if record_id != record:
                here.sort(key=_place)
                found += [m for _, m in here]
                here.clear()
            record, operation = record_id, sys.intern(name)
            trial, phase = finished.get(record_id), phases.get((record_id, name))
            # Streams of the C library are never direct, whatever their trial asked for.
            direct = None
            if trial is not None and not is_imported:
                direct = bool(is_direct[trial.trial_id]) and name not in STREAM_TESTS
        if trial is None or phase is None:
            continue
        m = Measurement(
            trial.trial_id,
            trial.ordinal,
            trial.round,
            trial.position,
            trial.workload,
            trial.levels,
            operation,
            sys.intern(metric),
            value,
            direct,
            phase[1],
            phase[2],
        )
        here.append((phase[0], m))
    here.sort(key=_place)
    found += [m for _, m in here]
    if any(a.ordinal > b.ordinal for a, b in pairwise(finished.values())):
        found.sort(key=lambda row: row.ordinal)
    return found


def _place(item: tuple[int, Measurement]) -> int:
    return item[0]


def _phases(
    connection: sqlite3.Connection, finished: dict[int, TrialRow]
) -> dict[tuple[int, str], _Phase]:
    texts = _Texts()
    return {
        (record_id, sys.intern(operation)): (
            ordinal,
            cache_share,
            texts.caveats(caveats, "phase", f"{record_id} {operation}"),
        )
        for record_id, operation, ordinal, cache_share, caveats in connection.execute(
            "SELECT record_id, operation, ordinal, cache_share, caveats_json FROM phase"
        )
        if record_id in finished
    }


def _series(connection: sqlite3.Connection, finished: dict[int, TrialRow]) -> list[SeriesRow]:
    columns = ("ops_json", "bytes_json", "latency_ns_max_json")
    rows = connection.execute(
        f"SELECT record_id, operation, interval_ns, {', '.join(columns)} "
        f"FROM series WHERE record_id IN ({_FINISHED}) ORDER BY record_id, operation"
    )
    return [
        SeriesRow(
            finished[record_id].trial_id,
            sys.intern(operation),
            interval_ns,
            *(
                _packed(read_json(text, "series", f"{record_id} {operation}", column))
                for text, column in zip(texts, columns, strict=True)
            ),
        )
        for record_id, operation, interval_ns, *texts in rows
    ]


def _packed(values: list[int]) -> Sequence[int]:
    """Whole numbers in an eighth of the memory, as far as they have 63 bits."""
    try:
        return array("q", values)
    except OverflowError:
        return tuple(values)


def _marks(connection: sqlite3.Connection, finished: dict[int, TrialRow]) -> list[ChangeMark]:
    """Marks of the finished trials; records are opened only if the study has changes."""
    spec = connection.execute("SELECT spec_toml FROM study").fetchone()[0]
    if "[[workloads.changes]]" not in spec:
        return []
    rows = connection.execute(
        f"SELECT record_id, record_zlib FROM record WHERE record_id IN ({_FINISHED}) "
        "ORDER BY record_id"
    )
    return [
        ChangeMark(
            trial_id=finished[record_id].trial_id,
            asked_ns=int(mark["asked_ns"]),
            began_ns=int(mark["began_ns"]),
            done_ns=int(mark["done_ns"]),
            knob=str(mark["knob"]),
            before=mark["from"],
            after=mark["to"],
        )
        for record_id, record in rows
        for phase in unpack_record(record, record_id).get("phases") or []
        for mark in phase.get("marks") or []
    ]


def _facts(
    connection: sqlite3.Connection, finished: dict[int, TrialRow]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Facts equal in all finished trials, and those that changed or were missing in some."""
    known: dict[str, tuple[str, str]] = {
        digest: (name, value)
        for digest, name, value in connection.execute("SELECT digest, name, value FROM fact")
    }
    # Most trials see what the first one saw: only differences are kept.
    usual: set[str] | None = None
    changed: list[tuple[str, set[str], set[str]]] = []
    for record_id, digests in zip(sorted(finished), _digests(connection), strict=True):
        if usual is None:
            usual = digests
        if digests != usual:
            changed.append((finished[record_id].trial_id, digests - usual, usual - digests))
    usual = usual or set()
    sometimes = set[str]().union(*(missing for _, _, missing in changed))
    constant = dict(sorted(known[d] for d in usual - sometimes if d in known))
    differences = {trial_id: (more, missing) for trial_id, more, missing in changed}
    varying: dict[str, dict[str, str]] = {}
    for record_id in sorted(finished):
        trial_id = finished[record_id].trial_id
        more, missing = differences.get(trial_id, (set[str](), set[str]()))
        for digest in (sometimes - missing) | more:
            if digest in known:
                name, value = known[digest]
                varying.setdefault(name, {})[trial_id] = value
    return constant, dict(sorted(varying.items()))


def _digests(connection: sqlite3.Connection) -> Iterator[set[str]]:
    """Digests of the facts of every finished trial, in the order of records; maybe none."""
    for (joined,) in connection.execute(
        f"SELECT (SELECT group_concat(digest) FROM record_fact WHERE record_fact.record_id ="
        f" done.record_id) FROM ({_FINISHED}) AS done ORDER BY done.record_id"
    ):
        yield set(joined.split(",")) if joined else set()


def _study_caveats(connection: sqlite3.Connection) -> tuple[Caveat, ...]:
    found = list[Caveat]()
    for table in ("study", "session"):
        for row, text in connection.execute(
            f"SELECT {table}_id, caveats_json FROM {table} ORDER BY {table}_id"
        ):
            found += parse_caveats(text, table, row)
    return tuple(dict.fromkeys(found))


def _phase_details(
    connection: sqlite3.Connection, finished: dict[int, TrialRow]
) -> list[dict[str, Any]]:
    names = (
        "io_size_bytes",
        "harness_ns_per_op",
        "cpu_user_ns",
        "cpu_system_ns",
        "elapsed_ns",
        "device_read_bytes",
        "device_write_bytes",
        "device_flushed_write_bytes",
        "depth_reached_mean",
    )
    rows = connection.execute(
        f"SELECT record_id, operation, workers_json, {', '.join(names)} FROM phase "
        f"WHERE record_id IN ({_FINISHED}) ORDER BY record_id, ordinal"
    )
    return [
        {
            "trial_id": finished[record_id].trial_id,
            "operation": sys.intern(operation),
            **dict(zip(names, values, strict=True)),
            "workers": [
                {sys.intern(name): value for name, value in worker.items()}
                for worker in read_json(
                    workers, "phase", f"{record_id} {operation}", "workers_json"
                )
            ],
        }
        for record_id, operation, workers, *values in rows
    ]


def parse_caveats(text: str, table: str, row: object) -> tuple[Caveat, ...]:
    """Caveats of a JSON column."""
    return tuple(Caveat(**item) for item in read_json(text, table, row, "caveats_json"))
