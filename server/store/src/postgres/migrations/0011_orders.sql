-- What was ordered, as it was accepted: written with its parcel, and never again. Each event of a parcel writes its row, of
-- which this was three quarters.
CREATE TABLE orders (
    parcel     bigint PRIMARY KEY,
    order_json text NOT NULL
);
INSERT INTO orders (parcel, order_json) SELECT id, order_json FROM parcels ORDER BY id;

DROP VIEW living_parcels;
ALTER TABLE parcels DROP COLUMN order_json;
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.epoch > p.epoch);

-- The next versions of a page's rows go into what is free of it, and no index is written: none has a column that a
-- carrier's report changes.
ALTER TABLE parcels SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
-- Writes it again, without the column and with room on each page.
CLUSTER parcels USING parcels_pkey;
ALTER TABLE parcels SET WITHOUT CLUSTER;

-- All of it is deleted within a day.
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
