-- Events that are still to be sent are few, and each is written several times in a second. Those that are done
-- are many, and are hardly ever written again. Each kind has a partition of its own, so that what is due is
-- found in a small table, and autovacuum keeps that one small in moments, not after a look at 30 days of log.
-- An UPDATE of `state` moves a row from one to the other.
--
-- Servers of schema 1 may serve meanwhile: table, view and columns have the names that they know, and the view's
-- `due` tells them of a lease as their own would.

DROP VIEW living_outbox;
ALTER TABLE outbox RENAME TO outbox_done;
-- Nothing else writes to it until the commit, so no higher id is on its way.
CREATE SEQUENCE outbox_ids;
SELECT setval('outbox_ids', coalesce((SELECT max(id) FROM outbox_done), 0) + 1, false);
ALTER TABLE outbox_done ALTER COLUMN id DROP IDENTITY;
ALTER TABLE outbox_done ALTER COLUMN id SET DEFAULT nextval('outbox_ids');
-- Until when an event belongs to the server that sends it, by the clock of the database. While that is so, the
-- event keeps its `due`, which is in an index: a lease changes no indexed column, and so no index (a "HOT"
-- update).
ALTER TABLE outbox_done ADD COLUMN lease_until bigint;
-- Those of them that have rows of this partition stay; its rows are written once.
DROP INDEX outbox_due, outbox_undone;
ALTER TABLE outbox_done SET (fillfactor = 100);

CREATE TABLE outbox (LIKE outbox_done INCLUDING DEFAULTS) PARTITION BY LIST (state);

-- Half of each page is free for leases. A tuple that is dead for everyone is soon removed: an absolute number,
-- since a part of a small table would be a handful.
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

-- `ready_at` is the indexed column itself: from then on the event may be sent, unless it is leased.
CREATE VIEW living_outbox AS SELECT o.id, o.tenant, o.epoch, o.event_id, o.parcel, o.manifest, o.sequence,
    o.happened_at, o.created_at, o.lease, o.after_lease, o.attempts, o.first_attempt, o.kind, o.previous,
    o.state, o.leased, o.leased_by, o.lease_until, o.due AS ready_at,
    CASE WHEN o.lease_until > o.due THEN o.lease_until ELSE o.due END AS due
FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.epoch > o.epoch);
