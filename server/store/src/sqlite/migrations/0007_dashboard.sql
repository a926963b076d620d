-- Who may sign in to the dashboard: an account with a password, kept as argon2id's own text.
CREATE TABLE dashboard_passwords (
    account    INTEGER PRIMARY KEY,
    hash       TEXT NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT;

-- Who is signed in. Of a session's token there is a keyed hash only.
CREATE TABLE dashboard_sessions (
    hash    BLOB PRIMARY KEY,
    account INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX dashboard_sessions_account ON dashboard_sessions (account);
