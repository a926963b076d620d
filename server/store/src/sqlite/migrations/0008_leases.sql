-- How often an event was taken, replayed, or taken back when its endpoint was replaced: what comes of
-- an attempt counts only while the number is still the one with which it was taken.
ALTER TABLE outbox ADD COLUMN lease INTEGER NOT NULL DEFAULT 0;

-- Every replaced secret signs until its own time is over, however often it is replaced.
CREATE TABLE webhook_old_secrets (
    id     INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    secret BLOB NOT NULL,
    until  INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_old_secrets_tenant ON webhook_old_secrets (tenant, id);

INSERT INTO webhook_old_secrets (tenant, secret, until)
SELECT tenant, old_secret, old_until FROM webhook_endpoints
WHERE old_secret IS NOT NULL AND old_until IS NOT NULL;

-- Made anew: dropping two columns in place takes longer than all other migrations together.
CREATE TABLE kept AS SELECT * FROM webhook_endpoints;
DROP TABLE webhook_endpoints;
CREATE TABLE webhook_endpoints (
    tenant       INTEGER PRIMARY KEY,
    url          TEXT NOT NULL,
    kinds        INTEGER NOT NULL, -- the kinds that were asked for, as bits
    secret       BLOB NOT NULL,
    enabled      INTEGER NOT NULL,
    disabled_why TEXT,
    last_success INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;
INSERT INTO webhook_endpoints
SELECT tenant, url, kinds, secret, enabled, disabled_why, last_success, created_at FROM kept;
DROP TABLE kept;
