-- The log is the ground state. Everything under "derived" can be dropped and rebuilt from it.

CREATE TABLE run (
    number      INTEGER PRIMARY KEY,            -- order of arrival
    id          TEXT NOT NULL UNIQUE,
    started_at  TEXT,                           -- RFC 3339; NULL when the beginning of the log is lost
    target      TEXT,
    world       TEXT,
    linerate    TEXT,
    outcome     TEXT,                           -- NULL while it runs, and for ever when it was killed
    event_count INTEGER NOT NULL DEFAULT 0,
    derived_at  INTEGER NOT NULL DEFAULT 0      -- event_count when the derived rows were last rebuilt
) STRICT;

CREATE TABLE event (
    run   INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    host  INTEGER NOT NULL,
    body  TEXT NOT NULL,                        -- JSON, format linerate.event/1
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

-- Derived.

CREATE TABLE flow (
    run         INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    flow        INTEGER NOT NULL,
    name        TEXT NOT NULL,
    direction   TEXT NOT NULL,
    transport   TEXT NOT NULL,
    bitrate_bps REAL,                           -- at the receiver; NULL when none was measured
    cause       TEXT,
    PRIMARY KEY (run, flow)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary (
    run       INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    flow      INTEGER NOT NULL,
    side      TEXT NOT NULL,
    metric    TEXT NOT NULL,
    statistic TEXT NOT NULL,
    value     REAL NOT NULL,
    PRIMARY KEY (run, flow, side, metric, statistic)
) STRICT, WITHOUT ROWID;

CREATE INDEX summary_by_metric ON summary (metric, statistic);
