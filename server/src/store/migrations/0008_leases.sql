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

ALTER TABLE webhook_endpoints DROP COLUMN old_secret;
ALTER TABLE webhook_endpoints DROP COLUMN old_until;
