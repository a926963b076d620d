-- Whether any reset is under way is asked once a statement, not once a row: a list that counts 300,000 rows
-- takes two thirds of the time.
DROP VIEW living_parcels;
CREATE VIEW living_parcels AS SELECT * FROM parcels AS p
WHERE NOT EXISTS (SELECT 1 FROM resets)
    OR NOT EXISTS (SELECT 1 FROM resets AS r WHERE r.tenant = p.tenant AND r.parcel >= p.id);
