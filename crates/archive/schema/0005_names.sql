-- Names that users give to runs. Repeats of one configuration may share a name.

ALTER TABLE run ADD COLUMN name TEXT;

CREATE INDEX run_by_name ON run (name) WHERE name IS NOT NULL;
