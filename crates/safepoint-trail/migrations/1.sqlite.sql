-- Which log this is. One row, written once.
CREATE TABLE trail_log (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    verifier_key TEXT NOT NULL
) STRICT;

-- The signed head over all entries. One row, moved by every commit that adds entries.
CREATE TABLE trail_head (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    size INTEGER NOT NULL,
    peaks BLOB NOT NULL,
    note TEXT NOT NULL
) STRICT;

CREATE TABLE trail_entries (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    stream TEXT NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    action_id TEXT,
    body TEXT NOT NULL,
    prev_hash BLOB,
    hash BLOB NOT NULL
) STRICT;

-- No index on id or time: times rise with seq, and an id begins with its time.
-- What is chained to, and what rows are judged by, is the newest entry of a stream: it is
-- found in the entries themselves, which are signed, and in nothing that could be emptied.
CREATE INDEX trail_by_stream ON trail_entries (stream);

-- Kinds, actors and actions repeat, so an index entry for each would cost every
-- append and tell little: it is enough to know in which blocks of the trail one
-- occurs at all.
CREATE TABLE trail_blocks (
    name TEXT NOT NULL,
    block INTEGER NOT NULL CHECK (block BETWEEN 0 AND 36028797018963966),
    PRIMARY KEY (name, block)
) STRICT, WITHOUT ROWID;
CREATE INDEX trail_blocks_by_block ON trail_blocks (block);

CREATE TRIGGER trail_entries_in_sequence BEFORE INSERT ON trail_entries
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM trail_entries) BEGIN
    SELECT RAISE(ABORT, 'the trail is append-only: entries are added at its end');
END;

CREATE TRIGGER trail_entries_no_update BEFORE UPDATE ON trail_entries BEGIN
    SELECT RAISE(ABORT, 'the trail is append-only: no entry is changed');
END;

CREATE TRIGGER trail_entries_no_delete BEFORE DELETE ON trail_entries BEGIN
    SELECT RAISE(ABORT, 'the trail is append-only: no entry is deleted');
END;

CREATE TRIGGER trail_blocks_no_update BEFORE UPDATE ON trail_blocks BEGIN
    SELECT RAISE(ABORT, 'the trail is append-only');
END;

CREATE TRIGGER trail_blocks_no_delete BEFORE DELETE ON trail_blocks BEGIN
    SELECT RAISE(ABORT, 'the trail is append-only');
END;

CREATE TRIGGER trail_log_no_update BEFORE UPDATE ON trail_log BEGIN
    SELECT RAISE(ABORT, 'a store keeps its trail');
END;

CREATE TRIGGER trail_log_no_delete BEFORE DELETE ON trail_log BEGIN
    SELECT RAISE(ABORT, 'a store keeps its trail');
END;

CREATE TRIGGER trail_head_no_delete BEFORE DELETE ON trail_head BEGIN
    SELECT RAISE(ABORT, 'a store keeps its trail');
END;
