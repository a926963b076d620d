-- What a parcel is found by: its number and references, forwards and backwards, and the words of the receiver's name,
-- each with a letter for its kind (server/src/domain/search.rs). They are kept in sorted runs, and a run in pieces
-- (server/src/store/term_runs.rs), so that orders do not pay for them.
CREATE TABLE term_runs (
    id      INTEGER PRIMARY KEY,
    level   INTEGER NOT NULL,
    -- The parcels that may be in it.
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    -- Whether searches look at it.
    is_live INTEGER NOT NULL,
    -- The run that it is being merged into, or was when it is no longer live. A run that is neither live nor has one is
    -- being written.
    target  INTEGER
) STRICT;

CREATE TABLE term_pieces (
    run     INTEGER NOT NULL,
    first   BLOB NOT NULL,
    entries BLOB NOT NULL,
    UNIQUE (run, first)
) STRICT;

-- Up to which row parcels are in the runs. No parcel is created at or below it any more.
CREATE TABLE term_sweep (
    next INTEGER NOT NULL
) STRICT;

INSERT INTO term_sweep (next) VALUES (0);

-- An air waybill is found by its beginning in the index of its own, by its ending in this one, and leads to its parcels.
CREATE INDEX manifests_awb_end ON manifests (tenant, substr(awb, -4), awb);
CREATE INDEX manifest_parcels_manifest ON manifest_parcels (manifest);
