-- Who is signed in to the page. The cookie is not here: a row has its digest, and the token under
-- a key that only the cookie gives.
CREATE TABLE control_visits (
  cookie BLOB PRIMARY KEY,
  sealed BLOB NOT NULL,
  began INTEGER NOT NULL,
  latest INTEGER NOT NULL
);
