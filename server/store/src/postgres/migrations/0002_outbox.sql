-- The events that are still to be sent are few, and each is written several times within a second. The finished events
-- are many, and are rarely written again. They are in separate partitions, so that due events are found in a small
-- table, which autovacuum can clean quickly without scanning 30 days of finished events. An UPDATE of `state` moves a
-- row from one partition to the other.
--
-- Servers of schema 1 may run at the same time. So the table, the view and the columns have the names that they use,
-- and the view's `due` shows them a lease as if it were their own.

DROP VIEW living_outbox;
ALTER TABLE outbox RENAME TO outbox_done;
-- The table is locked until the commit, so no higher id can be inserted in between.
CREATE SEQUENCE outbox_ids;
SELECT setval('outbox_ids', coalesce((SELECT max(id) FROM outbox_done), 0) + 1, false);
ALTER TABLE outbox_done ALTER COLUMN id DROP IDENTITY;
ALTER TABLE outbox_done ALTER COLUMN id SET DEFAULT nextval('outbox_ids');
-- The time until which an event is leased by the server that sends it, by the database's clock. A lease does not change
-- `due`, which is indexed. As it changes no indexed column, it writes no index (a HOT update).
ALTER TABLE outbox_done ADD COLUMN lease_until bigint;
-- The other indexes stay. Rows of this partition are rarely updated, so its pages are filled.
DROP INDEX outbox_due, outbox_undone;
ALTER TABLE outbox_done SET (fillfactor = 100);

CREATE TABLE outbox (LIKE outbox_done INCLUDING DEFAULTS) PARTITION BY LIST (state);

-- Half of each page is free for the row versions that leases write. The vacuum threshold is an absolute number, because
-- a fraction of a small table would be only a few rows.
CREATE TABLE outbox_undone PARTITION OF outbox (PRIMARY KEY (id), UNIQUE (event_id)) FOR VALUES IN (0, 1)
    WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
        autovacuum_analyze_threshold = 5000);
WITH undone AS (DELETE FROM outbox_done WHERE state IN (0, 1) RETURNING *)
INSERT INTO outbox_undone SELECT * FROM undone;
CREATE INDEX outbox_undone_due ON outbox_undone (tenant, due, id) WHERE due IS NOT NULL;
CREATE INDEX outbox_undone_parcel ON outbox_undone (parcel, sequence) WHERE parcel IS NOT NULL;
CREATE INDEX outbox_undone_tenant ON outbox_undone (tenant, id);
CREATE INDEX outbox_undone_created_at ON outbox_undone (created_at);

ALTER TABLE outbox ATTACH PARTITION outbox_done FOR VALUES IN (2, 3, 4);

-- `ready_at` is the indexed column. From that time on the event may be sent, unless it is leased.
CREATE VIEW living_outbox AS SELECT o.id, o.tenant, o.epoch, o.event_id, o.parcel, o.manifest, o.sequence,
    o.happened_at, o.created_at, o.lease, o.after_lease, o.attempts, o.first_attempt, o.kind, o.previous,
    o.state, o.leased, o.leased_by, o.lease_until, o.due AS ready_at,
    CASE WHEN o.lease_until > o.due THEN o.lease_until ELSE o.due END AS due
FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.epoch > o.epoch);
