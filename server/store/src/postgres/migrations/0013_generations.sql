-- A reset gives a sandbox a new number, its generation. Rows of old generations are deleted page by page
-- (server/store/src/generations.rs). Before this migration, each row had the number of its tenant's resets in a
-- separate column.
CREATE TABLE generations (
    home    bigint PRIMARY KEY,
    current bigint NOT NULL UNIQUE
);

-- The ended generations whose rows are not all deleted, or were not a minute ago, each with the counts that its reset
-- returns. The counts are null until they are known. `changed_at` is the time at which the generation ended or was
-- counted.
CREATE TABLE ended_generations (
    number     bigint PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT now(),
    parcels    bigint,
    manifests  bigint,
    events     bigint,
    keys       bigint,
    deliveries bigint
);

-- If a reset is not finished, the rows that it deletes keep the tenant's own number, and the other rows get a new one.
INSERT INTO generations (home, current) SELECT tenant, tenant + 4294967296 FROM resets WHERE is_erasing;
INSERT INTO ended_generations (number) SELECT home FROM generations;
DELETE FROM parcel_counts AS c USING resets AS r WHERE r.tenant = c.tenant AND r.epoch > c.epoch;
DELETE FROM parcel_count_changes AS c USING resets AS r WHERE r.tenant = c.tenant AND r.epoch > c.epoch;
DO $renumber$ DECLARE t text; BEGIN
    FOREACH t IN ARRAY ARRAY['parcels', 'manifests', 'idempotency', 'outbox', 'parcel_counts', 'parcel_count_changes'] LOOP
        EXECUTE format('UPDATE %I AS x SET tenant = g.current FROM generations AS g JOIN resets AS r ON r.tenant = g.home
            WHERE x.tenant = g.home AND x.epoch = r.epoch', t);
    END LOOP;
END $renumber$;
UPDATE carrier_exceptions AS e SET tenant = p.tenant FROM parcels AS p
WHERE p.id = e.parcel AND p.tenant IN (SELECT current FROM generations);

-- Dropping the column also drops its indexes and the primary key of the counts.
DROP VIEW living_parcels, living_manifests, living_idempotency, living_outbox, living_counts;
ALTER TABLE parcels DROP COLUMN epoch;
ALTER TABLE manifests DROP COLUMN epoch;
ALTER TABLE outbox DROP COLUMN epoch;
ALTER TABLE parcel_counts DROP COLUMN epoch, ADD PRIMARY KEY (tenant, day, state, country);
ALTER TABLE parcel_count_changes DROP COLUMN epoch;
-- The same key can be used again in the next generation.
ALTER TABLE idempotency DROP COLUMN epoch, DROP CONSTRAINT idempotency_pkey, ADD PRIMARY KEY (key, tenant);
CREATE INDEX idempotency_sandbox ON idempotency (tenant, key) WHERE tenant % 2 = 1;
DROP TABLE resets;

-- Can have several rows for the same day, state and country. Their sum is the count.
CREATE VIEW all_counts AS
    SELECT tenant, day, state, country, total FROM parcel_counts
    UNION ALL SELECT tenant, day, state, country, difference FROM parcel_count_changes;

-- The entries of the search index contained the number of resets too, so all parcels are indexed again.
TRUNCATE term_runs, term_pieces;
UPDATE term_sweep SET next = 0, until = (SELECT coalesce(max(id), 0) FROM parcels);
