-- What each workspace took, by the runtime's own account. Every row carries all totals on from the
-- row before it, so that the last one tells everything, however long the chain is. A record after
-- it changes only what follows from the row of the record, and has a row here where more changes.
-- Unknown is not 0: tokens and cost are NULL until somebody reports them. `due` is the moment at
-- which something has to be done if nothing else happens.
CREATE TABLE progress_meters (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    tokens BIGINT,
    cost BIGINT,
    wall BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    counted BIGINT NOT NULL,
    record_tokens BIGINT,
    record_cost BIGINT,
    record_wall BIGINT NOT NULL,
    warned BIGINT NOT NULL,
    exceeded BIGINT NOT NULL,
    due BIGINT,
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (workspace, number)
);

CREATE INDEX progress_meters_by_due ON progress_meters (due) WHERE due IS NOT NULL;

-- Up to when everything that was due is dealt with.
CREATE TABLE progress_sweeps (
    time BIGINT PRIMARY KEY
);

-- What is to be done.
CREATE TABLE progress_tasks (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    originator TEXT NOT NULL,
    created BIGINT NOT NULL,
    entry BIGINT NOT NULL
);

-- How far each task went. The last one is how far it is; the assigned ones are its workspaces.
CREATE TABLE progress_task_moves (
    task TEXT NOT NULL REFERENCES progress_tasks (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL,
    reason TEXT,
    workspace TEXT REFERENCES progress_workspaces (id),
    record TEXT REFERENCES progress_records (id),
    time BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    PRIMARY KEY (task, number),
    CHECK ((state = 'assigned') = (workspace IS NOT NULL)),
    CHECK ((state = 'completed') = (record IS NOT NULL))
);

-- A workspace is for one task, ever.
CREATE UNIQUE INDEX progress_task_moves_by_workspace ON progress_task_moves (workspace) WHERE workspace IS NOT NULL;

-- What must be completed before a task is assigned.
CREATE TABLE progress_task_dependencies (
    task TEXT NOT NULL REFERENCES progress_tasks (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    dependency TEXT NOT NULL REFERENCES progress_tasks (id),
    entry BIGINT NOT NULL,
    PRIMARY KEY (task, number),
    UNIQUE (task, dependency),
    CHECK (task <> dependency)
);

-- Rows come at the end of what they continue.
CREATE FUNCTION progress_meters_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM safepoint.progress_meters WHERE workspace = NEW.workspace) THEN
            RAISE EXCEPTION 'progress is append-only: rows are added at the end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE FUNCTION progress_task_moves_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM safepoint.progress_task_moves WHERE task = NEW.task) THEN
            RAISE EXCEPTION 'progress is append-only: rows are added at the end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE FUNCTION progress_task_dependencies_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM safepoint.progress_task_dependencies WHERE task = NEW.task) THEN
            RAISE EXCEPTION 'progress is append-only: rows are added at the end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE FUNCTION progress_sweeps_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.time <= (SELECT max(time) FROM safepoint.progress_sweeps) THEN
            RAISE EXCEPTION 'progress is append-only: rows are added at the end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE TRIGGER progress_meters_at_end BEFORE INSERT ON progress_meters FOR EACH ROW EXECUTE FUNCTION progress_meters_at_end();
CREATE TRIGGER progress_task_moves_at_end BEFORE INSERT ON progress_task_moves FOR EACH ROW EXECUTE FUNCTION progress_task_moves_at_end();
CREATE TRIGGER progress_task_dependencies_at_end BEFORE INSERT ON progress_task_dependencies FOR EACH ROW EXECUTE FUNCTION progress_task_dependencies_at_end();
CREATE TRIGGER progress_sweeps_at_end BEFORE INSERT ON progress_sweeps FOR EACH ROW EXECUTE FUNCTION progress_sweeps_at_end();
CREATE TRIGGER progress_meters_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_meters FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_sweeps_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_sweeps FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_tasks_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_tasks FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_task_moves_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_task_moves FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
CREATE TRIGGER progress_task_dependencies_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON progress_task_dependencies FOR EACH STATEMENT EXECUTE FUNCTION progress_refuse();
