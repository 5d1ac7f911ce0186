-- Format 3 of the calendar of a fleet: specifications of any length. An entry of a B-tree has at most 2,704 bytes, and a
-- sweep of 2,000 message sizes has 18,000. A hash index has no such limit. It cannot be unique by itself, and an
-- exclusion constraint makes it so: of two specifications with one hash, the content is compared.

ALTER TABLE fleet_spec DROP CONSTRAINT fleet_spec_content_key;
ALTER TABLE fleet_spec ADD CONSTRAINT fleet_spec_once EXCLUDE USING hash (content WITH =);

UPDATE fleet_calendar SET format = 3;
