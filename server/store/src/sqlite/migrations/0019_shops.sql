-- What receivers see on the public page of the account that ships: a name, and where to ask. Both may be empty.
CREATE TABLE shops (
    account INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    contact TEXT NOT NULL
) STRICT;
