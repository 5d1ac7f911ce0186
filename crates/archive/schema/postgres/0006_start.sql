-- Format 6, the first one of archives in PostgreSQL. It has the tables and columns of format 6 in SQLite.

CREATE TABLE linerate_archive (
    format BIGINT NOT NULL                      -- number of the last migration
);

CREATE TABLE run (
    number         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             TEXT COLLATE "C" NOT NULL UNIQUE,
    started_at     TEXT COLLATE "C",
    target         TEXT COLLATE "C",
    world          TEXT COLLATE "C",
    linerate       TEXT COLLATE "C",
    outcome        TEXT COLLATE "C",
    event_count    BIGINT NOT NULL DEFAULT 0,
    derived_at     BIGINT NOT NULL DEFAULT 0,
    kind           TEXT COLLATE "C" NOT NULL DEFAULT 'test',
    part_of        TEXT COLLATE "C",
    foreign_client BIGINT NOT NULL DEFAULT 0,
    bytes          BIGINT NOT NULL DEFAULT 0,
    name           TEXT COLLATE "C",
    small_parts    BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE log_part (
    run       BIGINT NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    content   BYTEA NOT NULL,
    PRIMARY KEY (run, first_seq)
);

-- The content is compressed already.
ALTER TABLE log_part ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE flow (
    run         BIGINT NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    flow        BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    direction   TEXT COLLATE "C" NOT NULL,
    transport   TEXT COLLATE "C" NOT NULL,
    bitrate_bps DOUBLE PRECISION,
    cause       TEXT COLLATE "C",
    PRIMARY KEY (run, flow)
);

CREATE TABLE tag (
    run BIGINT NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    tag TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, tag)
);

CREATE INDEX run_by_plan ON run (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX run_of_foreign_client ON run (number) WHERE foreign_client = 1;
CREATE INDEX run_by_name ON run (name) WHERE name IS NOT NULL;
CREATE INDEX run_by_tag ON tag (tag, run);
CREATE INDEX run_by_target ON run (target, number);
CREATE INDEX run_by_start ON run (started_at);
CREATE INDEX flow_by_cause ON flow (cause, run) WHERE cause IS NOT NULL;
