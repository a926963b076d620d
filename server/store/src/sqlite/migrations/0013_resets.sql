-- The resets of sandboxes that are under way: nearly always none. Of each table, what the tenant has up to
-- this row is gone for everybody from the moment the reset began, and is deleted page by page.
CREATE TABLE resets (
    tenant      INTEGER PRIMARY KEY,
    parcel      INTEGER NOT NULL,
    manifest    INTEGER NOT NULL,
    idempotency INTEGER NOT NULL,
    outbox      INTEGER NOT NULL,
    -- What was deleted so far, for the answer.
    parcels     INTEGER NOT NULL DEFAULT 0,
    manifests   INTEGER NOT NULL DEFAULT 0,
    events      INTEGER NOT NULL DEFAULT 0,
    keys        INTEGER NOT NULL DEFAULT 0,
    deliveries  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What is there for callers. Every read names these, and what erases names the tables.
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.parcel >= p.id);

CREATE VIEW living_manifests AS SELECT * FROM manifests AS m
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = m.tenant AND r.manifest >= m.id);

CREATE VIEW living_idempotency AS SELECT * FROM idempotency AS i
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = i.tenant AND r.idempotency >= i.id);

CREATE VIEW living_outbox AS SELECT * FROM outbox AS o
WHERE NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = o.tenant AND r.outbox >= o.id);

-- What a reset hides is due no more and counts nowhere: both were taken off as a whole when it began, so its
-- rows change nothing when they go.
DROP TRIGGER outbox_due_moved;
CREATE TRIGGER outbox_due_moved AFTER UPDATE OF due ON outbox WHEN OLD.due IS NOT NEW.due
    AND NOT EXISTS (SELECT 1 FROM resets WHERE tenant = NEW.tenant AND outbox >= NEW.id) BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM living_outbox WHERE tenant = NEW.tenant AND due IS NOT NULL)
    WHERE tenant = NEW.tenant;
END;

DROP TRIGGER outbox_due_gone;
CREATE TRIGGER outbox_due_gone AFTER DELETE ON outbox WHEN OLD.due IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM resets WHERE tenant = OLD.tenant AND outbox >= OLD.id) BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM living_outbox WHERE tenant = OLD.tenant AND due IS NOT NULL)
    WHERE tenant = OLD.tenant;
END;

DROP TRIGGER outbox_recounted;
CREATE TRIGGER outbox_recounted AFTER UPDATE OF state ON outbox
WHEN (CASE OLD.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END)
    IS NOT (CASE NEW.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END)
    AND NOT EXISTS (SELECT 1 FROM resets WHERE tenant = NEW.tenant AND outbox >= NEW.id) BEGIN
    UPDATE outbox_counts SET events = events - 1
    WHERE OLD.state IN (0, 1, 4) AND tenant = OLD.tenant AND held = (OLD.state = 4);
    INSERT INTO outbox_counts (tenant, held, events)
    SELECT NEW.tenant, NEW.state = 4, 1 WHERE NEW.state IN (0, 1, 4)
    ON CONFLICT DO UPDATE SET events = events + 1;
END;

DROP TRIGGER outbox_uncounted;
CREATE TRIGGER outbox_uncounted AFTER DELETE ON outbox WHEN OLD.state IN (0, 1, 4)
    AND NOT EXISTS (SELECT 1 FROM resets WHERE tenant = OLD.tenant AND outbox >= OLD.id) BEGIN
    UPDATE outbox_counts SET events = events - 1 WHERE tenant = OLD.tenant AND held = (OLD.state = 4);
END;
