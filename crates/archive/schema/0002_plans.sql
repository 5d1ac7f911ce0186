-- A plan that is carried out is a run with a log of its own, and each of its trials makes runs that are parts of it.

ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'test';   -- 'test' or 'plan'; the target of a plan is its name
ALTER TABLE run ADD COLUMN part_of TEXT;                        -- id of the plan's run; NULL for a run of its own

CREATE INDEX run_by_plan ON run (part_of) WHERE part_of IS NOT NULL;
