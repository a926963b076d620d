-- A carrier reports on the parcels of all tenants of its environment (0 production, 1 sandbox).
CREATE TABLE carriers (
    id          INTEGER PRIMARY KEY,
    environment INTEGER NOT NULL,
    name        TEXT NOT NULL,
    UNIQUE (environment, name)
) STRICT;

-- A carrier may have several keys, so that one can be replaced without a pause.
CREATE TABLE carrier_keys (
    id         INTEGER PRIMARY KEY,
    public_id  TEXT NOT NULL UNIQUE,
    carrier    INTEGER NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    last4      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

-- The events that were taken: where each stands in its parcel's history.
CREATE TABLE carrier_events (
    carrier  INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    parcel   INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    code     TEXT,
    PRIMARY KEY (carrier, event_id)
) STRICT, WITHOUT ROWID;

-- For forgetting the events of a parcel that is deleted.
CREATE INDEX carrier_events_parcel ON carrier_events (parcel);

-- The events that were refused; one that is refused again takes its own place.
CREATE TABLE carrier_exceptions (
    id          INTEGER PRIMARY KEY,
    tenant      INTEGER NOT NULL,
    carrier     INTEGER NOT NULL,
    event_id    TEXT NOT NULL,
    parcel      INTEGER NOT NULL,
    from_state  INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    location    TEXT NOT NULL,
    description TEXT,
    code        TEXT,
    refused_at  INTEGER NOT NULL,
    UNIQUE (carrier, event_id)
) STRICT;

CREATE INDEX carrier_exceptions_tenant ON carrier_exceptions (tenant);
CREATE INDEX carrier_exceptions_parcel ON carrier_exceptions (parcel);
