-- A tenant has one endpoint at most. Its secrets sign, so they are kept as they are.
CREATE TABLE webhook_endpoints (
    tenant       INTEGER PRIMARY KEY,
    url          TEXT NOT NULL,
    kinds        INTEGER NOT NULL, -- the kinds that were asked for, as bits
    secret       BLOB NOT NULL,
    old_secret   BLOB,
    old_until    INTEGER,
    enabled      INTEGER NOT NULL,
    disabled_why TEXT,
    last_success INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;

-- What is to be told, written with the change that it tells of. Its words are read from the
-- parcel or the manifest when it is sent.
-- state: 0 waits for an earlier event of its parcel, 1 is ready at `due`, 2 delivered, 3 failed,
-- 4 held. leased: it is being sent, and may be taken again at `due`.
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    event_id      BLOB NOT NULL UNIQUE,
    kind          INTEGER NOT NULL,
    parcel        INTEGER,
    manifest      INTEGER,
    sequence      INTEGER,
    previous      INTEGER,
    happened_at   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    due           INTEGER,
    leased        INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    first_attempt INTEGER
) STRICT;

CREATE INDEX outbox_due ON outbox (tenant, due) WHERE due IS NOT NULL;
CREATE INDEX outbox_parcel ON outbox (parcel, id) WHERE parcel IS NOT NULL;
CREATE INDEX outbox_pending ON outbox (tenant, created_at) WHERE state < 2;
CREATE INDEX outbox_tenant ON outbox (tenant, id);

-- Every attempt: `answer` is the beginning of what the endpoint said.
CREATE TABLE webhook_attempts (
    id     INTEGER PRIMARY KEY,
    outbox INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    millis INTEGER NOT NULL,
    status INTEGER,
    error  TEXT,
    answer BLOB
) STRICT;

CREATE INDEX webhook_attempts_outbox ON webhook_attempts (outbox, id);
