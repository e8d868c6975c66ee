-- Schema of a study's database, version 2. One file holds one study. What came later is in
-- `migrations/`, which a new study runs through, too.
-- Everything is append-only: the triggers at the end refuse UPDATE, DELETE and REPLACE.
-- `record.record_zlib` is the whole record as the agent sent it (zlib-compressed JSON); the tables
-- measurement, phase, series and record_fact (a view since step 6) are derived from it for those who
-- query with SQL.

CREATE TABLE study (
    study_id           TEXT PRIMARY KEY,
    name               TEXT NOT NULL,
    kind               TEXT NOT NULL CHECK (kind IN ('real', 'simulated', 'imported')),
    created_at_unix_ns INTEGER NOT NULL,
    iolab_version      TEXT NOT NULL,
    seed               INTEGER NOT NULL,
    margin             REAL NOT NULL,
    compared_factor    TEXT NOT NULL,
    baseline           TEXT NOT NULL,
    factors_json       TEXT NOT NULL,
    settings_json      TEXT NOT NULL,
    workloads_json     TEXT NOT NULL,
    testbed            TEXT NOT NULL,
    plan_digest        TEXT NOT NULL,
    spec_toml          TEXT NOT NULL,
    caveats_json       TEXT NOT NULL
) STRICT;

-- One row per start of the campaign: the first run and every resumption.
CREATE TABLE session (
    session_id         INTEGER PRIMARY KEY,
    run_id             TEXT NOT NULL,
    started_at_unix_ns INTEGER NOT NULL,
    iolab_version      TEXT NOT NULL,
    testbed_json       TEXT NOT NULL,
    caveats_json       TEXT NOT NULL
) STRICT;

-- Planned trials, whole rounds at a time.
CREATE TABLE trial (
    trial_id           TEXT PRIMARY KEY,
    ordinal            INTEGER NOT NULL UNIQUE,
    round              INTEGER NOT NULL,
    position           INTEGER NOT NULL,
    workload           TEXT NOT NULL,
    levels_json        TEXT NOT NULL,
    seed               INTEGER NOT NULL,
    is_direct          INTEGER NOT NULL CHECK (is_direct IN (0, 1)),
    UNIQUE (round, position)
) STRICT;

-- What a trial left behind. A trial that failed or was interrupted may be tried again.
CREATE TABLE record (
    record_id          INTEGER PRIMARY KEY,
    trial_id           TEXT NOT NULL REFERENCES trial,
    session_id         INTEGER NOT NULL REFERENCES session,
    status             TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'interrupted')),
    started_at_unix_ns INTEGER NOT NULL,
    elapsed_ns         INTEGER NOT NULL,
    error              TEXT,
    caveats_json       TEXT NOT NULL,
    record_zlib        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_finished_once ON record (trial_id) WHERE status = 'ok';

CREATE TABLE phase (
    record_id                  INTEGER NOT NULL REFERENCES record,
    operation                  TEXT NOT NULL,
    ordinal                    INTEGER NOT NULL,
    io_size_bytes              INTEGER,
    elapsed_ns                 INTEGER,
    cache_share                REAL,
    harness_ns_per_op          REAL,
    cpu_user_ns                INTEGER,
    cpu_system_ns              INTEGER,
    device_read_bytes          INTEGER,
    device_write_bytes         INTEGER,
    device_flushed_write_bytes INTEGER,
    depth_reached_mean         REAL,
    workers_json               TEXT NOT NULL,
    caveats_json               TEXT NOT NULL,
    PRIMARY KEY (record_id, operation)
) STRICT, WITHOUT ROWID;

CREATE TABLE measurement (
    record_id          INTEGER NOT NULL REFERENCES record,
    operation          TEXT NOT NULL,
    metric             TEXT NOT NULL,
    value              REAL NOT NULL,
    PRIMARY KEY (record_id, operation, metric),
    FOREIGN KEY (record_id, operation) REFERENCES phase
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
    record_id           INTEGER NOT NULL REFERENCES record,
    operation           TEXT NOT NULL,
    interval_ns         INTEGER NOT NULL,
    ops_json            TEXT NOT NULL,
    bytes_json          TEXT NOT NULL,
    latency_ns_max_json TEXT NOT NULL,
    PRIMARY KEY (record_id, operation)
) STRICT, WITHOUT ROWID;

-- A fact is stored once, however many trials saw the same value.
CREATE TABLE fact (
    digest             TEXT PRIMARY KEY,
    name               TEXT NOT NULL,
    value              TEXT NOT NULL
) STRICT;

CREATE TABLE record_fact (
    record_id          INTEGER NOT NULL REFERENCES record,
    digest             TEXT NOT NULL REFERENCES fact,
    PRIMARY KEY (record_id, digest)
) STRICT, WITHOUT ROWID;
