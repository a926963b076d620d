-- No record up to this row exists any more, nor do its chunks and runs: a start looks for neither, so it can do without
-- the page of the oldest record.
ALTER TABLE last_record ADD COLUMN purged_to INTEGER NOT NULL DEFAULT 0;
