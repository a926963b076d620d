-- The secrets that a key had before its present one: each opens the same key until its time is over.
CREATE TABLE api_key_old_secrets (
    id    INTEGER PRIMARY KEY,
    key   INTEGER NOT NULL,
    hash  BLOB NOT NULL UNIQUE,
    until INTEGER NOT NULL
) STRICT;

CREATE INDEX api_key_old_secrets_key ON api_key_old_secrets (key, id);

-- Higher with every write of any key, so that one look tells a server which keys it must read again.
ALTER TABLE api_keys ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX api_keys_changed ON api_keys (changed);

ALTER TABLE carrier_keys ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX carrier_keys_changed ON carrier_keys (changed);
