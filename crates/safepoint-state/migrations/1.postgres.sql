-- Restorable states, one row each. The record holds everything about one; the entry of the
-- trail that tells of it has the digest of the row.
CREATE TABLE state_snapshots (
  id TEXT PRIMARY KEY,
  number BIGINT NOT NULL UNIQUE,
  workspace BYTEA NOT NULL,
  created BIGINT NOT NULL,
  expiry BIGINT NOT NULL,
  pinned BIGINT NOT NULL,
  record TEXT NOT NULL,
  entry BIGINT NOT NULL
);
CREATE INDEX state_snapshots_by_workspace ON state_snapshots (workspace, number);

-- What happened between two of them, and the entry that tells of it.
CREATE TABLE state_actions (
  action_id TEXT PRIMARY KEY,
  number BIGINT NOT NULL UNIQUE,
  workspace BYTEA NOT NULL,
  time BIGINT NOT NULL,
  session_id TEXT,
  action TEXT NOT NULL,
  summary TEXT NOT NULL,
  decision TEXT,
  outcome TEXT NOT NULL,
  before_id TEXT NOT NULL,
  after_id TEXT NOT NULL,
  undoes TEXT,
  entry BIGINT NOT NULL
);
CREATE INDEX state_actions_by_workspace ON state_actions (workspace, number);
