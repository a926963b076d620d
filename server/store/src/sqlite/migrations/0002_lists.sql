-- A manifest as it was submitted: `document` is it as JSON.
CREATE TABLE manifests (
    id           INTEGER PRIMARY KEY,
    tenant       INTEGER NOT NULL,
    awb          TEXT NOT NULL,
    public_id    BLOB NOT NULL UNIQUE,
    submitted_at INTEGER NOT NULL,
    document     BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX manifests_awb ON manifests (tenant, awb);
CREATE INDEX manifests_sandbox ON manifests (submitted_at) WHERE tenant % 2 = 1;

-- The manifest of a parcel: a parcel has one at most.
CREATE TABLE manifest_parcels (
    parcel   INTEGER PRIMARY KEY,
    manifest INTEGER NOT NULL
) STRICT;

-- A page of the list, and its filters by status and country, without a look at the rows.
CREATE INDEX parcels_list ON parcels (tenant, created_at, id, state, country);
CREATE INDEX parcels_external ON parcels
    (tenant, json_extract(order_json, '$.externalOrderId'), created_at, id)
    WHERE json_extract(order_json, '$.externalOrderId') IS NOT NULL;

-- How many parcels a tenant has.
CREATE TABLE parcel_counts (
    tenant INTEGER PRIMARY KEY,
    total  INTEGER NOT NULL
) STRICT;

INSERT INTO parcel_counts (tenant, total) SELECT tenant, count(*) FROM parcels GROUP BY tenant;

-- The highest id of a parcel that was deleted: no id is given twice, lest a decision about a
-- deleted parcel finds another one in its place.
CREATE TABLE deleted_parcels (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    highest INTEGER NOT NULL
) STRICT;

INSERT INTO deleted_parcels (only, highest) VALUES (1, 0);

CREATE INDEX idempotency_sandbox ON idempotency (tenant, first_seen) WHERE tenant % 2 = 1;
