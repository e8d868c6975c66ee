"""The database of one study: one writer, append-only records, readable by others meanwhile.

SQLite in write-ahead mode with full synchronisation: a record that was committed survives a kill
and a power cut. A record is written after its trial and before the next; :meth:`Store.quiet` marks
the trial itself, and every attempt to write inside it is an error, because the store may lie on the
device under test.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, Self

from iolab.errors import DamageError, RefusedError, StoreError
from iolab.frozen import frozen
from iolab.store import digests, facts, long_form, schema
from iolab.store.cells import pack_record, unpack_record
from iolab.store.contents import Contents
from iolab.store.derived import DerivedRecord, PhaseRow, SeriesPart
from iolab.store.lock import Stored, WriterLock, noted
from iolab.store.log import LOG, side_file, side_files, size_of
from iolab.store.opening import connect, connect_read_only, log_kept, lost_records, snapshot
from iolab.store.owner import (
    give_to_user,
    make_directories,
    refuse_distrusted,
    remove_directories,
)
from iolab.store.rows import Caveat, Kind, StudyData, StudyRow, TrialStatus
from iolab.store.shape import check_version, problems_of_shape
from iolab.store.store_errors import PUT_BACK, errors_named, errors_of_making
from iolab.store.thorough import problems_of_all
from iolab.study.factors import FACTORS
from iolab.study.plan import Plan, Trial
from iolab.study.render import spec_toml
from iolab.visible import visible_line

if TYPE_CHECKING:
    from iolab.protocol import Record
    from iolab.store.from_records import FromRecords

STORE_NAME: Final = "study.db"
SHARD_KEY: Final = "shard"
"""Key of a session's testbed: the part of the study that it ran, as in ``2/4``."""
HOST_KEY: Final = "over_ssh"
"""Key of a session's testbed: the host that ran it over ssh, by name, and its clock."""
_DAMAGES_SHOWN: Final = 3


@frozen
class Origin:
    """Origin of a study: what made it, on which testbed, with which doubts."""

    iolab_version: str
    testbed: str
    """Canonical text, as in ``loop:1g``."""
    kind: Kind = "real"
    caveats: tuple[Caveat, ...] = ()


