-- Each row names the entry of the trail that tells of it; the entry has a mark of all columns.
-- What belongs to an integration names its source, since the entries are in the stream of that.

-- The directories of workspaces.
CREATE TABLE progress_places (
    workspace TEXT PRIMARY KEY REFERENCES progress_workspaces (id),
    path BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('worktree', 'copy')),
    origin BLOB NOT NULL,
    base TEXT NOT NULL,
    entry INTEGER NOT NULL
) STRICT;

-- Which of them were removed.
CREATE TABLE progress_removed_places (
    workspace TEXT PRIMARY KEY REFERENCES progress_places (workspace),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL
) STRICT;

-- What parents take over. They take turns: the next begins when the one before it has ended, so
-- that of two that begin at once only one finds its turn free.
CREATE TABLE progress_integrations (
    target TEXT NOT NULL REFERENCES progress_workspaces (id),
    turn INTEGER NOT NULL CHECK (turn >= 1),
    source TEXT NOT NULL,
    record TEXT NOT NULL REFERENCES progress_records (id),
    mode TEXT NOT NULL CHECK (mode IN ('normal', 'salvage')),
    strategy TEXT NOT NULL CHECK (strategy IN ('direct', 'layered', 'evaluated')),
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (target, turn),
    UNIQUE (source, entry),
    UNIQUE (target, turn, source),
    CHECK (mode = 'normal' OR strategy = 'evaluated')
) STRICT;

CREATE TABLE progress_integration_ends (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn INTEGER NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('success', 'conflict_resolved', 'aborted')),
    reason TEXT,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (target, turn),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
) STRICT;

-- The actions by which directories were changed, or were to be.
CREATE TABLE progress_integration_actions (
    action TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
) STRICT;

CREATE TABLE progress_conflicts (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn INTEGER NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    type TEXT NOT NULL,
    path BLOB,
    mergeable INTEGER NOT NULL,
    description TEXT NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (target, turn, number),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, source) REFERENCES progress_integrations (target, turn, source)
) STRICT;

CREATE TABLE progress_resolutions (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    turn INTEGER NOT NULL,
    number INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    choice TEXT,
    content BLOB,
    time INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (target, turn, number),
    UNIQUE (source, entry),
    FOREIGN KEY (target, turn, number) REFERENCES progress_conflicts (target, turn, number)
) STRICT;

CREATE INDEX progress_integration_actions_by_turn ON progress_integration_actions (target, turn);

CREATE TRIGGER progress_integrations_in_turn BEFORE INSERT ON progress_integrations
WHEN NEW.turn IS NOT (SELECT count(*) + 1 FROM progress_integration_ends WHERE target = NEW.target)
  OR NOT EXISTS (SELECT 1 FROM progress_records WHERE id = NEW.record AND workspace = NEW.source)
  OR EXISTS (SELECT 1 FROM progress_integrations WHERE (target = NEW.target AND turn = NEW.turn) OR (source = NEW.source AND entry = NEW.entry)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: integrations take turns');
END;

CREATE TRIGGER progress_places_once BEFORE INSERT ON progress_places
WHEN EXISTS (SELECT 1 FROM progress_places WHERE workspace = NEW.workspace OR path = NEW.path) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_removed_places_once BEFORE INSERT ON progress_removed_places
WHEN EXISTS (SELECT 1 FROM progress_removed_places WHERE workspace = NEW.workspace) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_integration_ends_once BEFORE INSERT ON progress_integration_ends
WHEN EXISTS (SELECT 1 FROM progress_integration_ends WHERE (target = NEW.target AND turn = NEW.turn) OR (source = NEW.source AND entry = NEW.entry)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_integration_actions_once BEFORE INSERT ON progress_integration_actions
WHEN EXISTS (SELECT 1 FROM progress_integration_actions WHERE action = NEW.action OR (source = NEW.source AND entry = NEW.entry)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_conflicts_once BEFORE INSERT ON progress_conflicts
WHEN EXISTS (SELECT 1 FROM progress_conflicts WHERE (target = NEW.target AND turn = NEW.turn AND number = NEW.number) OR (source = NEW.source AND entry = NEW.entry)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_resolutions_once BEFORE INSERT ON progress_resolutions
WHEN EXISTS (SELECT 1 FROM progress_resolutions WHERE (target = NEW.target AND turn = NEW.turn AND number = NEW.number) OR (source = NEW.source AND entry = NEW.entry)) BEGIN
    SELECT RAISE(ABORT, 'progress is append-only: nothing is replaced');
END;

CREATE TRIGGER progress_places_no_update BEFORE UPDATE ON progress_places BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_places_no_delete BEFORE DELETE ON progress_places BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_removed_places_no_update BEFORE UPDATE ON progress_removed_places BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_removed_places_no_delete BEFORE DELETE ON progress_removed_places BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integration_ends_no_update BEFORE UPDATE ON progress_integration_ends BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integration_ends_no_delete BEFORE DELETE ON progress_integration_ends BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integration_actions_no_update BEFORE UPDATE ON progress_integration_actions BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integration_actions_no_delete BEFORE DELETE ON progress_integration_actions BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_conflicts_no_update BEFORE UPDATE ON progress_conflicts BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_conflicts_no_delete BEFORE DELETE ON progress_conflicts BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_resolutions_no_update BEFORE UPDATE ON progress_resolutions BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_resolutions_no_delete BEFORE DELETE ON progress_resolutions BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integrations_no_update BEFORE UPDATE ON progress_integrations BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;

CREATE TRIGGER progress_integrations_no_delete BEFORE DELETE ON progress_integrations BEGIN
    SELECT RAISE(ABORT, 'progress is append-only');
END;
