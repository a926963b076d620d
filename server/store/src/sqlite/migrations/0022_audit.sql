-- Who changed keys, secrets, passwords and settings. No secrets; kept for a year.
CREATE TABLE audit_log (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    -- None for what belongs to the whole server.
    account INTEGER,
    -- session, command, first_start, server, or the id of an admin token.
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;
CREATE INDEX audit_log_account ON audit_log (account, id);
CREATE INDEX audit_log_at ON audit_log (at);

-- The e-mails that failed for good, which the dashboard counts.
CREATE INDEX mails_failed ON mails (created_at) WHERE status IN (2, 3);
