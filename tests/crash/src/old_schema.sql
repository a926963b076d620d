-- 300 parcels of a server whose schema has ten migrations, each with the record of its key and its two events. With
-- more than 256 keys, the first start after the upgrade writes a chunk of their list. Keys and ids are scattered as random
-- ones are, and the same in every run.
CREATE TEMP TABLE numbers AS WITH RECURSIVE n (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n WHERE id < 300)
SELECT id, format('SB-OLD-%06d', id) AS number, 1790000000000 + id * 60000 AS at FROM n;

INSERT INTO meta VALUES ('secret', unhex(format('%064x', 1)));

INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, updated_at, origin,
    destination, country, promised_day, label_version, last_sequence, order_json)
SELECT id, 1, 3, 1, number, unhex(format('%032x', id)), 2, at, at, 'Miami, US', 'Quito, EC', 'EC', 20000, 1, 2,
    json_object('externalOrderId', 'SHOP-' || id)
FROM numbers;

INSERT INTO idempotency (id, key, tenant, first_seen, fingerprint, body)
SELECT id, unhex(format('%08x%056x', id * 2654435761 % 4294967296, id)), 3, at, unhex(format('%064x', id)),
    CAST(json_object('parcel', json_object('trackingNumber', number)) AS BLOB)
FROM numbers;

INSERT INTO outbox (tenant, event_id, kind, parcel, sequence, happened_at, created_at, state)
SELECT 3, unhex(format('%08x%024x', id * 2654435761 % 4294967296, kind)), kind, id, sequence, at, at, 2
FROM numbers, (SELECT 1 AS kind, 1 AS sequence UNION ALL SELECT 0, 2);

PRAGMA application_id = 0x50434C4F;
PRAGMA user_version = 10;
PRAGMA journal_mode = WAL;
