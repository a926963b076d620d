-- The last day (since 1970 began, UTC) on which a key was used.
CREATE TABLE key_uses (
    api_key INTEGER PRIMARY KEY,
    day     INTEGER NOT NULL
) STRICT;