class Store:
    """An open study database; a context manager that closes it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._made: list[Path] = []
        """Directories that were made for it."""
        self._is_quiet = False

    # Opening and closing.

    @classmethod
    def create(cls, path: Path, plan: Plan, origin: Origin) -> Self:
        """Make a new database for `plan`.

        Raises
        ------
        StoreError : there is one already, or it cannot be made.
        """
        try:
            made = make_directories(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path.parent} cannot be made: {error.strerror}", "choose another --out"
            ) from None
        lock = _lock(path)  # First, so that who comes second is told who was first.
        if os.path.lexists(path):
            lock.release()
            raise StoreError(
                f"{path} exists already",
                f"`iolab report {quote(str(path.parent))}` shows it; choose another --out",
            )
        try:
            _refuse_leftovers(path)
        except RefusedError:
            lock.release()
            raise
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            with errors_of_making(path):
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
                _write_draft(draft, plan, origin)
                draft.rename(path)  # A study is either whole or not there.
                give_to_user(path)
                store = cls._opened(path, lock)
                store._made = made
                return store
        except BaseException:
            _remove(draft)
            _remove(path)
            lock.remove()
            remove_directories(made)
            raise

    @classmethod
    def open_writer(cls, path: Path) -> Self:
        """Open an existing study to continue it.

        Raises
        ------
        StoreError : it is missing, not a study, or being written by somebody else.
        """
        _require(path)
        if not os.access(path, os.W_OK):
            raise StoreError(
                f"{path} may only be read", "resume it as its owner, on a disk that can be written"
            )
        if path.is_symlink():
            raise RefusedError(
                f"{path} is a symbolic link: nothing is written through it",
                "name the directory that it points into",
            )
        refuse_distrusted(path.parent)
        lock = _lock(path)
        try:
            version = cls._check_whole(path)
            store = cls._opened(path, lock)
            with store._writing():  # Also where there is nothing to migrate: can it be written?
                if version < schema.SCHEMA_VERSION:
                    schema.migrate(store._connection, version)
            return store
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open_reader(cls, path: Path, *, is_checked: bool = True) -> Self:
        """Open a study to read it, also while another process writes it.

        Raises
        ------
        DamageError : a part of it is not as it was stored; names it. `is_checked` says whether
            that is looked for; who does not ask for it does so himself.
        """
        _require(path)
        if path.is_symlink():  # SQLite's own files lie beside the file, not beside the link.
            path = path.resolve()
        with errors_named(path):
            before = _refuse_lost(path)
            store = cls(path, connect_read_only(path), None)
            try:
                store._check(before, is_thorough=is_checked)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def _check_whole(cls, path: Path) -> int:
        """Schema version of a study of which nothing is lost; looks before anything can change.

        The caller has the writer's lock.
        """
        with errors_named(path):
            before = _refuse_lost(path)
            with cls(path, connect_read_only(path), None) as store:
                return store._check(before, is_thorough=True)

    def _check(self, before: Stored | None, *, is_thorough: bool) -> int:
        """Schema version of a study that has the shape of one and, if asked, nothing damaged.

        `before` is what its last writer noted.
        """
        connection = self._connection
        version = check_version(connection, str(self.path))
        with snapshot(connection):
            self._refuse_found(problems_of_shape(connection, version))
            if is_thorough:  # Relies on the shape.
                has_digests = version >= digests.FIRST_VERSION
                for found in problems_of_all(self.path, connection, has_digests=has_digests):
                    self._refuse_found(found)
            self._refuse_missing(before)
        return version

    def _refuse_found(self, problems: Iterable[str]) -> None:
        """Refuse a study in which faults were found."""
        found = list(islice(problems, _DAMAGES_SHOWN + 1))
        if found:
            more = " ..." if len(found) > _DAMAGES_SHOWN else ""
            told = visible_line("; ".join(found[:_DAMAGES_SHOWN]))
            raise DamageError(f"{self.path} is damaged: {told}{more}", PUT_BACK)

    def _refuse_missing(self, before: Stored | None) -> None:
        """Refuse a study that holds less than its last writer stored: its log is gone, or cut."""
        missing = _stored(self._connection).lacks(before) if before is not None else ""
        if missing:
            log, lock = (self.path.name + suffix for suffix in (LOG, ".lock"))
            raise DamageError(
                f"{self.path} is damaged: {lock} says that more was stored: {missing}; they were "
                f"in {log}",
                f"put {log} back beside it, or a newer copy; to go on without them remove {lock}",
            )

    @classmethod
    def _opened(cls, path: Path, lock: WriterLock) -> Self:
        with errors_named(path):
            connection = connect(path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        give_to_user(*side_files(path))
        return cls(path, connection, lock)

    def close(self) -> None:
        """Close the database and let another writer in."""
        if self._lock is None:
            with log_kept(self.path):
                self._connection.close()
            return
        self._connection.close()
        self._lock.release()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    # Writing.

    @contextmanager
    def whole_or_gone(self) -> Generator[None, None, None]:
        """Remove the study that was just made, with its directories, if the block fails."""
        try:
            yield
        except BaseException:
            self._connection.close()
            _remove(self.path)
            if self._lock is not None:
                self._lock.remove()
            remove_directories(self._made)
            raise

    @contextmanager
    def quiet(self) -> Generator[None, None, None]:
        """Mark a running trial: nothing may be written until the block ends."""
        self._is_quiet = True
        try:
            yield
        finally:
            self._is_quiet = False

    def begin_session(
        self,
        run_id: str,
        *,
        iolab_version: str,
        testbed: Mapping[str, object],
        caveats: Sequence[Caveat] = (),
    ) -> int:
        """Note that a campaign starts or continues; `testbed` is the agent's own description."""
        with self._writing() as connection:
            cursor = connection.execute(
                "INSERT INTO session (run_id, started_at_unix_ns, iolab_version, testbed_json, "
                "caveats_json) VALUES (?, ?, ?, ?, ?)",
                (run_id, time.time_ns(), iolab_version, _json(dict(testbed)), _caveats(caveats)),
            )
            session_id = int(cursor.lastrowid or 0)
            digests.store_digests(connection, "session", session_id)
            return session_id

    def add_trials(self, trials: Iterable[Trial]) -> None:
        """Note planned trials; those that are known already stay as they are."""
        rows = [
            (
                trial.trial_id,
                trial.ordinal,
                trial.round,
                trial.position,
                trial.workload,
                _json(dict(trial.levels)),
                trial.seed,
                trial.treatment.is_direct,
            )
            for trial in trials
        ]
        with self._writing() as connection:
            known = {row[0] for row in connection.execute("SELECT trial_id FROM trial")}
            connection.executemany(
                "INSERT INTO trial (trial_id, ordinal, round, position, workload, levels_json, "
                "seed, is_direct) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [row for row in rows if row[0] not in known],
            )
            digests.store_digests(connection, "round")

    def commit_record(self, trial_id: str, session_id: int, derived: DerivedRecord) -> None:
        """Append one record and everything derived from it, all or nothing.

        Raises
        ------
        StoreError : the disk is full, or the trial has a finished record already.
        """
        packed = pack_record(_json(derived.record or derived.source), trial_id)
        with self._writing() as connection:
            cursor = connection.execute(
                "INSERT INTO record (trial_id, session_id, status, started_at_unix_ns, elapsed_ns,"
                " error, caveats_json, record_zlib) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    trial_id,
                    session_id,
                    derived.status,
                    derived.started_at_unix_ns,
                    derived.elapsed_ns,
                    derived.error,
                    _caveats(derived.caveats),
                    packed,
                ),
            )
            record_id = int(cursor.lastrowid or 0)
            for ordinal, phase in enumerate(derived.phases):
                _insert_phase(connection, record_id, ordinal, phase)
            for part in derived.series:
                _insert_series(connection, record_id, part)
            facts.insert(connection, record_id, derived.facts)
            digests.store_digests(connection, "record", record_id)

    # Reading.

    @property
    def study(self) -> StudyRow:
        """The question that this database answers."""
        with errors_named(self.path):
            from iolab.store.read import read_study

            return read_study(self._connection)

    def finished_trials(self) -> dict[str, TrialStatus]:
        """Status of every trial that was tried: ok if it ever finished, else the last one."""
        statuses: dict[str, TrialStatus] = {}
        with errors_named(self.path):
            for trial_id, status in self._connection.execute(
                "SELECT trial_id, status FROM record ORDER BY record_id"
            ):
                if statuses.get(trial_id) != "ok":
                    statuses[trial_id] = status
        return statuses

    def elapsed_ns(self) -> int:
        """Time spent in all trials so far, whatever became of them."""
        with errors_named(self.path):
            row = self._connection.execute("SELECT total(elapsed_ns) FROM record").fetchone()
        return int(row[0])

    def times_ns(self) -> dict[str, int]:
        """Duration of every finished trial."""
        with errors_named(self.path):
            return dict(
                self._connection.execute(
                    "SELECT trial_id, elapsed_ns FROM record WHERE status = 'ok'"
                )
            )

    def cache_shares(self) -> dict[str, float]:
        """Mean share of the bytes of each operation that never reached a device, where known."""
        with errors_named(self.path):
            return dict(
                self._connection.execute(
                    "SELECT operation, avg(cache_share) FROM phase JOIN record USING (record_id) "
                    "WHERE status = 'ok' AND cache_share IS NOT NULL "
                    "GROUP BY operation ORDER BY min(record_id), min(ordinal)"
                )
            )

    def record(self, trial_id: str) -> Record:
        """Whole record of the last attempt at a trial, as the agent sent it."""
        with errors_named(self.path):
            row = self._connection.execute(
                "SELECT record_zlib, record_id FROM record WHERE trial_id = ? "
                "ORDER BY record_id DESC LIMIT 1",
                (trial_id,),
            ).fetchone()
            if row is None:
                raise StoreError(f"{self.path} holds no record of {trial_id}", "see `iolab report`")
            return unpack_record(*row)

    def knobs(self) -> list[tuple[dict[str, str], dict[str, str]]]:
        """Levels and knobs as read back of the finished trials of the first round."""
        with errors_named(self.path):
            from iolab.store.read import read_first_round

            return [(it.levels, it.knobs) for it in read_first_round(self._connection)]

    def fact_values(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Every value of some facts in the finished trials, in the order of first appearance."""
        with errors_named(self.path):
            return {name: facts.values_of(self._connection, name) for name in names}

    def shard_texts(self) -> list[str]:
        """Part of the study that each session ran, as in ``2/4``; empty texts are all of it."""
        return self._session_texts(f"$.{SHARD_KEY}")

    def host_names(self) -> list[str]:
        """Host over ssh that ran each session; empty texts are the machine of the store."""
        return self._session_texts(f"$.{HOST_KEY}.name")

    def _session_texts(self, path: str) -> list[str]:
        """A text in the description of each session's testbed, empty where there is none."""
        with errors_named(self.path):
            rows = self._connection.execute(
                "SELECT coalesce(json_extract(testbed_json, ?), '') FROM session "
                "ORDER BY session_id",
                (path,),
            )
            return [str(text) for (text,) in rows]

    @property
    def contents(self) -> Contents:
        """Contents that an archive and an export need beside the rows."""
        return Contents(self.path, self._connection)

    def load_data(self) -> StudyData:
        """Everything stored, ready to be judged and drawn."""
        _read_ahead(self.path)
        with errors_named(self.path):
            from iolab.store.read import load_study_data

            return load_study_data(self._connection)

    def load_records(self) -> FromRecords:
        """Rows out of whole records, for who draws them; opening records takes a while."""
        with errors_named(self.path):
            from iolab.store.from_records import read_records

            return read_records(self._connection)

    def note_measuring(self, process: int | None) -> None:
        """Write down which other process measures, so that who continues waits for its end."""
        if self._lock is not None and process is not None:
            self._lock.note_measuring(process)

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection, None, None]:
        if self._lock is None:
            raise AssertionError("this store was opened for reading")
        if self._is_quiet:
            raise AssertionError("nothing may be written to the store during a trial")
        with errors_named(self.path):
            with _transaction(self._connection):
                yield self._connection
            self._lock.note(_stored(self._connection))


