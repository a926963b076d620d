-- One index of all numbers: generated ones carried their row, under a key, and were in none (number_is_indexed = 0). The
-- column stays, unread: to take it away would write the whole table. Parcels of ended generations leave their numbers.
-- The key stays in `meta`: a program of before would not know the file without it, and could not say that it is newer.
UPDATE parcels SET environment = -id WHERE tenant IN (SELECT number FROM ended_generations);
DROP INDEX parcels_number;
CREATE UNIQUE INDEX parcels_number ON parcels (environment, number);
