-- The trace of the request that caused the event, if the request had a traceparent: the flags and the id (17 bytes).
ALTER TABLE outbox ADD COLUMN trace BLOB;
