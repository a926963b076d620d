-- What SQLite's migrations 0001 to 0014 come to, for several servers on one database. Times are milliseconds
-- since 1970 began, as the domain has them. What differs from SQLite's, and why:
--
-- * No row id but a parcel's identifies anything across transactions: ids commit out of order.
-- * A reset hides rows by its number (`epoch`), not by their ids.
-- * Nothing is counted by triggers: an order would update one row of its tenant more than once.
-- * What is compared is compared by bytes ("C"), whatever the database's own collation.

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- One row for each connection that writes: the number of its last commit. When the answer to a COMMIT is cut
-- off, it says whether the commit was done; when the row is gone, its server can commit no more.
CREATE TABLE writers (
    writer  bigint PRIMARY KEY,
    batch   bigint NOT NULL,
    pid     integer NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE accounts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text NOT NULL,
    name       text COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL
);

-- tenant, here and below: twice the account, plus 1 in the sandbox.
CREATE TABLE api_keys (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text COLLATE "C" NOT NULL UNIQUE,
    tenant     bigint NOT NULL,
    name       text NOT NULL,
    countries  text NOT NULL, -- '*' or 'EC,MX'
    ip_list    text NOT NULL, -- networks with commas between them; '' is any address
    rate_limit bigint,
    hash       bytea NOT NULL UNIQUE,
    last4      text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    -- Higher with every write of any key, so that one look tells a server which keys it must read again.
    changed    bigint NOT NULL
);
CREATE INDEX api_keys_changed ON api_keys (changed);

CREATE TABLE api_key_old_secrets (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key   bigint NOT NULL,
    hash  bytea NOT NULL UNIQUE,
    until bigint NOT NULL
);
CREATE INDEX api_key_old_secrets_key ON api_key_old_secrets (key, id);

CREATE TABLE carriers (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment smallint NOT NULL,
    name        text COLLATE "C" NOT NULL,
    UNIQUE (environment, name)
);

CREATE TABLE carrier_keys (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text COLLATE "C" NOT NULL UNIQUE,
    carrier    bigint NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    last4      text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    changed    bigint NOT NULL
);
CREATE INDEX carrier_keys_changed ON carrier_keys (changed);

CREATE TABLE admin_tokens (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text COLLATE "C" NOT NULL UNIQUE,
    name       text NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    last4      text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
);

CREATE TABLE dashboard_passwords (
    account    bigint PRIMARY KEY,
    hash       text NOT NULL,
    changed_at bigint NOT NULL
);

CREATE TABLE dashboard_sessions (
    hash    bytea PRIMARY KEY,
    account bigint NOT NULL,
    ends_at bigint NOT NULL
);
CREATE INDEX dashboard_sessions_account ON dashboard_sessions (account);
CREATE INDEX dashboard_sessions_ends_at ON dashboard_sessions (ends_at);

CREATE TABLE legacy_uses (
    api_key  bigint NOT NULL,
    day      bigint NOT NULL,
    requests bigint NOT NULL,
    PRIMARY KEY (api_key, day)
);

-- The sandboxes that were ever reset: rows of an earlier epoch than their tenant's are gone for every reader,
-- and are deleted page by page while `is_erasing`.
CREATE TABLE resets (
    tenant     bigint PRIMARY KEY,
    epoch      bigint NOT NULL,
    is_erasing boolean NOT NULL
);

-- Parcels draw their ids from blocks of 1,000: a block is its server's alone, and no id is given twice.
CREATE SEQUENCE parcel_ids INCREMENT BY 1000 START WITH 1;

