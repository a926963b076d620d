-- What a page of the dashboard says once, a secret among it: sealed with a key that only the session's cookie has,
-- deleted when it is shown.
CREATE TABLE dashboard_flashes (
    id      INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    page    TEXT NOT NULL,
    left_at INTEGER NOT NULL,
    sealed  BLOB NOT NULL
);
CREATE INDEX dashboard_flashes_session ON dashboard_flashes (session);
