-- Which log this is. One row, written once.
CREATE TABLE trail_log (
    only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
    verifier_key TEXT NOT NULL
);

-- The signed head over all entries. One row, moved by every commit that adds entries.
CREATE TABLE trail_head (
    only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
    size BIGINT NOT NULL,
    peaks BYTEA NOT NULL,
    note TEXT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE trail_entries (
    seq BIGINT PRIMARY KEY,
    id TEXT NOT NULL,
    time BIGINT NOT NULL,
    stream TEXT NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    action_id TEXT,
    body TEXT NOT NULL,
    prev_hash BYTEA,
    hash BYTEA NOT NULL
);

-- No index on id or time: times rise with seq, and an id begins with its time.
-- What is chained to, and what rows are judged by, is the newest entry of a stream: it is
-- found in the entries themselves, which are signed, and in nothing that could be emptied.
CREATE INDEX trail_by_stream ON trail_entries (stream, seq);

-- Kinds, actors and actions repeat, so an index entry for each would cost every
-- append and tell little: it is enough to know in which blocks of the trail one
-- occurs at all.
CREATE TABLE trail_blocks (
    name TEXT NOT NULL,
    block BIGINT NOT NULL CHECK (block BETWEEN 0 AND 36028797018963966),
    PRIMARY KEY (name, block)
);
CREATE INDEX trail_blocks_by_block ON trail_blocks (block);

CREATE FUNCTION trail_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the trail is append-only';
    END
$$;

CREATE FUNCTION trail_in_sequence() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.seq IS DISTINCT FROM (SELECT coalesce(max(seq) + 1, 0) FROM safepoint.trail_entries) THEN
            RAISE EXCEPTION 'the trail is append-only: entries are added at its end';
        END IF;
        RETURN NEW;
    END
$$;

CREATE TRIGGER trail_entries_in_sequence BEFORE INSERT ON trail_entries FOR EACH ROW EXECUTE FUNCTION trail_in_sequence();
CREATE TRIGGER trail_entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON trail_entries FOR EACH STATEMENT EXECUTE FUNCTION trail_refuse();
CREATE TRIGGER trail_blocks_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON trail_blocks FOR EACH STATEMENT EXECUTE FUNCTION trail_refuse();
CREATE TRIGGER trail_log_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON trail_log FOR EACH STATEMENT EXECUTE FUNCTION trail_refuse();
CREATE TRIGGER trail_head_no_delete BEFORE DELETE OR TRUNCATE ON trail_head FOR EACH STATEMENT EXECUTE FUNCTION trail_refuse();
