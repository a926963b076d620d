-- A key's row is found by a map in memory: no order pays for a random page of an index of keys.
DROP INDEX idempotency_key;

-- What the map is filled from, without a read of the bodies: a few hundred rows at a time, the last of which is
-- `up_to`; for each 5 bytes of its key and 8 of its id. Some of the rows may be gone.
CREATE TABLE key_chunks (
    up_to INTEGER PRIMARY KEY,
    keys  BLOB NOT NULL
) STRICT;

-- The oldest keys, sorted, once there are too many for memory: runs that are whole, each by its last row, and the
-- rows of all runs.
CREATE TABLE key_runs (
    up_to INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE run_keys (
    run INTEGER NOT NULL,
    key BLOB NOT NULL,
    id  INTEGER NOT NULL,
    PRIMARY KEY (run, key, id)
) STRICT, WITHOUT ROWID;

-- The highest id of a record that was deleted from the end of the table: none is given twice, lest a row that the
-- map knows by one key is another's.
CREATE TABLE last_record (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id   INTEGER NOT NULL
) STRICT;

INSERT INTO last_record (only, id)
SELECT 1, coalesce((SELECT max(idempotency) FROM resets), 0);

CREATE TRIGGER idempotency_gone AFTER DELETE ON idempotency
WHEN OLD.id > (SELECT coalesce(max(id), 0) FROM idempotency) BEGIN
    UPDATE last_record SET id = max(id, OLD.id);
END;
