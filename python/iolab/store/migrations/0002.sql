-- A study may also be imported from a table. SQLite cannot change a CHECK in place.
CREATE TABLE study_2 (
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
INSERT INTO study_2 SELECT * FROM study;
DROP TABLE study;
ALTER TABLE study_2 RENAME TO study;
