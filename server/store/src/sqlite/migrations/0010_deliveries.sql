-- Each commit that leases events takes the next number, which no reset gives out again. A delivery on its
-- way is known by event, tenant and lease; the row's id would be another event's once the row is deleted.
CREATE TABLE leases (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO leases (only, last) SELECT 1, coalesce(max(lease), 0) FROM outbox;

-- The last lease when the row was written: what was leased until then was another row.
ALTER TABLE outbox ADD COLUMN after_lease INTEGER NOT NULL DEFAULT 0;

-- When the next of an endpoint's events is due, so that nobody looks at the others. Triggers keep it, so
-- that no statement that moves a due time can forget it.
ALTER TABLE webhook_endpoints ADD COLUMN next_due INTEGER;

UPDATE webhook_endpoints SET next_due =
    (SELECT min(due) FROM outbox WHERE tenant = webhook_endpoints.tenant AND due IS NOT NULL);

CREATE INDEX webhook_endpoints_due ON webhook_endpoints (next_due)
    WHERE enabled = 1 AND next_due IS NOT NULL;

CREATE TRIGGER outbox_due_set AFTER INSERT ON outbox WHEN NEW.due IS NOT NULL BEGIN
    UPDATE webhook_endpoints SET next_due = NEW.due
    WHERE tenant = NEW.tenant AND (next_due IS NULL OR NEW.due < next_due);
END;

CREATE TRIGGER outbox_due_moved AFTER UPDATE OF due ON outbox WHEN OLD.due IS NOT NEW.due BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM outbox WHERE tenant = NEW.tenant AND due IS NOT NULL)
    WHERE tenant = NEW.tenant;
END;

CREATE TRIGGER outbox_due_gone AFTER DELETE ON outbox WHEN OLD.due IS NOT NULL BEGIN
    UPDATE webhook_endpoints SET next_due =
        (SELECT min(due) FROM outbox WHERE tenant = OLD.tenant AND due IS NOT NULL)
    WHERE tenant = OLD.tenant;
END;

-- How many events a tenant's endpoint has still to be sent (held = 0), and how many are held (1).
CREATE TABLE outbox_counts (
    tenant INTEGER NOT NULL,
    held   INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (tenant, held)
) STRICT, WITHOUT ROWID;

INSERT INTO outbox_counts (tenant, held, events)
SELECT tenant, state = 4, count(*) FROM outbox WHERE state IN (0, 1, 4) GROUP BY 1, 2;

CREATE TRIGGER outbox_counted AFTER INSERT ON outbox WHEN NEW.state IN (0, 1, 4) BEGIN
    INSERT INTO outbox_counts (tenant, held, events) VALUES (NEW.tenant, NEW.state = 4, 1)
    ON CONFLICT DO UPDATE SET events = events + 1;
END;

CREATE TRIGGER outbox_recounted AFTER UPDATE OF state ON outbox
WHEN (CASE OLD.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END)
    IS NOT (CASE NEW.state WHEN 4 THEN 1 WHEN 0 THEN 0 WHEN 1 THEN 0 END) BEGIN
    UPDATE outbox_counts SET events = events - 1
    WHERE OLD.state IN (0, 1, 4) AND tenant = OLD.tenant AND held = (OLD.state = 4);
    INSERT INTO outbox_counts (tenant, held, events)
    SELECT NEW.tenant, NEW.state = 4, 1 WHERE NEW.state IN (0, 1, 4)
    ON CONFLICT DO UPDATE SET events = events + 1;
END;

CREATE TRIGGER outbox_uncounted AFTER DELETE ON outbox WHEN OLD.state IN (0, 1, 4) BEGIN
    UPDATE outbox_counts SET events = events - 1 WHERE tenant = OLD.tenant AND held = (OLD.state = 4);
END;

CREATE INDEX outbox_held ON outbox (tenant, created_at) WHERE state = 4;
CREATE INDEX outbox_missed ON outbox (tenant, id) WHERE state > 2;
CREATE INDEX outbox_leased ON outbox (tenant) WHERE leased = 1;

-- The highest id that a manifest had: none is given twice, lest a parcel or an event that outlives its
-- manifest is another's.
CREATE TABLE last_manifest (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id   INTEGER NOT NULL
) STRICT;

INSERT INTO last_manifest (only, id) SELECT 1, max(
    coalesce((SELECT max(id) FROM manifests), 0),
    coalesce((SELECT max(manifest) FROM manifest_parcels), 0),
    coalesce((SELECT max(manifest) FROM outbox), 0));
