-- Each row names the entry of the trail that tells of it, so that the two can be compared.

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
    timeout BIGINT CHECK (timeout > 0),
    created BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    CHECK ((parent IS NULL) = (run = id)),
    CHECK ((parent IS NULL) = (role = 'coordinator')),
    CHECK ((parent IS NULL) = (taxonomy IS NOT NULL))
);

-- Where each workspace went. The last one is where it stands; without any it is idle.
CREATE TABLE progress_moves (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL,
    former TEXT,
    reason TEXT,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (workspace, number)
);

-- Whose a workspace is: digests of tokens. The last one counts; without a digest nobody gets in.
CREATE TABLE progress_bindings (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    digest BYTEA,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (workspace, number)
);

-- The chains. One first record a workspace, one child a record, no parent in another workspace.
CREATE TABLE progress_records (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    parent TEXT,
    status TEXT NOT NULL CHECK (status IN ('provisional', 'final')),
    confidence TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    body BYTEA NOT NULL,
    proof BYTEA NOT NULL,
    request_key TEXT,
    request_digest BYTEA,
    UNIQUE (workspace, number),
    UNIQUE (workspace, id),
    UNIQUE (workspace, parent),
    FOREIGN KEY (workspace, parent) REFERENCES progress_records (workspace, id),
    CHECK ((parent IS NULL) = (number = 1)),
    CHECK ((request_key IS NULL) = (request_digest IS NULL))
);

-- What workspaces tell their parents.
CREATE TABLE progress_signals (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    type TEXT NOT NULL,
    reason TEXT,
    about TEXT,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    parent TEXT REFERENCES progress_workspaces (id),
    UNIQUE (workspace, number)
);

-- What parents were told, once each.
CREATE TABLE progress_deliveries (
    signal TEXT PRIMARY KEY REFERENCES progress_signals (id),
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    UNIQUE (workspace, number)
);

-- What parents are still to be told. The one table here that shrinks: it is no record of
-- anything, only where to look, and recovery makes it anew from the signals and deliveries.
CREATE TABLE progress_waiting (
    parent TEXT NOT NULL,
    signal TEXT NOT NULL,
    PRIMARY KEY (parent, signal)
);

CREATE INDEX progress_workspaces_by_parent ON progress_workspaces (parent);
CREATE INDEX progress_records_final ON progress_records (workspace, number) WHERE status = 'final';
CREATE UNIQUE INDEX progress_records_by_key ON progress_records (workspace, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX progress_deliveries_by_time ON progress_deliveries (time);

CREATE FUNCTION progress_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'progress is append-only';
    END
$$;

CREATE FUNCTION progress_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM safepoint.progress_records WHERE workspace = NEW.workspace)
            OR NEW.parent IS DISTINCT FROM (SELECT id FROM safepoint.progress_records WHERE workspace = NEW.workspace ORDER BY number DESC LIMIT 1)
            OR NEW.time <= (SELECT time FROM safepoint.progress_records WHERE workspace = NEW.workspace ORDER BY number DESC LIMIT 1) THEN
            RAISE EXCEPTION 'a chain is append-only: records are added at its end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE TRIGGER progress_records_at_end BEFORE INSERT ON progress_records FOR EACH ROW EXECUTE FUNCTION progress_at_end();
CREATE TRIGGER progress_workspaces_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_workspaces FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_moves_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_moves FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_bindings_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_bindings FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_records_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_records FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_signals_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_signals FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_deliveries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_deliveries FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
