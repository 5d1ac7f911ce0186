-- Format 1 of the calendar of a fleet. Times are milliseconds since 1970, spans are nanoseconds.

CREATE TABLE fleet_calendar (
    format BIGINT NOT NULL                      -- number of the last migration
);

CREATE TABLE fleet_inventory (
    number  BIGINT PRIMARY KEY CHECK (number = 1),
    applied BIGINT NOT NULL,
    content TEXT NOT NULL                       -- JSON
);

CREATE TABLE fleet_resource (
    number   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     TEXT COLLATE "C" NOT NULL UNIQUE,  -- kind and name: host.a
    kind     TEXT COLLATE "C" NOT NULL,
    capacity BIGINT NOT NULL,
    longest  BIGINT NOT NULL DEFAULT 0          -- the longest reservation that it ever had, milliseconds
);

CREATE TABLE fleet_schedule (
    name     TEXT COLLATE "C" PRIMARY KEY,
    mesh     TEXT COLLATE "C",
    paused   BIGINT NOT NULL DEFAULT 0,
    next_due BIGINT,
    content  TEXT NOT NULL                      -- JSON
);

CREATE INDEX fleet_schedule_due ON fleet_schedule (next_due, name) WHERE paused = 0;

CREATE TABLE fleet_spec (
    number  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content TEXT COLLATE "C" NOT NULL UNIQUE    -- JSON
);

CREATE TABLE fleet_run (
    id        TEXT COLLATE "C" PRIMARY KEY,     -- also of the run in the archive
    schedule  TEXT COLLATE "C" NOT NULL,
    mesh      TEXT COLLATE "C",
    from_host TEXT COLLATE "C" NOT NULL,
    to_host   TEXT COLLATE "C" NOT NULL,
    spec      BIGINT NOT NULL REFERENCES fleet_spec (number),
    confirms  TEXT COLLATE "C" NOT NULL,     -- the run that it confirms, or nothing
    due       BIGINT NOT NULL,
    attempt   BIGINT NOT NULL,
    latest    BIGINT NOT NULL,
    starts    BIGINT NOT NULL,
    ends      BIGINT NOT NULL,
    set_up    BIGINT NOT NULL,
    settle    BIGINT NOT NULL,
    priority  BIGINT NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    reason    TEXT NOT NULL DEFAULT '',
    epoch     BIGINT NOT NULL,
    begun     BIGINT,
    ended     BIGINT,
    result    TEXT,                             -- JSON
    to_judge  BIGINT NOT NULL DEFAULT 0,        -- 1 from its end until a coordinator has looked for alarms
    UNIQUE (schedule, due, attempt, confirms)
);

CREATE INDEX fleet_run_state ON fleet_run (state, starts);
CREATE INDEX fleet_run_pair ON fleet_run (from_host, to_host, starts);
CREATE INDEX fleet_run_to_judge ON fleet_run (ended) WHERE to_judge = 1;

-- The exclusion constraint is the last guard against double bookings: a reservation is a rectangle of units and time, and
-- no two have a point in common. Rectangles need no extension, and are much faster than ranges. Each resource has a
-- million units of its own. They are closed and compared with a tolerance of 10^-6, so one ends half a millisecond before
-- the next begins.
CREATE TABLE fleet_reservation (
    run        TEXT COLLATE "C" NOT NULL REFERENCES fleet_run (id) ON DELETE CASCADE,
    resource   BIGINT NOT NULL REFERENCES fleet_resource (number),
    first_unit BIGINT NOT NULL,
    last_unit  BIGINT NOT NULL CHECK (last_unit < 1000000),
    starts     BIGINT NOT NULL,
    ends       BIGINT NOT NULL,
    active     BIGINT NOT NULL DEFAULT 1,       -- 0 once its run has ended
    PRIMARY KEY (run, resource),
    CONSTRAINT fleet_reservation_once EXCLUDE USING gist (
        box(point(resource * 1000000 + first_unit, starts), point(resource * 1000000 + last_unit, ends - 0.5)) WITH &&
    ) WHERE (active = 1)
);

CREATE INDEX fleet_reservation_busy ON fleet_reservation (resource, starts) WHERE active = 1;

CREATE FUNCTION fleet_reservation_length() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fleet_resource SET longest = added.length
    FROM (SELECT resource, max(ends - starts) AS length FROM reservation GROUP BY resource) AS added
    WHERE number = added.resource AND longest < added.length;
    RETURN NULL;
END $$;

CREATE TRIGGER fleet_reservation_length AFTER INSERT ON fleet_reservation
REFERENCING NEW TABLE AS reservation FOR EACH STATEMENT EXECUTE FUNCTION fleet_reservation_length();

CREATE TABLE fleet_lease (
    name   TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    epoch  BIGINT NOT NULL,                     -- rises with each change of the holder
    until  BIGINT NOT NULL
);

CREATE TABLE fleet_alarm (
    number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule   TEXT COLLATE "C" NOT NULL,
    mesh       TEXT COLLATE "C",
    from_host  TEXT COLLATE "C" NOT NULL,
    to_host    TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    since      BIGINT NOT NULL,
    raised     BIGINT NOT NULL,
    cleared    BIGINT,
    text       TEXT NOT NULL,
    first_run  TEXT COLLATE "C" NOT NULL,
    second_run TEXT COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX fleet_alarm_open ON fleet_alarm (schedule, kind) WHERE cleared IS NULL;

INSERT INTO fleet_calendar VALUES (1);
