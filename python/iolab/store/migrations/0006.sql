-- What each record saw of the machine, in one row instead of one per fact: a set of facts that most
-- records share, stored once, and those beside it. `iolab.store.facts` then takes over the rows of
-- record_fact and makes the view that has them still; the digests of the records are made again,
-- since their rows are others.
CREATE TABLE fact_set (
    digest             TEXT PRIMARY KEY,
    facts_json         TEXT NOT NULL
) STRICT;

CREATE TABLE record_facts (
    record_id          INTEGER PRIMARY KEY REFERENCES record,
    fact_set           TEXT NOT NULL REFERENCES fact_set,
    more_json          TEXT NOT NULL
) STRICT;
