-- The records of a sandbox by time, for its resets. An order writes the end of this index. By key it wrote a random
-- page, as it does in the primary key. Servers of the previous version sort the records that a reset counts.
DROP INDEX idempotency_sandbox;
CREATE INDEX idempotency_sandbox ON idempotency (tenant, first_seen) WHERE tenant % 2 = 1;
