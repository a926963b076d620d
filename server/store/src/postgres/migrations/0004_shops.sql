-- The name and the contact that receivers see on the public page of the account that ships. Both may be empty.
CREATE TABLE shops (
    account bigint PRIMARY KEY,
    name    text NOT NULL,
    contact text NOT NULL
);
