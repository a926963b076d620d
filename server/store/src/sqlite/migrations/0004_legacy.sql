-- How often a key used the legacy API on a day (since 1970 began, UTC).
CREATE TABLE legacy_uses (
    api_key  INTEGER NOT NULL,
    day      INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (api_key, day)
) STRICT, WITHOUT ROWID;
