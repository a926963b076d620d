-- How many parcels a tenant has in all, by state and country: the total of a list without dates, which would add up
-- the counts of every day there ever was. Triggers keep it, so that no statement that counts can forget it.
CREATE TABLE parcel_totals (
    tenant  INTEGER NOT NULL,
    state   INTEGER NOT NULL,
    country TEXT NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (tenant, state, country)
) STRICT, WITHOUT ROWID;

INSERT INTO parcel_totals (tenant, state, country, total)
SELECT tenant, state, country, sum(total) FROM parcel_counts GROUP BY tenant, state, country;

CREATE TRIGGER parcel_counts_added AFTER INSERT ON parcel_counts BEGIN
    INSERT INTO parcel_totals (tenant, state, country, total)
    VALUES (NEW.tenant, NEW.state, NEW.country, NEW.total)
    ON CONFLICT DO UPDATE SET total = total + excluded.total;
END;

CREATE TRIGGER parcel_counts_changed AFTER UPDATE OF total ON parcel_counts BEGIN
    UPDATE parcel_totals SET total = total + NEW.total - OLD.total
    WHERE tenant = NEW.tenant AND state = NEW.state AND country = NEW.country;
END;

-- Nearly every count that goes is 0 by then.
CREATE TRIGGER parcel_counts_dropped AFTER DELETE ON parcel_counts WHEN OLD.total <> 0 BEGIN
    UPDATE parcel_totals SET total = total - OLD.total
    WHERE tenant = OLD.tenant AND state = OLD.state AND country = OLD.country;
END;

-- The days that have parcels of a state, to a country, or both, found without a look at the others. What they hold
-- never changes: a day's next parcel of the kind touches none of them.
CREATE INDEX parcel_counts_state ON parcel_counts (tenant, state, day, country);
CREATE INDEX parcel_counts_country ON parcel_counts (tenant, country, day, state);
CREATE INDEX parcel_counts_both ON parcel_counts (tenant, state, country, day);
