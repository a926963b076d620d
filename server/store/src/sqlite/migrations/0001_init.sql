-- The database's own settings: the secret from which everything keyed is derived.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY,
    public_id  TEXT NOT NULL,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

-- tenant, here and below: twice the account, plus 1 in the sandbox.
CREATE TABLE api_keys (
    id         INTEGER PRIMARY KEY,
    public_id  TEXT NOT NULL UNIQUE,
    tenant     INTEGER NOT NULL,
    name       TEXT NOT NULL,
    countries  TEXT NOT NULL, -- '*' or 'EC,MX'
    ip_list    TEXT NOT NULL, -- networks with commas between them; '' is any address
    rate_limit INTEGER,
    hash       BLOB NOT NULL UNIQUE,
    last4      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- A parcel's first two events are implied by its row. The order stands last, so that a read
-- of the other columns does not walk through it.
CREATE TABLE parcels (
    id            INTEGER PRIMARY KEY,
    version       INTEGER NOT NULL,
    tenant        INTEGER NOT NULL,
    environment   INTEGER NOT NULL, -- tenant's, for the index
    number        TEXT NOT NULL COLLATE NOCASE, -- as it was given
    public_id     BLOB NOT NULL,
    state         INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    origin        TEXT NOT NULL,
    destination   TEXT NOT NULL,
    country       TEXT NOT NULL,
    promised_day  INTEGER NOT NULL,
    label_version INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    step_index    INTEGER,
    step_due      INTEGER,
    reprinted_at  INTEGER,
    order_json    TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX parcels_number ON parcels (environment, number);
CREATE INDEX parcels_due ON parcels (step_due) WHERE step_due IS NOT NULL;

-- Events after the first two.
CREATE TABLE events (
    parcel      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    location    TEXT NOT NULL,
    description TEXT,
    PRIMARY KEY (parcel, sequence)
) STRICT, WITHOUT ROWID;

-- A rowid table, so that records are appended in the order in which they die.
CREATE TABLE idempotency (
    id          INTEGER PRIMARY KEY,
    key         BLOB NOT NULL,
    tenant      INTEGER NOT NULL,
    first_seen  INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    body        BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX idempotency_key ON idempotency (key);
