-- A server's connections share an advisory lock, and the outcome of a COMMIT whose answer was cut off is found by who repeats
-- the write. The table stays, so that programs of before know the database for ours, and no server of theirs
-- writes: a copy would not notice it.
DELETE FROM writers;
ALTER TABLE writers ADD CONSTRAINT writers_no_more CHECK (false);
