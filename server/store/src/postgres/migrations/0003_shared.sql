-- The state that servers share in addition to the data. Unlogged tables hold state that may be lost when PostgreSQL
-- crashes. Writing to them costs no fsync, and they are empty after a crash.

-- Messages that a page of the dashboard shows once, and which may contain a secret. They are encrypted with a key that
-- only the session's cookie has, and are deleted when they are shown.
CREATE TABLE dashboard_flashes (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bytea NOT NULL,
    page    text NOT NULL,
    left_at bigint NOT NULL,
    sealed  bytea NOT NULL
);
CREATE INDEX dashboard_flashes_session ON dashboard_flashes (session);

-- The running servers. Each updates its row every second.
CREATE UNLOGGED TABLE rate_limit_servers (
    server  bigint PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 10);

-- The number of requests of a key that servers have taken in a second. The last four columns are those of the last
-- claim, and `granted` is the number that it got. `kind` is 0 for an API key and 1 for a carrier key.
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

-- Failed sign-ins, by keyed hashes of networks and accounts.
CREATE UNLOGGED TABLE login_failures (
    counted_by bytea PRIMARY KEY,
    failures   bigint NOT NULL,
    last       bigint NOT NULL
);

-- Keyed hashes of the pairs of an account and a network from which it was signed in to.
CREATE UNLOGGED TABLE login_networks (
    known bytea PRIMARY KEY,
    last  bigint NOT NULL
);
