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

-- The chains. One first record a workspace, one child a record, no parent in another workspace.
CREATE TABLE progress_records (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    parent TEXT,
    status TEXT NOT NULL CHECK (status IN ('provisional', 'final')),
    confidence TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    body BLOB NOT NULL,
    proof BLOB NOT NULL,
    request_key TEXT,
    request_digest BLOB,
    UNIQUE (workspace, number),
    UNIQUE (workspace, id),
    UNIQUE (workspace, parent),
    FOREIGN KEY (workspace, parent) REFERENCES progress_records (workspace, id),
    CHECK ((parent IS NULL) = (number = 1)),
    CHECK ((request_key IS NULL) = (request_digest IS NULL))
) STRICT;

-- What workspaces tell their parents.
CREATE TABLE progress_signals (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    type TEXT NOT NULL,
    reason TEXT,
    about TEXT,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    parent TEXT REFERENCES progress_workspaces (id),
    UNIQUE (workspace, number)
) STRICT, WITHOUT ROWID;

-- What parents were told, once each.
CREATE TABLE progress_deliveries (
    signal TEXT PRIMARY KEY REFERENCES progress_signals (id),
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    UNIQUE (workspace, number)
) STRICT, WITHOUT ROWID;

-- What parents are still to be told. The one table here that shrinks: it is no record of
-- anything, only where to look, and recovery makes it anew from the signals and deliveries.
CREATE TABLE progress_waiting (
    parent TEXT NOT NULL,
    signal TEXT NOT NULL,
    PRIMARY KEY (parent, signal)
) STRICT, WITHOUT ROWID;

CREATE INDEX progress_workspaces_by_parent ON progress_workspaces (parent);
CREATE INDEX progress_records_final ON progress_records (workspace, number) WHERE status = 'final';
CREATE UNIQUE INDEX progress_records_by_key ON progress_records (workspace, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX progress_deliveries_by_time ON progress_deliveries (time);

-- A record comes at the end of its chain, later than the one before it. Refused by name where a
-- key is taken, since `INSERT OR REPLACE` would delete without asking the triggers below.
CREATE TRIGGER progress_records_at_end BEFORE INSERT ON progress_records
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM progress_records WHERE workspace = NEW.workspace)
  OR NEW.parent IS NOT (SELECT id FROM progress_records WHERE workspace = NEW.workspace ORDER BY number DESC LIMIT 1)
  OR NEW.time <= (SELECT time FROM progress_records WHERE workspace = NEW.workspace ORDER BY number DESC LIMIT 1)
  OR EXISTS (SELECT 1 FROM progress_records WHERE id = NEW.id OR (workspace = NEW.workspace AND request_key = NEW.request_key)) BEGIN
    SELECT RAISE(ABORT, 'a chain is append-only: records are added at its end');
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

CREATE TRIGGER progress_signals_once BEFORE INSERT ON progress_signals
WHEN EXISTS (SELECT 1 FROM progress_signals WHERE id = NEW.id OR (workspace = NEW.workspace AND number = NEW.number)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_deliveries_once BEFORE INSERT ON progress_deliveries
WHEN EXISTS (SELECT 1 FROM progress_deliveries WHERE signal = NEW.signal OR (workspace = NEW.workspace AND number = NEW.number)) BEGIN
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

CREATE TRIGGER progress_signals_no_update BEFORE UPDATE ON progress_signals BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_signals_no_delete BEFORE DELETE ON progress_signals BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_deliveries_no_update BEFORE UPDATE ON progress_deliveries BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_deliveries_no_delete BEFORE DELETE ON progress_deliveries BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;
