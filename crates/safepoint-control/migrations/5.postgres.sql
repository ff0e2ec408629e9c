-- Who is signed in to the page. The cookie is not here: a row has its digest, and the token under
-- a key that only the cookie gives.
CREATE TABLE control_visits (
  cookie BYTEA PRIMARY KEY,
  sealed BYTEA NOT NULL,
  began BIGINT NOT NULL,
  latest BIGINT NOT NULL
);
