"""From the tables of a study to the rows that are judged and drawn."""

from __future__ import annotations

import gc
import sqlite3
import sys
import tomllib
from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypedDict, cast

from iolab.frozen import replace
from iolab.store import digests
from iolab.store.bulk import lists, whole_numbers
from iolab.store.cells import (
    INTERVAL_NS_MAX,
    SLICES_MAX,
    CellError,
    check_trial_id,
    is_list_of_texts,
    read_json,
    understood,
    unpack_record,
)
from iolab.store.facts import read as read_facts
from iolab.store.natures import has_natures, unknown_natures
from iolab.store.rows import (
    Caveat,
    ChangeMark,
    Measurement,
    Nature,
    PhaseDetail,
    SeriesRow,
    StudyData,
    StudyRow,
    TrialRow,
)
from iolab.store.slices import read_slices
from iolab.study.operations import ACCESSES, KINDS
from iolab.study.validity import ADJACENT, PAIRS

if TYPE_CHECKING:
    from iolab.protocol import Record

_READ_BACK_MAX: Final = 64 << 20
"""Characters of what was read back in the first round: some 2 KiB for each of 30,000 trials."""
_TOGETHER: Final = 2000
"""Rows whose JSON cells are read together."""
_FINISHED = "SELECT record_id FROM record WHERE status = 'ok'"


@dataclass(slots=True)
class _Texts:
    """JSON texts that many rows share, read once: what comes out is one object for all of them."""

    known: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def levels(self, text: str, table: str, row: object) -> dict[str, str]:
        """Levels of column ``levels_json``."""
        value = self.known.get(text)
        if value is None:
            value = read_json(text, table, row, "levels_json")
            self.known[text] = value
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
        trials, finished = _trials(connection, study)
        facts, varying = _facts(connection, finished)
        natures = unknown_natures(connection)
        first_round = read_first_round(connection)
        return StudyData(
            study=study,
            trials=trials,
            measurements=_measurements(connection, finished, natures),
            series=_series(connection, finished),
            facts=facts,
            varying_facts=varying,
            caveats=_study_caveats(connection),
            knobs={it.trial_id: it.knobs for it in first_round},
            file_systems={it.trial_id: it.parameters for it in first_round},
            phase_details=_phase_details(connection, finished, natures),
            marks=_marks(connection, finished),
            looks=_looks(connection),
            slices=read_slices(connection) if study.is_in_slices else [],
        )
    finally:
        connection.execute("ROLLBACK")


