-- The operator's tokens for the admin API. The token itself is nowhere; there is only a keyed hash of it.
CREATE TABLE admin_tokens (
    id         INTEGER PRIMARY KEY,
    public_id  TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    last4      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