def new_study_id() -> str:
    """Identity of a study, unique without coordination."""
    return os.urandom(16).hex()


def _write_draft(draft: Path, plan: Plan, origin: Origin) -> None:
    """Write a whole study under a name that nobody reads, and let the disk have it once."""
    connection = connect(draft)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = WAL")  # It stays what the file says of itself.
    with _transaction(connection):
        schema.create_schema(connection)
        _insert_study(connection, plan, origin)
        long_form.create_view(connection)
    connection.close()
    fd = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _insert_study(connection: sqlite3.Connection, plan: Plan, origin: Origin) -> None:
    study = plan.study
    notes = [Caveat(note.code, note.message, note.hint) for note in plan.notes]
    connection.execute(
        f"INSERT INTO study VALUES ({', '.join('?' * 16)})",
        (
            new_study_id(),
            study.name,
            origin.kind,
            time.time_ns(),
            origin.iolab_version,
            plan.seed,
            study.margin,
            study.compared_factor,
            study.baseline,
            _json({factor.name: list(factor.levels) for factor in study.factors}),
            _json(_held_levels(plan)),
            _json([workload.name for workload in study.workloads]),
            origin.testbed,
            plan.digest,
            spec_toml(study),
            _caveats([*notes, *origin.caveats]),
        ),
    )
    digests.store_digests(connection, "study", 0)