def _looks(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Return the rounds that were complete when sessions before the last one ended.

    A session that ended inside a round was interrupted, and decided nothing.
    """
    last = connection.execute("SELECT max(session_id) FROM record").fetchone()[0]
    first = connection.execute("SELECT min(session_id) FROM record").fetchone()[0]
    if last is None or first == last:
        return ()
    planned = dict(connection.execute("SELECT round, count(*) FROM trial GROUP BY round"))
    rows = connection.execute(
        "SELECT session_id, round, count(DISTINCT trial_id) FROM record JOIN trial USING (trial_id)"
        " GROUP BY session_id, round ORDER BY session_id"
    ).fetchall()
    done: dict[int, int] = {}
    found: dict[int, int] = {}
    for session, number, count in rows:
        done[number] = done.get(number, 0) + count
        most = max(done)
        is_whole = all(done.get(r, 0) >= planned[r] for r in range(1, most + 1))
        found[session] = most if is_whole else 0
    return tuple(sorted({n for session, n in found.items() if session < last and n}))


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
    asked = _asked(values["spec_toml"])
    lists = {
        name: read_json(values.pop(f"{name}_json"), "study", values["study_id"], f"{name}_json")
        for name in ("factors", "settings", "workloads")
    }
    return _without_unvaried(StudyRow(**lists, **asked, rounds_planned=rounds, **values))


def _without_unvaried(study: StudyRow) -> StudyRow:
    """The study without the factor that older programs gave to those that compare nothing.

    Its only level is one that everything was held at. Tables compare what their user named.
    """
    if study.kind == "imported" or not study.factors or study.is_comparison:
        return study
    held = {name: levels[0] for name, levels in study.factors.items()}
    return replace(
        study, factors={}, compared_factor="", baseline="", settings=study.settings | held
    )


class _Asked(TypedDict, total=False):
    """Fields of a study that only its file says."""

    metric: str | None
    metric_of: str | None
    command: tuple[str, ...]
    is_in_slices: bool
    is_adjacent: bool


def _asked(spec_toml: str) -> _Asked:
    """Values that only the study's file holds; that of an older program may be unreadable."""
    try:
        asked = tomllib.loads(spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    metric, metric_of = asked.get("metric"), asked.get("metric_of")
    if not isinstance(metric, str | None) or not isinstance(metric_of, str | None):
        raise CellError("table study, row 1, column spec_toml: metric or metric_of is no text")
    command = asked.get("command", [])
    words = cast("list[object]", command) if isinstance(command, list) else [command]
    if command is not words or not all(isinstance(word, str) for word in words):
        raise CellError("table study, row 1, column spec_toml: command is no list of words")
    if words:
        _check_dialect(words[0])
    looks, rounds = asked.get("looks", 1), asked.get("rounds", 1)
    if "looks" in asked and (type(looks) is not int or type(rounds) is not int):
        raise CellError("table study, row 1, column spec_toml: looks or rounds is no number")
    design = asked.get("design")
    if not isinstance(design, str | None):
        raise CellError("table study, row 1, column spec_toml: design is no text")
    return {
        "metric": metric,
        "metric_of": metric_of,
        "command": tuple(cast("list[str]", words)),
        "is_in_slices": design == PAIRS,
        "is_adjacent": design == ADJACENT,
    }


def _check_dialect(name: object) -> None:
    """Refuse a command line of a program that no study can stand for."""
    from iolab.study.dialects import find_dialect

    try:
        find_dialect(name)
    except ValueError as error:
        raise CellError(f"table study, row 1, column spec_toml: command: {error}") from None


class ReadBack(NamedTuple):
    """Values that were read back before a trial."""

    trial_id: str
    levels: dict[str, str]
    knobs: dict[str, str]
    parameters: list[str]
    """Of the file system that was made; empty if none was, or nothing is known of it."""

    @classmethod
    def of(cls, trial_id: str, levels: dict[str, str], record: Record) -> Self:
        """Of a record, which an older agent may have made."""
        stack = record.get("stack")
        parameters = (stack.get("parameters") if stack else None) or []
        if not is_list_of_texts(parameters):
            raise TypeError("the parameters of the file system are no list of texts")
        return cls(trial_id, levels, record.get("knobs") or {}, parameters)


def read_first_round(connection: sqlite3.Connection) -> list[ReadBack]:
    """Values that were read back before the finished trials of the first round."""
    rows = connection.execute(
        "SELECT record_id, trial_id, levels_json, record_zlib FROM record "
        "JOIN trial USING (trial_id) WHERE status = 'ok' AND round = 1 ORDER BY trial.ordinal"
    )
    found, kept = list[ReadBack](), 0
    for record_id, trial_id, levels, packed in rows:
        record = unpack_record(packed, record_id)
        with understood(record_id):
            one = ReadBack.of(trial_id, read_json(levels, "trial", trial_id, "levels_json"), record)
        found.append(one)
        kept += sum(map(len, (*one.knobs, *one.knobs.values(), *one.parameters)))
        if kept > _READ_BACK_MAX:
            raise CellError(
                f"table record, row {record_id}: the knobs and parameters of the first round have "
                f"more than {_READ_BACK_MAX} characters, which no machine has"
            )
    return found


def _is_imported(connection: sqlite3.Connection) -> bool:
    """Tell whether trials are rows of a table, of which nobody knows when and how they were run."""
    return connection.execute("SELECT kind FROM study").fetchone()[0] == "imported"


def _trials(
    connection: sqlite3.Connection, study: StudyRow
) -> tuple[list[TrialRow], dict[int, TrialRow]]:
    """Trials in planned order, and those that finished by record."""
    texts, nothing = _Texts(), dict[str, str]()
    planned: dict[str, _Planned] = {}
    for trial_id, ordinal, round_number, position, workload, levels in connection.execute(
        "SELECT trial_id, ordinal, round, position, workload, levels_json FROM trial "
        "ORDER BY ordinal"
    ):
        check_trial_id(trial_id, "trial", ordinal)
        chosen = texts.levels(levels, "trial", trial_id)
        if not study.factors and study.kind != "imported":
            chosen = nothing
        planned[trial_id] = ordinal, round_number, position, sys.intern(workload), chosen
    tried: dict[str, TrialRow] = {}
    finished: dict[int, TrialRow] = {}
    is_imported = _is_imported(connection)
    for record_id, trial_id, status, started, elapsed, error, caveats in connection.execute(
        "SELECT record_id, trial_id, status, started_at_unix_ns, elapsed_ns, error, caveats_json "
        "FROM record ORDER BY record_id"
    ):
        plan = planned.get(trial_id)
        if plan is None:
            raise CellError(f"table record, row {record_id}: there is no trial {trial_id!r}")
        trial = tried[trial_id] = TrialRow(
            trial_id,
            *plan,
            status,
            None if is_imported else started,
            None if is_imported else elapsed,
            error,
            texts.caveats(caveats, "record", record_id),
        )
        if status == "ok":
            finished[record_id] = trial
    trials = [
        tried.get(trial_id) or TrialRow(trial_id, *plan, None) for trial_id, plan in planned.items()
    ]
    return trials, finished


_Planned = tuple[int, int, int, str, dict[str, str]]
"""Ordinal, round, position, workload and levels of a trial."""

_Phase = tuple[int, float | None, tuple[Caveat, ...], bool | None]
"""Place inside its record, cache share, caveats, whether its operations are direct."""


def _measurements(
    connection: sqlite3.Connection,
    finished: dict[int, TrialRow],
    natures: dict[tuple[int, str], Nature],
) -> list[Measurement]:
    """Measurements in the order of trials, phases and names of metrics."""
    phases = _phases(connection, finished, natures)
    found = list[Measurement]()
    here: dict[int, list[Measurement]] = {}
    record, operation = -1, ""
    trial: TrialRow | None = None
    shared: tuple[Any, ...] = ()
    own: list[Measurement] | None = None
    for record_id, name, metric, value in connection.execute(
        "SELECT record_id, operation, metric, value FROM measurement "
        "ORDER BY record_id, operation, metric"
    ):
        if record_id != record or name != operation:
            if record_id != record:
                _append_in_order(found, here)
            record, operation, own = record_id, sys.intern(name), None
            trial, phase = finished.get(record_id), phases.get((record_id, name))
            if trial is not None and phase is not None:
                own = here.setdefault(phase[0], [])
                shared = phase[3], phase[1], phase[2]
        if trial is None or own is None:
            continue
        own.append(
            Measurement(
                trial.trial_id,
                trial.ordinal,
                trial.round,
                trial.position,
                trial.workload,
                trial.levels,
                operation,
                sys.intern(metric),
                value,
                *shared,
            )
        )
    _append_in_order(found, here)
    if any(a.ordinal > b.ordinal for a, b in pairwise(finished.values())):
        found.sort(key=lambda row: row.ordinal)
    return found


def _append_in_order(found: list[Measurement], here: dict[int, list[Measurement]]) -> None:
    """Add the measurements of a record by the place of their phase in it."""
    for place in sorted(here):
        found += here[place]
    here.clear()


def _phases(
    connection: sqlite3.Connection,
    finished: dict[int, TrialRow],
    natures: dict[tuple[int, str], Nature],
) -> dict[tuple[int, str], _Phase]:
    texts = _Texts()
    access = "access" if has_natures(connection) else "NULL"
    found: dict[tuple[int, str], _Phase] = {}
    for record_id, operation, ordinal, cache_share, caveats, way in connection.execute(
        f"SELECT record_id, operation, ordinal, cache_share, caveats_json, {access} FROM phase"
    ):
        if record_id not in finished:
            continue
        known = natures.get((record_id, operation))
        gone = known.access if known is not None else way
        found[record_id, sys.intern(operation)] = (
            ordinal,
            cache_share,
            texts.caveats(caveats, "phase", f"{record_id} {operation}"),
            None if gone is None else gone == "direct",
        )
    return found


def _series(connection: sqlite3.Connection, finished: dict[int, TrialRow]) -> list[SeriesRow]:
    columns = ("ops_json", "bytes_json", "latency_ns_max_json")
    cursor = connection.execute(
        f"SELECT record_id, operation, interval_ns, {', '.join(columns)} "
        f"FROM series WHERE record_id IN ({_FINISHED}) ORDER BY record_id, operation"
    )
    found: list[SeriesRow] = []
    while rows := cursor.fetchmany(_TOGETHER):
        places, operations, intervals, *texts = zip(*rows, strict=True)
        values = [
            whole_numbers(cells) or _one_by_one(cells, column, places, operations)
            for cells, column in zip(texts, columns, strict=True)
        ]
        names = [finished[record_id].trial_id for record_id in places]
        for row in zip(places, operations, intervals, *values, strict=True):
            _check_series(*row)
        found += map(SeriesRow, names, map(sys.intern, operations), intervals, *values)
    return found


def _check_series(record: int, operation: str, interval_ns: int, *columns: Sequence[int]) -> None:
    """Refuse a series that no trial has: what is drawn and tested of it grows with its length."""
    lengths = set(map(len, columns))
    if len(lengths) > 1 or max(lengths) > SLICES_MAX or not 0 < interval_ns < INTERVAL_NS_MAX:
        raise CellError(
            f"table series, row {record} {operation}: {max(lengths)} slices of {interval_ns} ns"
            f"{'' if len(lengths) == 1 else ', and not as many of each column'} are no series"
        )


def _one_by_one(
    texts: Sequence[str], column: str, places: Sequence[int], operations: Sequence[str]
) -> list[Sequence[int]]:
    return [
        _packed(read_json(text, "series", f"{record_id} {operation}", column))
        for text, record_id, operation in zip(texts, places, operations, strict=True)
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
    found = list[ChangeMark]()
    for record_id, packed in rows:
        record = unpack_record(packed, record_id)
        with understood(record_id):
            found += _marks_of(finished[record_id].trial_id, record)
    return found


def _marks_of(trial_id: str, record: Record) -> Iterator[ChangeMark]:
    for phase in record.get("phases") or []:
        for mark in phase.get("marks") or []:
            yield ChangeMark(
                trial_id=trial_id,
                asked_ns=int(mark["asked_ns"]),
                began_ns=int(mark["began_ns"]),
                done_ns=int(mark["done_ns"]),
                knob=str(mark["knob"]),
                before=mark["from"],
                after=mark["to"],
            )


def _facts(
    connection: sqlite3.Connection, finished: dict[int, TrialRow]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Facts equal in all finished trials, and those that changed or were missing in some."""
    known: dict[str, tuple[str, str]] = {
        digest: (name, value)
        for digest, name, value in connection.execute("SELECT digest, name, value FROM fact")
    }
    # Most trials see what the first one saw: only differences are kept.
    usual: frozenset[str] | None = None
    changed: list[tuple[str, frozenset[str], frozenset[str]]] = []
    nothing = frozenset[str]()
    without = set(finished)
    for record_id, seen in read_facts(connection):
        if record_id not in finished:
            continue
        without.discard(record_id)
        if usual is None:
            usual = seen
        if seen != usual:
            changed.append((finished[record_id].trial_id, seen - usual, usual - seen))
    usual = usual or nothing
    changed += [(finished[record_id].trial_id, nothing, usual) for record_id in without]
    sometimes = nothing.union(*(missing for _, _, missing in changed))
    constant = dict(sorted(known[d] for d in usual - sometimes if d in known))
    differences = {trial_id: (more, missing) for trial_id, more, missing in changed}
    varying: dict[str, dict[str, str]] = {}
    for record_id in sorted(finished):
        trial_id = finished[record_id].trial_id
        more, missing = differences.get(trial_id, (nothing, nothing))
        for digest in (sometimes - missing) | more:
            if digest in known:
                name, value = known[digest]
                varying.setdefault(name, {})[trial_id] = value
    return constant, dict(sorted(varying.items()))


def _study_caveats(connection: sqlite3.Connection) -> tuple[Caveat, ...]:
    found = list[Caveat]()
    for table in ("study", "session"):
        for row, text in connection.execute(
            f"SELECT {table}_id, caveats_json FROM {table} ORDER BY {table}_id"
        ):
            found += parse_caveats(text, table, row)
    return tuple(dict.fromkeys([*found, *_caveats_of_digests(connection)]))


def _caveats_of_digests(connection: sqlite3.Connection) -> list[Caveat]:
    """Caveats of a study that an older program stored, or began."""
    if connection.execute("PRAGMA user_version").fetchone()[0] < digests.FIRST_VERSION:
        return [
            Caveat(
                "no_digests",
                "this study was stored by an iolab that made no digests: a change in its file "
                "would not be noticed",
                "keep an archive of it (`iolab archive`), whose checksums show later changes",
            )
        ]
    n_later = digests.made_later(connection)
    if not n_later:
        return []
    return [
        Caveat(
            "digests_made_later",
            f"{n_later} records have digests that were made when the study was continued, not when "
            "they were stored: an earlier change in its file would not be noticed",
            "nothing, if the file was always on a disk that you trust",
        )
    ]


def _phase_details(
    connection: sqlite3.Connection,
    finished: dict[int, TrialRow],
    natures: dict[tuple[int, str], Nature],
) -> list[PhaseDetail]:
    own_columns = ("kind", "access", "io_size_bytes")
    names = (
        "harness_ns_per_op",
        "cpu_user_ns",
        "cpu_system_ns",
        "elapsed_ns",
        "device_read_bytes",
        "device_write_bytes",
        "device_flushed_write_bytes",
        "depth_reached_mean",
    )
    columns = own_columns if has_natures(connection) else ("NULL", "NULL", "io_size_bytes")
    cursor = connection.execute(
        f"SELECT record_id, operation, {', '.join((*columns, *names))}, workers_json FROM phase "
        f"WHERE record_id IN ({_FINISHED}) ORDER BY record_id, ordinal"
    )
    keys = ("trial_id", "operation", "nature", *names, "workers")
    found = list[PhaseDetail]()
    while rows := cursor.fetchmany(_TOGETHER):
        texts = [row[-1] for row in rows]
        workers = lists(texts, "workers_json") or [
            read_json(row[-1], "phase", f"{row[0]} {row[1]}", "workers_json") for row in rows
        ]
        for row, own in zip(rows, workers, strict=True):
            nature = natures.get((row[0], row[1])) or Nature(*row[2:5])
            _check_nature(row[0], row[1], nature)
            values = (finished[row[0]].trial_id, sys.intern(row[1]), nature, *row[5:-1], own)
            found.append(cast("PhaseDetail", dict(zip(keys, values, strict=True))))
    return found


def _check_nature(record: int, operation: str, nature: Nature) -> None:
    """Refuse words that no study of ours holds."""
    words = (("kind", nature.kind, KINDS), ("access", nature.access, ACCESSES))
    for column, word, known in words:
        if word is not None and word not in known:
            raise CellError(f"table phase, row {record} {operation}, column {column}: {word!r}")


def parse_caveats(text: str, table: str, row: object) -> tuple[Caveat, ...]:
    """Caveats of a JSON column."""
    return tuple(Caveat(**item) for item in read_json(text, table, row, "caveats_json"))
