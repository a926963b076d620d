-- The changes of counts by groups of writes. Rows are inserted and never updated, so no group waits for another one, or
-- searches for its row among the old versions that a long transaction elsewhere keeps. Every second a job adds the
-- changes to `parcel_counts` and deletes them.
CREATE TABLE parcel_count_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     bigint NOT NULL,
    epoch      bigint NOT NULL,
    day        bigint NOT NULL,
    state      smallint NOT NULL,
    country    text COLLATE "C" NOT NULL,
    difference bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX parcel_count_changes_tenant ON parcel_count_changes (tenant);

-- Can have several rows for the same day, state and country. Their sum is the count.
CREATE VIEW living_counts AS SELECT * FROM (
    SELECT tenant, epoch, day, state, country, total FROM parcel_counts
    UNION ALL SELECT tenant, epoch, day, state, country, difference FROM parcel_count_changes
) AS c
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = c.tenant AND r.epoch > c.epoch);