-- A parcel's first two events are implied by its row.
CREATE TABLE parcels (
    id                bigint PRIMARY KEY,
    version           bigint NOT NULL,
    tenant            bigint NOT NULL,
    epoch             bigint NOT NULL, -- of the tenant's resets
    created_at        bigint NOT NULL,
    updated_at        bigint NOT NULL,
    step_due          bigint,
    reprinted_at      bigint,
    promised_day      integer NOT NULL,
    label_version     bigint NOT NULL,
    last_sequence     bigint NOT NULL,
    environment       smallint NOT NULL, -- tenant's, for the index
    state             smallint NOT NULL,
    step_index        smallint,
    country           text COLLATE "C" NOT NULL,
    number            text COLLATE "C" NOT NULL, -- as it was given
    public_id         bytea NOT NULL,
    origin            text NOT NULL,
    destination       text NOT NULL,
    external_order_id text COLLATE "C", -- the order's, for the index
    order_json        text NOT NULL
);
CREATE UNIQUE INDEX parcels_number ON parcels (environment, upper(number));
CREATE INDEX parcels_due ON parcels (step_due) WHERE step_due IS NOT NULL;
CREATE INDEX parcels_list ON parcels (tenant, created_at, id);
CREATE INDEX parcels_external ON parcels (tenant, external_order_id, created_at, id)
    WHERE external_order_id IS NOT NULL;

-- Events after the first two.
CREATE TABLE events (
    parcel      bigint NOT NULL,
    sequence    bigint NOT NULL,
    state       smallint NOT NULL,
    at          bigint NOT NULL,
    location    text NOT NULL,
    description text,
    PRIMARY KEY (parcel, sequence)
);

-- How many parcels of an epoch a tenant has, by the day they were created (since 1970 began, UTC), state and
-- country. A group of writes updates each of its rows once.
CREATE TABLE parcel_counts (
    tenant  bigint NOT NULL,
    epoch   bigint NOT NULL,
    day     bigint NOT NULL,
    state   smallint NOT NULL,
    country text COLLATE "C" NOT NULL,
    total   bigint NOT NULL,
    PRIMARY KEY (tenant, epoch, day, state, country)
) WITH (fillfactor = 50);

-- One unique key over all living records: two servers never both win, at midnight or at the 24th hour.
CREATE TABLE idempotency (
    key         bytea PRIMARY KEY,
    tenant      bigint NOT NULL,
    epoch       bigint NOT NULL,
    first_seen  bigint NOT NULL,
    fingerprint bytea NOT NULL,
    body        bytea NOT NULL
);
CREATE INDEX idempotency_first_seen ON idempotency (first_seen);
CREATE INDEX idempotency_sandbox ON idempotency (tenant, first_seen) WHERE tenant % 2 = 1;

-- A manifest as it was submitted: `document` is it as JSON.
CREATE TABLE manifests (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       bigint NOT NULL,
    epoch        bigint NOT NULL,
    awb          text COLLATE "C" NOT NULL,
    public_id    bytea NOT NULL UNIQUE,
    submitted_at bigint NOT NULL,
    document     bytea NOT NULL
);
CREATE UNIQUE INDEX manifests_awb ON manifests (tenant, awb);
CREATE INDEX manifests_sandbox ON manifests (submitted_at) WHERE tenant % 2 = 1;

-- The manifest of a parcel: a parcel has one at most. The version is the label's when it went under the air
-- waybill: later ones name the flight.
CREATE TABLE manifest_parcels (
    parcel        bigint PRIMARY KEY,
    manifest      bigint NOT NULL,
    label_version bigint NOT NULL
);

-- The events that were taken: where each stands in its parcel's history.
CREATE TABLE carrier_events (
    carrier  bigint NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    parcel   bigint NOT NULL,
    sequence bigint NOT NULL,
    code     text,
    PRIMARY KEY (carrier, event_id)
);
CREATE INDEX carrier_events_parcel ON carrier_events (parcel);

-- The events that were refused; one that is refused again takes its own place.
CREATE TABLE carrier_exceptions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      bigint NOT NULL,
    carrier     bigint NOT NULL,
    event_id    text COLLATE "C" NOT NULL,
    parcel      bigint NOT NULL,
    from_state  smallint NOT NULL,
    state       smallint NOT NULL,
    at          bigint NOT NULL,
    location    text NOT NULL,
    description text,
    code        text,
    refused_at  bigint NOT NULL,
    UNIQUE (carrier, event_id)
);
CREATE INDEX carrier_exceptions_tenant ON carrier_exceptions (tenant, id);
CREATE INDEX carrier_exceptions_parcel ON carrier_exceptions (parcel);

