-- Format 2 of the calendar of a fleet: agents that carry out a calendar by themselves.

CREATE TABLE fleet_agent (
    name        TEXT PRIMARY KEY,            -- the host
    key         TEXT NOT NULL UNIQUE,        -- its public key
    enrolled    INTEGER NOT NULL,
    revoked     INTEGER,
    session     TEXT NOT NULL DEFAULT '',    -- of its present process
    seen        INTEGER,
    program     TEXT NOT NULL DEFAULT '',       -- its version of the program
    note        TEXT NOT NULL DEFAULT '',       -- why it takes no further runs, or is refused
    waiting     INTEGER NOT NULL DEFAULT 0,         -- results that the calendar does not have yet
    version     INTEGER NOT NULL DEFAULT 0,         -- of the calendar that was handed out to it last
    until       INTEGER NOT NULL DEFAULT 0,         -- when that calendar ends
    acked       INTEGER NOT NULL DEFAULT 0,         -- the version that it has confirmed
    lease_until INTEGER NOT NULL DEFAULT 0,         -- when every calendar has ended that it may still have
    changed     INTEGER NOT NULL DEFAULT 1,         -- 1 if it needs another version
    renew       INTEGER NOT NULL DEFAULT 0,         -- when it gets another version at the latest
    lost        INTEGER NOT NULL DEFAULT 0          -- until when it may have a calendar that this database knows nothing of
);

ALTER TABLE fleet_run ADD COLUMN handed INTEGER NOT NULL DEFAULT 0;  -- 1 once it was in a calendar that was handed out
ALTER TABLE fleet_run ADD COLUMN held INTEGER;      -- the version of its agent's calendar that may still have it
ALTER TABLE fleet_run ADD COLUMN free INTEGER;      -- when it is over even for an agent that hears nothing
ALTER TABLE fleet_run ADD COLUMN other_uses INTEGER NOT NULL DEFAULT 0;  -- 1 if another description booked what is held

CREATE INDEX fleet_run_held ON fleet_run (free) WHERE held IS NOT NULL;

ALTER TABLE fleet_schedule ADD COLUMN from_host TEXT NOT NULL DEFAULT '';
UPDATE fleet_schedule SET from_host = json_extract(content, '$.from');

ALTER TABLE fleet_lease ADD COLUMN timeline TEXT NOT NULL DEFAULT '';  -- of the database, when its holder last wrote
ALTER TABLE fleet_lease ADD COLUMN calm INTEGER NOT NULL DEFAULT 0;  -- until then something lost may be on the wire

-- Parts of results that have not all arrived.
CREATE TABLE fleet_result_part (
    run     TEXT NOT NULL,
    part    INTEGER NOT NULL,
    agent   TEXT NOT NULL,
    arrived INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run, part)
);

UPDATE fleet_calendar SET format = 2;
