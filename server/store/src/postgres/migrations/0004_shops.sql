-- What receivers see on the public page of the account that ships: a name, and where to ask. Both may be empty.
CREATE TABLE shops (
    account bigint PRIMARY KEY,
    name    text NOT NULL,
    contact text NOT NULL
);
