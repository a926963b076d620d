-- What a group of writes changes in the counts. Rows are added and never changed, so no group waits for another's, and
-- none looks for its row among all the versions that a long transaction elsewhere keeps. A job adds them to
-- `parcel_counts` every second and deletes them.
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

-- Several rows for a day, state and country: their sum is the count.
CREATE VIEW living_counts AS SELECT * FROM (
    SELECT tenant, epoch, day, state, country, total FROM parcel_counts
    UNION ALL SELECT tenant, epoch, day, state, country, difference FROM parcel_count_changes
) AS c
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = c.tenant AND r.epoch > c.epoch);
