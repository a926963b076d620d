-- The resets of sandboxes that are under way: nearly always none. Of each table, what the tenant has up to
-- this row is gone for everybody from the moment the reset began, and is deleted page by page.
CREATE TABLE resets (
    tenant      INTEGER PRIMARY KEY,
    parcel      INTEGER NOT NULL,
    manifest    INTEGER NOT NULL,
    idempotency INTEGER NOT NULL,
    outbox      INTEGER NOT NULL,
    -- What was deleted so far, for the answer.
    parcels     INTEGER NOT NULL DEFAULT 0,
    manifests   INTEGER NOT NULL DEFAULT 0,
    events      INTEGER NOT NULL DEFAULT 0,
    keys        INTEGER NOT NULL DEFAULT 0,
    deliveries  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What is there for callers. Every read names these, and what erases names the tables.
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.parcel >= p.id);

CREATE VIEW living_manifests AS SELECT * FROM manifests AS m
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = m.tenant AND r.manifest >= m.id);

CREATE VIEW living_idempotency AS SELECT * FROM idempotency AS i
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = i.tenant AND r.idempotency >= i.id);

CREATE VIEW living_outbox AS SELECT * FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.outbox >= o.id);
