-- Format 3 of the calendar of a fleet: specifications of any length. SQLite has no limit that matters, so what is unique
-- stays as it is, and the number of the format is the same in both databases.

UPDATE fleet_calendar SET format = 3;
