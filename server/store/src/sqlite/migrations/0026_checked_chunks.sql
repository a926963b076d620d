-- Each chunk of keys names the row behind which it begins and has a checksum, so that a start notices one that is damaged, in
-- another's place or gone, and reads the records instead. The first start after this reads all of them once.
DROP TABLE key_chunks;
CREATE TABLE key_chunks (
    up_to    INTEGER PRIMARY KEY,
    after    INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    keys     BLOB NOT NULL
) STRICT;
