-- What a reset deletes is known by its tenant number and no longer by its place in a table
-- (server/src/store/generations.rs).
CREATE TABLE generations (
    home    INTEGER PRIMARY KEY, -- the sandbox's own number
    current INTEGER NOT NULL UNIQUE
) STRICT;

-- The generations whose rows are not deleted yet. What they had is NULL until it is counted.
CREATE TABLE ended_generations (
    number     INTEGER PRIMARY KEY,
    parcels    INTEGER,
    manifests  INTEGER,
    events     INTEGER,
    keys       INTEGER,
    deliveries INTEGER
) STRICT;

-- A reset that is under way goes on: what came since it began is of a generation of its own.
INSERT INTO generations (home, current) SELECT tenant, tenant + 4294967296 FROM resets;
INSERT INTO ended_generations (number) SELECT tenant FROM resets;
UPDATE parcels SET tenant = tenant + 4294967296
WHERE id > (SELECT parcel FROM resets AS r WHERE r.tenant = parcels.tenant);
UPDATE manifests SET tenant = tenant + 4294967296
WHERE id > (SELECT manifest FROM resets AS r WHERE r.tenant = manifests.tenant);
UPDATE idempotency SET tenant = tenant + 4294967296
WHERE id > (SELECT idempotency FROM resets AS r WHERE r.tenant = idempotency.tenant);
UPDATE outbox SET tenant = tenant + 4294967296
WHERE id > (SELECT outbox FROM resets AS r WHERE r.tenant = outbox.tenant);
UPDATE carrier_exceptions SET tenant = tenant + 4294967296
WHERE parcel > (SELECT parcel FROM resets AS r WHERE r.tenant = carrier_exceptions.tenant);
UPDATE parcel_counts SET tenant = tenant + 4294967296 WHERE tenant IN (SELECT tenant FROM resets);
UPDATE parcel_totals SET tenant = tenant + 4294967296 WHERE tenant IN (SELECT tenant FROM resets);
UPDATE outbox_counts SET tenant = tenant + 4294967296 WHERE tenant IN (SELECT tenant FROM resets);
-- The search's index has the numbers in its entries: it is made again.
DELETE FROM term_pieces WHERE EXISTS (SELECT 1 FROM resets);
DELETE FROM term_runs WHERE EXISTS (SELECT 1 FROM resets);
UPDATE term_sweep SET next = 0 WHERE EXISTS (SELECT 1 FROM resets);

DROP VIEW living_parcels;
DROP VIEW living_manifests;
DROP VIEW living_idempotency;
DROP VIEW living_outbox;

-- Endpoints outlive resets, so they are found by the sandbox's own number. An event that has ended is due no more.
DROP TRIGGER outbox_due_set;
CREATE TRIGGER outbox_due_set AFTER INSERT ON outbox WHEN NEW.due IS NOT NULL BEGIN
    UPDATE webhook_endpoints SET next_due = NEW.due
    WHERE tenant = NEW.tenant & 4294967295 AND (next_due IS NULL OR NEW.due < next_due);
END;

DROP TRIGGER outbox_due_moved;
CREATE TRIGGER outbox_due_moved AFTER UPDATE OF due ON outbox WHEN OLD.due IS NOT NEW.due
    AND NEW.tenant NOT IN (SELECT number FROM ended_generations) BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM outbox WHERE tenant = NEW.tenant AND due IS NOT NULL)
    WHERE tenant = NEW.tenant & 4294967295;
END;

DROP TRIGGER outbox_due_gone;
CREATE TRIGGER outbox_due_gone AFTER DELETE ON outbox WHEN OLD.due IS NOT NULL
    AND OLD.tenant NOT IN (SELECT number FROM ended_generations) BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM outbox WHERE tenant = OLD.tenant AND due IS NOT NULL)
    WHERE tenant = OLD.tenant & 4294967295;
END;

-- Counts of events are a generation's, and go with it as a whole.
DROP TRIGGER outbox_recounted;
CREATE TRIGGER outbox_recounted AFTER UPDATE OF state ON outbox
WHEN (CASE OLD.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END)
    IS NOT (CASE NEW.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END) BEGIN
    UPDATE outbox_counts SET events = events - 1
    WHERE OLD.state IN (0, 1, 4) AND tenant = OLD.tenant AND held = (OLD.state = 4);
    INSERT INTO outbox_counts (tenant, held, events)
    SELECT NEW.tenant, NEW.state = 4, 1 WHERE NEW.state IN (0, 1, 4)
    ON CONFLICT DO UPDATE SET events = events + 1;
END;

DROP TRIGGER outbox_uncounted;
CREATE TRIGGER outbox_uncounted AFTER DELETE ON outbox WHEN OLD.state IN (0, 1, 4)
    AND OLD.tenant NOT IN (SELECT number FROM ended_generations) BEGIN
    UPDATE outbox_counts SET events = events - 1 WHERE tenant = OLD.tenant AND held = (OLD.state = 4);
END;

DROP TABLE resets;
