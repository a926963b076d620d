-- The version of a parcel's label when it went under its air waybill: later ones name the flight. Times
-- cannot tell which came first of two things in one moment.
ALTER TABLE manifest_parcels ADD COLUMN label_version INTEGER NOT NULL DEFAULT 1;

UPDATE manifest_parcels SET label_version = (
    SELECT p.label_version - (p.reprinted_at IS NOT NULL AND m.submitted_at < p.reprinted_at)
    FROM parcels AS p JOIN manifests AS m ON m.id = manifest_parcels.manifest
    WHERE p.id = manifest_parcels.parcel)
WHERE parcel IN (SELECT id FROM parcels);
