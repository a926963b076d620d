-- How many parcels a tenant has, by the day they were created (since 1970 began, UTC), state and country:
-- lists and the dashboard count without a look at the parcels. In place of the count by tenant alone.
DROP TABLE parcel_counts;
CREATE TABLE parcel_counts (
    tenant  INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    state   INTEGER NOT NULL,
    country TEXT NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, state, country)
) STRICT, WITHOUT ROWID;

-- Those that a purge has brought down to 0, to be dropped.
CREATE INDEX parcel_counts_empty ON parcel_counts (total) WHERE total = 0;

-- SQLite divides towards zero; the day of a moment before 1970 is the one that began before it.
INSERT INTO parcel_counts (tenant, day, state, country, total)
SELECT tenant, created_at / 86400000 - (created_at < 0 AND created_at % 86400000 <> 0) AS day, state,
    country, count(*)
FROM parcels GROUP BY tenant, day, state, country;
