-- Atlases as they were when a session began with them: text and modules, by digest.
CREATE TABLE control_atlases (
  digest BYTEA PRIMARY KEY,
  atlas_id TEXT NOT NULL,
  version TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE TABLE control_modules (
  digest BYTEA NOT NULL,
  path TEXT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (digest, path)
);

-- Whose key signs an atlas: the first one seen, and no other.
CREATE TABLE control_stewards (
  atlas_id TEXT PRIMARY KEY,
  key TEXT NOT NULL,
  since BIGINT NOT NULL
);

-- Sessions, each with everything that is remembered of it.
CREATE TABLE control_sessions (
  id TEXT PRIMARY KEY,
  started BIGINT NOT NULL,
  ended BIGINT,
  sources TEXT NOT NULL,
  state TEXT NOT NULL
);
CREATE INDEX control_sessions_by_start ON control_sessions (started);

-- What was asked for, and what came of it.
CREATE TABLE control_requests (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  time BIGINT NOT NULL,
  action TEXT NOT NULL,
  decision TEXT NOT NULL,
  outcome TEXT
);
CREATE INDEX control_requests_by_session ON control_requests (session_id, time);

-- Each use of a limit, for as long as its window lasts.
CREATE TABLE control_uses (
  rate TEXT NOT NULL,
  principal TEXT NOT NULL,
  time BIGINT NOT NULL
);
CREATE INDEX control_uses_by_rate ON control_uses (rate, principal, time);

-- What stewards are still to be told.
CREATE TABLE control_notices (
  id TEXT PRIMARY KEY,
  due BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  webhook TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX control_notices_by_due ON control_notices (due);
