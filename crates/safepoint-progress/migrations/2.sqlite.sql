-- What each workspace took, by the runtime's own account. Every row carries all totals on from the
-- row before it, so that the last one tells everything, however long the chain is. A record after
-- it changes only what follows from the row of the record, and has a row here where more changes.
-- Unknown is not 0: tokens and cost are NULL until somebody reports them. `due` is the moment at
-- which something has to be done if nothing else happens.
CREATE TABLE progress_meters (
    workspace TEXT NOT NULL REFERENCES progress_workspaces (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    tokens INTEGER,
    cost INTEGER,
    wall INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    record_tokens INTEGER,
    record_cost INTEGER,
    record_wall INTEGER NOT NULL,
    warned INTEGER NOT NULL,
    exceeded INTEGER NOT NULL,
    due INTEGER,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (workspace, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX progress_meters_by_due ON progress_meters (due) WHERE due IS NOT NULL;

-- Up to when everything that was due is dealt with.
CREATE TABLE progress_sweeps (
    time INTEGER PRIMARY KEY
) STRICT;

-- What is to be done.
CREATE TABLE progress_tasks (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    originator TEXT NOT NULL,
    created INTEGER NOT NULL,
    entry INTEGER NOT NULL
) STRICT;

-- How far each task went. The last one is how far it is; the assigned ones are its workspaces.
CREATE TABLE progress_task_moves (
    task TEXT NOT NULL REFERENCES progress_tasks (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL,
    reason TEXT,
    workspace TEXT REFERENCES progress_workspaces (id),
    record TEXT REFERENCES progress_records (id),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (task, number),
    CHECK ((state = 'assigned') = (workspace IS NOT NULL)),
    CHECK ((state = 'completed') = (record IS NOT NULL))
) STRICT;

-- A workspace is for one task, ever.
CREATE UNIQUE INDEX progress_task_moves_by_workspace ON progress_task_moves (workspace) WHERE workspace IS NOT NULL;

-- What must be completed before a task is assigned.
CREATE TABLE progress_task_dependencies (
    task TEXT NOT NULL REFERENCES progress_tasks (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    dependency TEXT NOT NULL REFERENCES progress_tasks (id),
    entry INTEGER NOT NULL,
    PRIMARY KEY (task, number),
    UNIQUE (task, dependency),
    CHECK (task <> dependency)
) STRICT;

CREATE TRIGGER progress_meters_once BEFORE INSERT ON progress_meters
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM progress_meters WHERE workspace = NEW.workspace) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: rows are added at the end');
END;

CREATE TRIGGER progress_sweeps_once BEFORE INSERT ON progress_sweeps
WHEN NEW.time <= (SELECT max(time) FROM progress_sweeps) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: rows are added at the end');
END;

CREATE TRIGGER progress_tasks_once BEFORE INSERT ON progress_tasks
WHEN EXISTS (SELECT 1 FROM progress_tasks WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_task_moves_once BEFORE INSERT ON progress_task_moves
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM progress_task_moves WHERE task = NEW.task)
  OR EXISTS (SELECT 1 FROM progress_task_moves WHERE workspace = NEW.workspace) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: rows are added at the end');
END;

CREATE TRIGGER progress_task_dependencies_once BEFORE INSERT ON progress_task_dependencies
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM progress_task_dependencies WHERE task = NEW.task)
  OR EXISTS (SELECT 1 FROM progress_task_dependencies WHERE task = NEW.task AND dependency = NEW.dependency) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: rows are added at the end');
END;

CREATE TRIGGER progress_meters_no_update BEFORE UPDATE ON progress_meters BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_meters_no_delete BEFORE DELETE ON progress_meters BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_sweeps_no_update BEFORE UPDATE ON progress_sweeps BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_sweeps_no_delete BEFORE DELETE ON progress_sweeps BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_tasks_no_update BEFORE UPDATE ON progress_tasks BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_tasks_no_delete BEFORE DELETE ON progress_tasks BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_task_moves_no_update BEFORE UPDATE ON progress_task_moves BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_task_moves_no_delete BEFORE DELETE ON progress_task_moves BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_task_dependencies_no_update BEFORE UPDATE ON progress_task_dependencies BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_task_dependencies_no_delete BEFORE DELETE ON progress_task_dependencies BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;
