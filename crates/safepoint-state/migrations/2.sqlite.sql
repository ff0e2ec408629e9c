-- Which change a snapshot has authorised: one, and then no other.
ALTER TABLE state_snapshots ADD COLUMN spent_by TEXT;

-- States that have no provider: their values as they are now.
CREATE TABLE state_values (
  workspace BLOB NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (workspace, key)
);
