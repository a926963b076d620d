-- The dashboard shows a new secret in the answer to its form, and a sentence comes with a cookie: nothing waits here any more.
DROP TABLE dashboard_flashes;