def _held_levels(plan: Plan) -> dict[str, str]:
    """Levels that every treatment shares, defaults included, in the order of the factor table."""
    order = [definition.name for definition in FACTORS]
    first, *others = (treatment.effective for treatment in plan.treatments)
    varied = {factor.name for factor in plan.study.factors}
    shared = {
        name: level
        for name, level in first.items()
        if name not in varied and all(other.get(name, level) == level for other in others)
    }
    return {name: shared[name] for name in order if name in shared}


def _insert_phase(
    connection: sqlite3.Connection, record_id: int, ordinal: int, phase: PhaseRow
) -> None:
    connection.execute(
        f"INSERT INTO phase VALUES ({', '.join('?' * 17)})",
        (
            record_id,
            phase.operation,
            ordinal,
            phase.nature.io_size_bytes,
            phase.elapsed_ns,
            phase.cache_share,
            phase.harness_ns_per_op,
            phase.cpu_user_ns,
            phase.cpu_system_ns,
            phase.device_read_bytes,
            phase.device_write_bytes,
            phase.device_flushed_write_bytes,
            phase.depth_reached_mean,
            _json(phase.workers),
            _caveats(phase.caveats),
            phase.nature.kind,
            phase.nature.access,
        ),
    )
    connection.executemany(
        "INSERT INTO measurement VALUES (?, ?, ?, ?)",
        [(record_id, phase.operation, metric, value) for metric, value in phase.metrics.items()],
    )


