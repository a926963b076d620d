-- What several servers share beside the data. Tables without a log hold what a crash of PostgreSQL may forget: they
-- cost no fsync, and are empty after it.

-- What a page of the dashboard says once, a secret among it: sealed with a key that only the session's cookie has,
-- deleted when it is shown.
CREATE TABLE dashboard_flashes (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bytea NOT NULL,
    page    text NOT NULL,
    left_at bigint NOT NULL,
    sealed  bytea NOT NULL
);
CREATE INDEX dashboard_flashes_session ON dashboard_flashes (session);

-- The servers that are there: each says so every second.
CREATE UNLOGGED TABLE rate_limit_servers (
    server  bigint PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 10);

-- How many requests of a key servers have taken in a second. The last four columns are the last claim's; `granted` is
-- what it got. kind: 0 an API key, 1 a carrier key.
CREATE UNLOGGED TABLE rate_limit_windows (
    second   bigint NOT NULL,
    kind     smallint NOT NULL,
    key      bigint NOT NULL,
    taken    bigint NOT NULL,
    granted  bigint NOT NULL,
    most     bigint NOT NULL,
    admitted bigint NOT NULL,
    wanted   bigint NOT NULL,
    PRIMARY KEY (second, kind, key)
) WITH (fillfactor = 50);

-- Failures to sign in, by keyed hashes of networks and accounts.
CREATE UNLOGGED TABLE login_failures (
    counted_by bytea PRIMARY KEY,
    failures   bigint NOT NULL,
    last       bigint NOT NULL
);

-- The accounts and networks, hashed together, that were signed in to from there.
CREATE UNLOGGED TABLE login_networks (
    known bytea PRIMARY KEY,
    last  bigint NOT NULL
);
