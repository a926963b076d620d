-- Parcels' ids are given by the INSERT, one by one, behind the blocks that servers drew them from before. A program of
-- before finds no sequence and creates nothing when its block is used up.
CREATE SEQUENCE parcel_rows;
SELECT setval('parcel_rows', last_value + 999) FROM parcel_ids WHERE is_called;
DROP SEQUENCE parcel_ids;

-- Generated numbers follow from the second and from chance, no longer from the row under this key.
DELETE FROM meta WHERE name = 'number_key';
