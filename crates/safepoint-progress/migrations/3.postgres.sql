-- Each row names the entry of the trail that tells of it; the entry has a mark of all columns.
-- What belongs to an integration names its source, since the entries are in the stream of that.

-- The directories of workspaces.
CREATE TABLE progress_places (
    workspace TEXT PRIMARY KEY REFERENCES progress_workspaces (id),
    path BYTEA NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('worktree', 'copy')),
    origin BYTEA NOT NULL,
    base TEXT NOT NULL,
    entry BIGINT NOT NULL
);

-- Which of them were removed.
CREATE TABLE progress_removed_places (
    workspace TEXT PRIMARY KEY REFERENCES progress_places (workspace),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL
);

-- What parents take over. They take turns: the next begins when the one before it has ended, so
-- that of two that begin at once only one finds its turn free.
CREATE TABLE progress_integrations (
    target TEXT NOT NULL REFERENCES progress_workspaces (id),
    turn BIGINT NOT NULL CHECK (turn >= 1),
    source TEXT NOT NULL,
    record TEXT NOT NULL REFERENCES progress_records (id),
    mode TEXT NOT NULL CHECK (mode IN ('normal', 'salvage')),
    strategy TEXT NOT NULL CHECK (strategy IN ('direct', 'layered', 'evaluated')),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (target, turn),
    UNIQUE (source, entry),
    UNIQUE (target, turn, source),
    CHECK (mode = 'normal' OR strategy = 'evaluated')
);

CREATE TABLE progress_integration_ends (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn BIGINT NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('success', 'conflict_resolved', 'aborted')),
    reason TEXT,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (target, turn),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
);

-- The actions by which directories were changed, or were to be.
CREATE TABLE progress_integration_actions (
    action TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
);

CREATE TABLE progress_conflicts (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn BIGINT NOT NULL,
    number BIGINT NOT NULL CHECK (number >= 1),
    type TEXT NOT NULL,
    path BYTEA,
    mergeable BIGINT NOT NULL,
    description TEXT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (target, turn, number),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
);

CREATE TABLE progress_resolutions (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn BIGINT NOT NULL,
    number BIGINT NOT NULL,
    strategy TEXT NOT NULL,
    choice TEXT,
    content BYTEA,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (target, turn, number),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, number) REFERENCES progress_conflicts (target, turn, number)
);

CREATE INDEX progress_integration_actions_by_turn ON progress_integration_actions (target, turn);

CREATE FUNCTION progress_in_turn() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.turn IS DISTINCT FROM (SELECT count(*) + 1 FROM safepoint.progress_integration_ends WHERE target = NEW.target)
            OR NOT EXISTS (SELECT 1 FROM safepoint.progress_records WHERE id = NEW.record AND workspace = NEW.source) THEN
            RAISE EXCEPTION 'progress is append-only: integrations take turns';
        END IF;
        RETURN NEW;
    END
$$;

CREATE TRIGGER progress_integrations_in_turn BEFORE INSERT ON progress_integrations FOR EACH ROW EXECUTE FUNCTION progress_in_turn();
CREATE TRIGGER progress_places_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_places FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_removed_places_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_removed_places FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_integration_ends_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_integration_ends FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_integration_actions_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_integration_actions FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_conflicts_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_conflicts FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_resolutions_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_resolutions FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_integrations_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_integrations FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
