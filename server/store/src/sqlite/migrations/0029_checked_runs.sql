-- Each run of keys names the row behind which it begins and has a checksum, as chunks have. Older runs are not used:
-- their keys are read from the chunks, and the next purge writes the runs again.
DROP TABLE key_runs;
CREATE TABLE key_runs (
    up_to    INTEGER PRIMARY KEY,
    after    INTEGER NOT NULL,
    checksum BLOB NOT NULL
) STRICT;
