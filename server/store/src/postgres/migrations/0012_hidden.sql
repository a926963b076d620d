-- With these indexes, the rows that a reset has hidden are found without reading the visible ones. Production has no
-- resets, and so no rows in these indexes.
CREATE INDEX parcels_epoch ON parcels (tenant, epoch) WHERE tenant % 2 = 1;
CREATE INDEX manifests_epoch ON manifests (tenant, epoch) WHERE tenant % 2 = 1;
CREATE INDEX outbox_epoch ON outbox_done (tenant, epoch) WHERE tenant % 2 = 1;
CREATE INDEX outbox_undone_epoch ON outbox_undone (tenant, epoch) WHERE tenant % 2 = 1;
CREATE INDEX idempotency_epoch ON idempotency (tenant, epoch) WHERE tenant % 2 = 1;
DROP INDEX idempotency_sandbox;
