-- What the rows were when they were stored: BLAKE2b of each part, see `iolab.store.digests`.
-- `iolab.store.schema` then makes the digests of what is there, and they say that they were made later.
CREATE TABLE digest (
    part               TEXT NOT NULL CHECK (part IN ('study', 'session', 'round', 'record')),
    number             INTEGER NOT NULL,
    made               TEXT NOT NULL CHECK (made IN ('with_rows', 'later')),
    digest             BLOB NOT NULL,
    PRIMARY KEY (part, number)
) STRICT, WITHOUT ROWID;
