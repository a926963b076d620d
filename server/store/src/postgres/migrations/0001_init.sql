-- The schema that SQLite's migrations 0001 to 0014 create, for several servers on one database. Times are milliseconds
-- since 1970 began, as in the domain. The differences from the SQLite schema are:
--
-- * Only the row ids of parcels identify rows across transactions, because ids are not committed in order.
-- * A reset hides rows by its number (`epoch`), not by their ids.
-- * No trigger counts anything, because an order would update a row of its tenant more than once.
-- * Text is compared by bytes ("C"), independently of the database's collation.

CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- A row for each writing connection, with the number of its last commit. After the answer to a COMMIT was cut off, the
-- number tells whether it was executed. Once the row is deleted, its server can no longer commit.
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

-- A tenant, here and below, is twice the account's id, plus 1 for the sandbox.
CREATE TABLE api_keys (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text COLLATE "C" NOT NULL UNIQUE,
    tenant     bigint NOT NULL,
    name       text NOT NULL,
    countries  text NOT NULL, -- '*' or 'EC,MX'
    ip_list    text NOT NULL, -- networks, separated by commas: '' allows any address
    rate_limit bigint,
    hash       bytea NOT NULL UNIQUE,
    last4      text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    -- Increases with every write of any key, so that one query tells a server which keys it must read again.
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

-- The sandboxes that were reset. Rows of an epoch before their tenant's are invisible to all readers, and are deleted
-- page by page while `is_erasing` is true.
CREATE TABLE resets (
    tenant     bigint PRIMARY KEY,
    epoch      bigint NOT NULL,
    is_erasing boolean NOT NULL
);

-- Parcels get their ids from blocks of 1,000. Each block is used by one server only, so no id is used twice.
CREATE SEQUENCE parcel_ids INCREMENT BY 1000 START WITH 1;

-- The first two events of a parcel are derived from its row.
CREATE TABLE parcels (
    id                bigint PRIMARY KEY,
    version           bigint NOT NULL,
    tenant            bigint NOT NULL,
    epoch             bigint NOT NULL, -- the number of the tenant's resets
    created_at        bigint NOT NULL,
    updated_at        bigint NOT NULL,
    step_due          bigint,
    reprinted_at      bigint,
    promised_day      integer NOT NULL,
    label_version     bigint NOT NULL,
    last_sequence     bigint NOT NULL,
    environment       smallint NOT NULL, -- the tenant's, for the index
    state             smallint NOT NULL,
    step_index        smallint,
    country           text COLLATE "C" NOT NULL,
    number            text COLLATE "C" NOT NULL, -- as it was entered
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

-- The number of a tenant's parcels of an epoch, by day of creation (in days since 1970 began, UTC), state and country.
-- A group of writes updates each affected row once.
CREATE TABLE parcel_counts (
    tenant  bigint NOT NULL,
    epoch   bigint NOT NULL,
    day     bigint NOT NULL,
    state   smallint NOT NULL,
    country text COLLATE "C" NOT NULL,
    total   bigint NOT NULL,
    PRIMARY KEY (tenant, epoch, day, state, country)
) WITH (fillfactor = 50);

-- The key is unique among all visible records, so that of two servers only one can insert it, also when a record
-- expires.
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

-- Manifests as they were submitted, with `document` as JSON.
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

-- The manifest of a parcel, which has at most one. `label_version` is the label's version when the parcel was put under
-- the air waybill. Later versions name the flight.
CREATE TABLE manifest_parcels (
    parcel        bigint PRIMARY KEY,
    manifest      bigint NOT NULL,
    label_version bigint NOT NULL
);

-- The carrier events that were accepted, with their place in the parcel's history.
CREATE TABLE carrier_events (
    carrier  bigint NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    parcel   bigint NOT NULL,
    sequence bigint NOT NULL,
    code     text,
    PRIMARY KEY (carrier, event_id)
);
CREATE INDEX carrier_events_parcel ON carrier_events (parcel);

-- The carrier events that were refused. An event that is refused again replaces its row.
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

-- A tenant has at most one endpoint. Its secrets are stored unhashed, because they sign webhooks.
CREATE TABLE webhook_endpoints (
    tenant       bigint PRIMARY KEY,
    url          text NOT NULL,
    kinds        smallint NOT NULL, -- the subscribed kinds of events, as bits
    secret       bytea NOT NULL,
    enabled      boolean NOT NULL,
    disabled_why text,
    created_at   bigint NOT NULL
);

-- The time at which an endpoint last accepted an event. It is not in `webhook_endpoints`, because writers of orders
-- lock those rows, so that the endpoint cannot be turned off meanwhile, and a delivery must not wait for them.
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

-- Each commit that leases events takes the next number, which identifies its deliveries. Gaps are harmless, but no
-- number may occur twice.
CREATE SEQUENCE lease_numbers;
-- From here on, `last_value` is a number that is in use.
SELECT nextval('lease_numbers');

-- Webhook events to send, each written with the change that it reports. The payload is read from the parcel or the
-- manifest when the event is sent. `state` is 0 for an event that waits for an earlier event of its parcel, 1 for ready
-- at `due`, 2 for delivered, 3 for failed and 4 for held. If `leased` is true, the server `leased_by` is sending the
-- event, and others may lease it again at `due`. Leases up to the number `after_lease` do not include the event.
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

-- All attempts. `answer` is the beginning of the endpoint's response.
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

-- The rows that callers can see. Reads use these views, and only the deletion of hidden rows uses the tables.
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.epoch > p.epoch);

CREATE VIEW living_manifests AS SELECT * FROM manifests AS m
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = m.tenant AND r.epoch > m.epoch);

CREATE VIEW living_idempotency AS SELECT * FROM idempotency AS i
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = i.tenant AND r.epoch > i.epoch);

CREATE VIEW living_outbox AS SELECT * FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.epoch > o.epoch);
