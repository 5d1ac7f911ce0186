-- Runs that a server keeps for clients that nobody here asked for have a limit.

ALTER TABLE run ADD COLUMN stranger INTEGER NOT NULL DEFAULT 0; -- 1 for such a run
ALTER TABLE run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;    -- of its log; counted from this format on

CREATE INDEX run_of_stranger ON run (number) WHERE stranger = 1;
