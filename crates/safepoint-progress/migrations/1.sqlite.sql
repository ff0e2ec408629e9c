-- Each row names the entry of the trail that tells of it, so that the two can be compared.
-- What is small has no rowid: one tree less, and one page less to be written for every record.

-- What a workspace was made as. A run is a tree; its root, the coordinator, holds the taxonomy.
CREATE TABLE progress_workspaces (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    parent TEXT REFERENCES progress_workspaces (id),
    role TEXT NOT NULL,
    originator TEXT NOT NULL,
    directive TEXT,
    taxonomy TEXT,
    budget TEXT,
    timeout INTEGER CHECK (timeout > 0),
    created INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    CHECK ((parent IS NULL) = (run = id)),
    CHECK ((parent IS NULL) = (role = 'coordinator')),
    CHECK ((parent IS NULL) = (taxonomy IS NOT NULL))
) STRICT;

-- Where each workspace went. The last one is where it stands; without any it is idle.
CREATE TABLE progress_moves (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL,
    former TEXT,
    reason TEXT,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (workspace, number)
) STRICT;

-- Whose a workspace is: digests of tokens. The last one counts; without a digest nobody gets in.
CREATE TABLE progress_bindings (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    digest BLOB,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (workspace, number)
) STRICT;

-- The chains. One first record a workspace, whose parent is the empty text, and one child a record.
-- Ids rise within a chain, so the order of parents is the order of the chain. `bytes` counts those
-- of all bodies up to and with its own.
CREATE TABLE progress_records (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    parent TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('provisional', 'final')),
    confidence TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    body BLOB NOT NULL,
    proof BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    request_key TEXT,
    request_digest BLOB,
    UNIQUE (workspace, parent),
    CHECK ((parent = '') = (number = 1)),
    CHECK ((request_key IS NULL) = (request_digest IS NULL))
) STRICT;

-- Which signals parents were told, once each: the entry of the trail that tells of the emission,
-- and the one that tells of the delivery. What a signal says is in the trail, and nowhere else.
-- A delivery right behind its emission has no row here: both are found together.
CREATE TABLE progress_deliveries (
    emission INTEGER PRIMARY KEY,
    delivery INTEGER NOT NULL,
    CHECK (delivery > emission + 1)
) STRICT;

-- What parents are still to be told. The one table here that shrinks: it is no record of
-- anything, only where to look, and recovery makes it anew from the trail and the deliveries.
CREATE TABLE progress_waiting (
    parent TEXT NOT NULL,
    emission INTEGER NOT NULL CHECK (emission >= 0),
    PRIMARY KEY (parent, emission)
) STRICT, WITHOUT ROWID;

CREATE INDEX progress_workspaces_by_parent ON progress_workspaces (parent);
CREATE INDEX progress_records_final ON progress_records (workspace, number) WHERE status = 'final';
CREATE UNIQUE INDEX progress_records_by_key ON progress_records (workspace, request_key) WHERE request_key IS NOT NULL;

-- A record comes at the end of its chain, later than the one before it, which is of the same
-- workspace. Refused by name where a key is taken, since `INSERT OR REPLACE` would delete without
-- asking the triggers below.
CREATE TRIGGER progress_records_at_end BEFORE INSERT ON progress_records
WHEN EXISTS (SELECT 1 FROM progress_records WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM progress_records WHERE workspace = NEW.workspace AND parent = NEW.parent)
  OR EXISTS (SELECT 1 FROM progress_records WHERE workspace = NEW.workspace AND request_key = NEW.request_key)
  OR (NEW.parent <> '' AND NOT EXISTS (
      SELECT 1 FROM progress_records
      WHERE id = NEW.parent AND workspace = NEW.workspace AND number = NEW.number - 1 AND id < NEW.id AND time < NEW.time)) BEGIN
    SELECT RAISE(ABORT, 'a chain is append-only: records are added at its end');
END;

-- A delivery is told of, as is what it delivers. Else somebody could have what is not there yet
-- counted as delivered.
CREATE TRIGGER progress_deliveries_told BEFORE INSERT ON progress_deliveries
WHEN EXISTS (SELECT 1 FROM progress_deliveries WHERE emission = NEW.emission)
  OR NOT EXISTS (SELECT 1 FROM trail_entries WHERE seq = NEW.emission AND kind = 'signal_emitted')
  OR NOT EXISTS (SELECT 1 FROM trail_entries WHERE seq = NEW.delivery AND kind = 'signal_delivered') BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: a delivery is told of');
END;

CREATE TRIGGER progress_workspaces_once BEFORE INSERT ON progress_workspaces
WHEN EXISTS (SELECT 1 FROM progress_workspaces WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_moves_once BEFORE INSERT ON progress_moves
WHEN EXISTS (SELECT 1 FROM progress_moves WHERE workspace = NEW.workspace AND number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_bindings_once BEFORE INSERT ON progress_bindings
WHEN EXISTS (SELECT 1 FROM progress_bindings WHERE workspace = NEW.workspace AND number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_workspaces_no_update BEFORE UPDATE ON progress_workspaces BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_workspaces_no_delete BEFORE DELETE ON progress_workspaces BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_moves_no_update BEFORE UPDATE ON progress_moves BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_moves_no_delete BEFORE DELETE ON progress_moves BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_bindings_no_update BEFORE UPDATE ON progress_bindings BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_bindings_no_delete BEFORE DELETE ON progress_bindings BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_records_no_update BEFORE UPDATE ON progress_records BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_records_no_delete BEFORE DELETE ON progress_records BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_deliveries_no_update BEFORE UPDATE ON progress_deliveries BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_deliveries_no_delete BEFORE DELETE ON progress_deliveries BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;
