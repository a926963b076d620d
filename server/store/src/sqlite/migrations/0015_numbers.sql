-- Generated numbers carry their row from now on and are in no index. In it are the others: given ones, and all
-- from before.
ALTER TABLE parcels ADD COLUMN number_is_indexed INTEGER NOT NULL DEFAULT 1;

DROP INDEX parcels_number;
CREATE UNIQUE INDEX parcels_number ON parcels (environment, number) WHERE number_is_indexed = 1;

-- The order's id in the caller's system, which each insert looked for in the order, twice. It stands behind the order:
-- those who read it, lists and webhooks, read of the order too, or of few rows. A copy of the table would need its
-- space once more. Rows are found in the index of before; an order that a disk has damaged
-- has no id, and stops nothing.
ALTER TABLE parcels ADD COLUMN external_order_id TEXT;

UPDATE parcels SET external_order_id =
    iif(json_valid(order_json), json_extract(order_json, '$.externalOrderId'), NULL)
WHERE json_extract(order_json, '$.externalOrderId') IS NOT NULL;

DROP INDEX parcels_external;
CREATE INDEX parcels_external ON parcels (tenant, external_order_id, created_at, id)
    WHERE external_order_id IS NOT NULL;
