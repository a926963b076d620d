-- Each INSERT of a parcel takes the next id of a sequence that starts after the blocks of ids that servers used before.
-- An older program finds no sequence, and cannot create parcels once its block is used up.
CREATE SEQUENCE parcel_rows;
SELECT setval('parcel_rows', last_value + 999) FROM parcel_ids WHERE is_called;
DROP SEQUENCE parcel_ids;

-- Generated tracking numbers now depend on the time in seconds and on chance, and no longer on this row.
DELETE FROM meta WHERE name = 'number_key';
