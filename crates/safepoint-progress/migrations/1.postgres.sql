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

-- The chains. One first record a workspace, whose parent is the empty text, and one child a record.
-- Ids rise within a chain, so the order of parents is the order of the chain. `bytes` counts those
-- of all bodies up to and with its own.
CREATE TABLE progress_records (
    id TEXT COLLATE "C" PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    parent TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('provisional', 'final')),
    confidence TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    body BYTEA NOT NULL,
    proof BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    request_key TEXT,
    request_digest BYTEA,
    UNIQUE (workspace, parent),
    CHECK ((parent = '') = (number = 1)),
    CHECK ((request_key IS NULL) = (request_digest IS NULL))
);

-- Which signals parents were told, once each: the entry of the trail that tells of the emission,
-- and the one that tells of the delivery. What a signal says is in the trail, and nowhere else.
-- A delivery right behind its emission has no row here: both are found together.
CREATE TABLE progress_deliveries (
    emission BIGINT PRIMARY KEY,
    delivery BIGINT NOT NULL,
    CHECK (delivery > emission + 1)
);

-- What parents are still to be told. The one table here that shrinks: it is no record of
-- anything, only where to look, and recovery makes it anew from the trail and the deliveries.
CREATE TABLE progress_waiting (
    parent TEXT NOT NULL,
    emission BIGINT NOT NULL CHECK (emission >= 0),
    PRIMARY KEY (parent, emission)
);

CREATE INDEX progress_workspaces_by_parent ON progress_workspaces (parent);
CREATE INDEX progress_records_final ON progress_records (workspace, number) WHERE status = 'final';
CREATE UNIQUE INDEX progress_records_by_key ON progress_records (workspace, request_key) WHERE request_key IS NOT NULL;

CREATE FUNCTION progress_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'progress is append-only';
    END
$$;

CREATE FUNCTION progress_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM safepoint.progress_records WHERE workspace = NEW.workspace AND parent = NEW.parent)
            OR (NEW.parent <> '' AND NOT EXISTS (
                SELECT 1 FROM safepoint.progress_records
                WHERE id = NEW.parent AND workspace = NEW.workspace AND number = NEW.number - 1 AND id < NEW.id AND time < NEW.time)) THEN
            RAISE EXCEPTION 'a chain is append-only: records are added at its end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE FUNCTION progress_told() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM safepoint.trail_entries WHERE seq = NEW.emission AND kind = 'signal_emitted')
            OR NOT EXISTS (SELECT 1 FROM safepoint.trail_entries WHERE seq = NEW.delivery AND kind = 'signal_delivered') THEN
            RAISE EXCEPTION 'progress is append-only: a delivery is told of';
        END IF;
        RETURN NEW;
    END
$$;

CREATE TRIGGER progress_deliveries_told BEFORE INSERT ON progress_deliveries FOR EACH ROW EXECUTE FUNCTION progress_told();
CREATE TRIGGER progress_records_at_end BEFORE INSERT ON progress_records FOR EACH ROW EXECUTE FUNCTION progress_at_end();
CREATE TRIGGER progress_workspaces_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_workspaces FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_moves_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_moves FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_bindings_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_bindings FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_records_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_records FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_deliveries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_deliveries FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
