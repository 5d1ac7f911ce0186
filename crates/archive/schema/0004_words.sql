-- The words of version 2 of the event format. The log itself stays as it was written: it is upgraded when it is read.

ALTER TABLE run RENAME COLUMN stranger TO foreign_client; -- 1 for a run that a client of another tool asked a server for

DROP INDEX run_of_stranger;
CREATE INDEX run_of_foreign_client ON run (number) WHERE foreign_client = 1;

UPDATE flow SET cause = 'lag' WHERE cause = 'trunk';
