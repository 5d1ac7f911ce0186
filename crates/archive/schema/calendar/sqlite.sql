-- Format 1 of the calendar of a fleet. Times are milliseconds since 1970, spans are nanoseconds.

CREATE TABLE fleet_calendar (
    format INTEGER NOT NULL                     -- number of the last migration
);

CREATE TABLE fleet_inventory (
    number  INTEGER PRIMARY KEY CHECK (number = 1),
    applied INTEGER NOT NULL,
    content TEXT NOT NULL                       -- JSON
);

CREATE TABLE fleet_resource (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,              -- kind and name: host.a
    kind     TEXT NOT NULL,
    capacity INTEGER NOT NULL,
    longest  INTEGER NOT NULL DEFAULT 0         -- the longest reservation that it ever had, milliseconds
);

CREATE TABLE fleet_schedule (
    name     TEXT PRIMARY KEY,
    mesh     TEXT,
    paused   INTEGER NOT NULL DEFAULT 0,
    next_due INTEGER,
    content  TEXT NOT NULL                      -- JSON
) WITHOUT ROWID;

CREATE INDEX fleet_schedule_due ON fleet_schedule (next_due, name) WHERE paused = 0;

CREATE TABLE fleet_spec (
    number  INTEGER PRIMARY KEY,
    content TEXT NOT NULL UNIQUE                -- JSON
);

CREATE TABLE fleet_run (
    id        TEXT PRIMARY KEY,                 -- also of the run in the archive
    schedule  TEXT NOT NULL,
    mesh      TEXT,
    from_host TEXT NOT NULL,
    to_host   TEXT NOT NULL,
    spec      INTEGER NOT NULL REFERENCES fleet_spec (number),
    confirms  TEXT NOT NULL,             -- the run that it confirms, or nothing
    due       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    latest    INTEGER NOT NULL,
    starts    INTEGER NOT NULL,
    ends      INTEGER NOT NULL,
    set_up    INTEGER NOT NULL,
    settle    INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    state     TEXT NOT NULL,
    reason    TEXT NOT NULL DEFAULT '',
    epoch     INTEGER NOT NULL,
    begun     INTEGER,
    ended     INTEGER,
    result    TEXT,                             -- JSON
    to_judge  INTEGER NOT NULL DEFAULT 0,       -- 1 from its end until a coordinator has looked for alarms
    UNIQUE (schedule, due, attempt, confirms)
) WITHOUT ROWID;

CREATE INDEX fleet_run_state ON fleet_run (state, starts);
CREATE INDEX fleet_run_pair ON fleet_run (from_host, to_host, starts);
CREATE INDEX fleet_run_to_judge ON fleet_run (ended) WHERE to_judge = 1;

CREATE TABLE fleet_reservation (
    run        TEXT NOT NULL REFERENCES fleet_run (id) ON DELETE CASCADE,
    resource   INTEGER NOT NULL REFERENCES fleet_resource (number),
    first_unit INTEGER NOT NULL,
    last_unit  INTEGER NOT NULL,
    starts     INTEGER NOT NULL,
    ends       INTEGER NOT NULL,
    active     INTEGER NOT NULL DEFAULT 1,      -- 0 once its run has ended
    PRIMARY KEY (run, resource)
) WITHOUT ROWID;

CREATE INDEX fleet_reservation_busy ON fleet_reservation (resource, starts) WHERE active = 1;

-- The last guard against double bookings, as the exclusion constraint in PostgreSQL. Of those that start before, only
-- as many are looked at as the longest reservation allows.
CREATE TRIGGER fleet_reservation_once BEFORE INSERT ON fleet_reservation WHEN NEW.active = 1
BEGIN
    UPDATE fleet_resource SET longest = NEW.ends - NEW.starts
    WHERE number = NEW.resource AND longest < NEW.ends - NEW.starts;
    SELECT RAISE(ABORT, 'fleet_reservation_once') FROM fleet_reservation AS other
    WHERE other.active = 1 AND other.resource = NEW.resource AND other.ends > NEW.starts
      AND other.starts > NEW.starts - (SELECT longest FROM fleet_resource WHERE number = NEW.resource)
      AND other.starts < NEW.ends AND other.first_unit <= NEW.last_unit AND other.last_unit >= NEW.first_unit;
END;

CREATE TRIGGER fleet_reservation_still_once BEFORE UPDATE ON fleet_reservation WHEN NEW.active = 1
BEGIN
    UPDATE fleet_resource SET longest = NEW.ends - NEW.starts
    WHERE number = NEW.resource AND longest < NEW.ends - NEW.starts;
    SELECT RAISE(ABORT, 'fleet_reservation_once') FROM fleet_reservation AS other
    WHERE other.active = 1 AND other.resource = NEW.resource AND other.ends > NEW.starts AND other.run <> NEW.run
      AND other.starts > NEW.starts - (SELECT longest FROM fleet_resource WHERE number = NEW.resource)
      AND other.starts < NEW.ends AND other.first_unit <= NEW.last_unit AND other.last_unit >= NEW.first_unit;
END;

CREATE TABLE fleet_lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch  INTEGER NOT NULL,                    -- rises with each change of the holder
    until  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE fleet_alarm (
    number     INTEGER PRIMARY KEY,
    schedule   TEXT NOT NULL,
    mesh       TEXT,
    from_host  TEXT NOT NULL,
    to_host    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    since      INTEGER NOT NULL,
    raised     INTEGER NOT NULL,
    cleared    INTEGER,
    text       TEXT NOT NULL,
    first_run  TEXT NOT NULL,
    second_run TEXT NOT NULL
);

CREATE UNIQUE INDEX fleet_alarm_open ON fleet_alarm (schedule, kind) WHERE cleared IS NULL;

INSERT INTO fleet_calendar VALUES (1);
