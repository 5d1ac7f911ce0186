-- A server stores runs of remote clients only up to a limit.

ALTER TABLE run ADD COLUMN stranger INTEGER NOT NULL DEFAULT 0; -- 1 for such a run
ALTER TABLE run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;    -- size of its log; 0 for runs of earlier formats

CREATE INDEX run_of_stranger ON run (number) WHERE stranger = 1;