-- A tenant has one endpoint at most. Its secrets sign, so they are kept as they are.
CREATE TABLE webhook_endpoints (
    tenant       bigint PRIMARY KEY,
    url          text NOT NULL,
    kinds        smallint NOT NULL, -- the kinds that were asked for, as bits
    secret       bytea NOT NULL,
    enabled      boolean NOT NULL,
    disabled_why text,
    created_at   bigint NOT NULL
);

-- When an endpoint last accepted something. Beside the endpoints, whose rows the writers of orders lock
-- against being turned off meanwhile: a delivery must not wait for them.
CREATE TABLE webhook_successes (
    tenant bigint PRIMARY KEY,
    at     bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE webhook_old_secrets (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL,
    secret bytea NOT NULL,
    until  bigint NOT NULL
);
CREATE INDEX webhook_old_secrets_tenant ON webhook_old_secrets (tenant, id);

-- Each commit that leases events takes the next number; a delivery on its way is known by it. A gap does no
-- harm, a number that comes twice would.
CREATE SEQUENCE lease_numbers;
-- From here on `last_value` is a number that was given out.
SELECT nextval('lease_numbers');

-- What is to be sent, written with the change that it reports. Its words are read from the parcel or the
-- manifest when it is sent.
-- state: 0 waits for an earlier event of its parcel, 1 is ready at `due`, 2 delivered, 3 failed, 4 held.
-- leased: it is being sent by a server (`leased_by`), and may be taken again at `due`. after_lease: what was leased until then was
-- another row.
CREATE TABLE outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant        bigint NOT NULL,
    epoch         bigint NOT NULL,
    event_id      bytea NOT NULL UNIQUE,
    parcel        bigint,
    manifest      bigint,
    sequence      bigint,
    happened_at   bigint NOT NULL,
    created_at    bigint NOT NULL,
    due           bigint,
    lease         bigint NOT NULL DEFAULT 0,
    after_lease   bigint NOT NULL,
    attempts      bigint NOT NULL DEFAULT 0,
    first_attempt bigint,
    kind          smallint NOT NULL,
    previous      smallint,
    state         smallint NOT NULL,
    leased        boolean NOT NULL DEFAULT false,
    leased_by     bigint
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_due ON outbox (tenant, due) WHERE due IS NOT NULL;
CREATE INDEX outbox_parcel ON outbox (parcel, sequence) WHERE parcel IS NOT NULL;
CREATE INDEX outbox_undone ON outbox (tenant, created_at) WHERE state IN (0, 1);
CREATE INDEX outbox_held ON outbox (tenant, created_at) WHERE state = 4;
CREATE INDEX outbox_missed ON outbox (tenant, id) WHERE state > 2;
CREATE INDEX outbox_leased ON outbox (tenant) WHERE leased;
CREATE INDEX outbox_tenant ON outbox (tenant, id);
CREATE INDEX outbox_created_at ON outbox (created_at);

-- Every attempt: `answer` is the beginning of what the endpoint said.
CREATE TABLE webhook_attempts (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    outbox bigint NOT NULL,
    number bigint NOT NULL,
    at     bigint NOT NULL,
    millis bigint NOT NULL,
    status integer,
    error  text,
    answer bytea
);
CREATE INDEX webhook_attempts_outbox ON webhook_attempts (outbox, id);

-- What is there for callers. Every read names these, and what erases names the tables.
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.epoch > p.epoch);

CREATE VIEW living_manifests AS SELECT * FROM manifests AS m
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = m.tenant AND r.epoch > m.epoch);

CREATE VIEW living_idempotency AS SELECT * FROM idempotency AS i
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = i.tenant AND r.epoch > i.epoch);

CREATE VIEW living_outbox AS SELECT * FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.epoch > o.epoch);
