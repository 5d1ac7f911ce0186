-- The log of a run is kept in parts: compressed stretches of events with consecutive numbers. The events of earlier
-- formats become parts before these statements are carried out.

CREATE TABLE log_part (
    run       INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    content   BLOB NOT NULL,                    -- zstd of lines with time, host and body, see part.rs
    PRIMARY KEY (run, first_seq)
) STRICT;

ALTER TABLE run ADD COLUMN small_parts INTEGER NOT NULL DEFAULT 0; -- parts added since they were last merged

-- What users say about a run afterwards. It is not derived from the log.
CREATE TABLE tag (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (run, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_by_tag ON tag (tag, run);
CREATE INDEX run_by_target ON run (target, number);
CREATE INDEX run_by_start ON run (started_at);
CREATE INDEX flow_by_cause ON flow (cause, run) WHERE cause IS NOT NULL;
