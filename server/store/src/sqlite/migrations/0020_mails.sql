-- E-mails about parcels, one for each event and recipient that bring one, written in the commit of the event. No address
-- is in here: it is read from the order when the e-mail is sent.
CREATE TABLE mails (
    id         INTEGER PRIMARY KEY,
    parcel     INTEGER NOT NULL,
    sequence   INTEGER NOT NULL,
    recipient  INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- When it may be sent, or when its lease ends; nothing once it is done.
    due        INTEGER,
    -- The number of the lease under which it is being sent; 0 while it is not.
    lease      INTEGER NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    status     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX mails_due ON mails (due) WHERE due IS NOT NULL;
CREATE UNIQUE INDEX mails_event ON mails (parcel, sequence, recipient);
-- A parcel is once on its way.
CREATE UNIQUE INDEX mails_on_its_way ON mails (parcel, recipient) WHERE kind = 0;
CREATE INDEX mails_created_at ON mails (created_at);

-- Addresses that get no e-mails of an account, as keyed hashes of both. They outlive parcels and resets.
CREATE TABLE mail_optouts (
    address BLOB PRIMARY KEY,
    why     INTEGER NOT NULL,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many e-mails an address or an account had since a moment, as a keyed hash.
CREATE TABLE mail_counts (
    whose BLOB    NOT NULL,
    since INTEGER NOT NULL,
    mails INTEGER NOT NULL,
    PRIMARY KEY (whose, since)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_counts_since ON mail_counts (since);

-- The kinds of e-mails that an account has switched off, as bits.
CREATE TABLE mails_off (
    account INTEGER PRIMARY KEY,
    kinds   INTEGER NOT NULL
) STRICT;

-- Since when e-mails are sent; no row while they are not.
CREATE TABLE mail_since (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
) STRICT;
