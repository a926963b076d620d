-- The table is no longer used: connections share an advisory lock instead, and a caller learns the outcome of a COMMIT
-- whose answer was cut off by repeating the write. The table stays, so that older programs recognise the database as
-- ours. Their servers cannot write, because a copy would not notice them.
DELETE FROM writers;
ALTER TABLE writers ADD CONSTRAINT writers_no_more CHECK (false);
