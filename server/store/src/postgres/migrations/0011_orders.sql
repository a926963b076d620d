-- The orders as they were accepted, inserted with their parcels and never updated. They were three quarters of the rows
-- of `parcels`, which each event of a parcel writes again.
CREATE TABLE orders (
    parcel     bigint PRIMARY KEY,
    order_json text NOT NULL
);
INSERT INTO orders (parcel, order_json) SELECT id, order_json FROM parcels ORDER BY id;

DROP VIEW living_parcels;
ALTER TABLE parcels DROP COLUMN order_json;
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.epoch > p.epoch);

-- New versions of a page's rows go into its free space. They write no index, because no indexed column changes with a
-- carrier's event.
ALTER TABLE parcels SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
-- Rewrites the table, without the column and with free space on each page.
CLUSTER parcels USING parcels_pkey;
ALTER TABLE parcels SET WITHOUT CLUSTER;

-- All records are deleted within a day.
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