def _insert_series(connection: sqlite3.Connection, record_id: int, part: SeriesPart) -> None:
    connection.execute(
        "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)",
        (
            record_id,
            part.operation,
            part.interval_ns,
            _json(part.ops),
            _json(part.bytes),
            _json(part.latency_ns_max),
        ),
    )


def _require(path: Path) -> None:
    if not path.is_file():
        raise StoreError(
            f"there is no study in {path.parent} (no {path.name})",
            "name the directory that --out made",
        )


def _lock(path: Path) -> WriterLock:
    try:
        return WriterLock(path).acquire()
    except OSError as error:
        raise StoreError(
            f"{path} cannot be locked: {error.strerror}", "choose another --out"
        ) from None


def _remove(path: Path) -> None:
    for file in (path, *side_files(path)):
        file.unlink(missing_ok=True)


def _refuse_leftovers(path: Path) -> None:
    """Refuse to begin a study beside side files of one that is gone; empty ones are removed.

    Raises
    ------
    RefusedError : one may hold records.
    """
    for stale in side_files(path):
        if size_of(stale):
            raise RefusedError(
                f"{stale} is there, and no {path.name}: it may hold records of a study",
                f"put {path.name} back beside it, move it away, or choose another --out",
            )
        stale.unlink(missing_ok=True)


def _refuse_lost(path: Path) -> Stored | None:
    """Refuse a study of whose log SQLite would leave something out; what was noted of its size.

    The last write of a log may be torn by a power cut: then the note decides whether it was ever
    finished, once the study is open.

    Raises
    ------
    DamageError : finished writes are lost.
    """
    before = noted(path)  # Before the study is looked at: it may grow meanwhile.
    if path.stat().st_size == 0:
        raise DamageError(f"{path} is damaged: it is empty", PUT_BACK)
    lost = lost_records(path)
    if lost is not None and lost.commits > (1 if before is not None else 0):
        log = side_file(path, LOG)
        raise DamageError(
            f"{log} is damaged: {lost.what}, and the newest records of the study are in it",
            f"nothing was changed; {PUT_BACK}",
        )
    return before


def _stored(connection: sqlite3.Connection) -> Stored:
    """Number of stored rows; each number is found at the end of an index."""
    row = connection.execute(
        "SELECT (SELECT study_id FROM study), (SELECT max(session_id) FROM session), "
        "(SELECT max(ordinal) FROM trial), (SELECT max(record_id) FROM record)"
    ).fetchone()
    return Stored(str(row[0]), *(int(number or 0) for number in row[1:]))


def _read_ahead(path: Path) -> None:
    """Let the kernel read the file in its order; tables asked for one by one lie scattered."""
    with suppress(OSError), path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _caveats(caveats: Sequence[Caveat]) -> str:
    return _json([asdict(caveat) for caveat in caveats])
