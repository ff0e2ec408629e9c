//! A database with one of everything.

/// One of everything that needs nothing but the server itself.
pub(crate) const EVERYTHING: &str = r#"
CREATE SCHEMA audit;
COMMENT ON SCHEMA audit IS 'who did what';
CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'it''s great');
CREATE DOMAIN public.positive AS integer DEFAULT 1 CONSTRAINT above CHECK (VALUE > 0) NOT NULL;
CREATE TYPE public.place AS (street text, number integer);
CREATE TYPE public.span AS RANGE (subtype = numeric);
CREATE FUNCTION public.twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT n * 2; $$;
CREATE FUNCTION public.atomic(n integer DEFAULT 1) RETURNS integer LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC SELECT CASE WHEN n > 0 THEN n ELSE -n END; END;
CREATE PROCEDURE audit.nothing() LANGUAGE plpgsql AS 'BEGIN NULL; END';
CREATE AGGREGATE public.product(integer) (SFUNC = int4mul, STYPE = integer, INITCOND = '1');
CREATE OPERATOR public.=== (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq);
CREATE COLLATION public.plain FROM "C";
CREATE TEXT SEARCH CONFIGURATION public.words (COPY = simple);
CREATE TEXT SEARCH DICTIONARY public.stopped (TEMPLATE = simple, stopwords = english);
CREATE CONVERSION public.latin FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8;
CREATE OPERATOR FAMILY public.numbers USING btree;
CREATE OPERATOR CLASS public.numbers FOR TYPE integer USING btree FAMILY public.numbers AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(integer, integer);
CREATE SEQUENCE audit.counter START 100 INCREMENT 5 CYCLE MAXVALUE 1000;
SELECT nextval('audit.counter'), nextval('audit.counter');
CREATE SEQUENCE audit.untouched;

CREATE TABLE public.people (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE public.plain NOT NULL,
    mood public.mood DEFAULT 'ok',
    age public.positive,
    home public.place,
    boss integer REFERENCES public.people (id),
    twice integer GENERATED ALWAYS AS (public.twice(boss)) STORED,
    tags text[],
    data jsonb,
    picture bytea,
    money numeric(12, 2) CHECK (money >= 0),
    born timestamptz,
    ratio double precision,
    span public.span,
    UNIQUE (name, age)
);
COMMENT ON TABLE public.people IS 'all of them; even Bob''s';
COMMENT ON COLUMN public.people.home IS 'where';
INSERT INTO public.people (name, mood, age, home, tags, data, picture, money, born, ratio, span)
    SELECT 'person ' || g, (ARRAY['sad', 'ok', 'it''s great'])[g % 3 + 1]::public.mood, g,
        ROW('street ' || g, g)::public.place, ARRAY['a', NULL, 'b,"c'], jsonb_build_object('n', g, 'x', NULL),
        decode(md5(g::text), 'hex'), g * 1.25, timestamptz '2024-02-29 12:00:00.123456+02' + g * interval '1 hour',
        1.0 / g, public.span(g, NULL)
    FROM generate_series(1, 500) g;
UPDATE public.people SET boss = id - 1 WHERE id > 1;
INSERT INTO public.people (name, data) VALUES (E'tab\there\nline\\backslash \\N "quotes" \u00e9\U0001f600', '""'), ('', NULL);
INSERT INTO public.people (name, ratio, born) VALUES ('odd', 'NaN', 'infinity');
CREATE INDEX people_lower ON public.people (lower(name)) WHERE boss IS NOT NULL;
CREATE INDEX people_data ON public.people USING gin (data);
COMMENT ON INDEX public.people_lower IS 'a partial one';
CREATE STATISTICS public.people_stats ON name, age FROM public.people;

CREATE TABLE public.orders (
    id bigserial PRIMARY KEY,
    person integer NOT NULL,
    made date NOT NULL,
    note text DEFAULT 'it''s; new' || now()::text
) WITH (fillfactor = 70);
ALTER TABLE public.orders ADD CONSTRAINT orders_person FOREIGN KEY (person) REFERENCES public.people (id)
    ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
INSERT INTO public.orders (person, made) SELECT g, date '2024-01-01' + g FROM generate_series(1, 100) g;
ALTER TABLE public.people ADD COLUMN favourite bigint REFERENCES public.orders (id);
UPDATE public.people SET favourite = id WHERE id <= 100;

CREATE TABLE audit.events (id integer, happened date NOT NULL, what text, PRIMARY KEY (id, happened))
    PARTITION BY RANGE (happened);
CREATE TABLE audit.events_2023 PARTITION OF audit.events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE audit.events_2024 PARTITION OF audit.events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')
    PARTITION BY LIST (id);
CREATE TABLE audit.events_2024_rest PARTITION OF audit.events_2024 DEFAULT;
CREATE INDEX events_what ON audit.events (what);
INSERT INTO audit.events SELECT g, date '2023-06-01' + g, 'event ' || g FROM generate_series(1, 400) g;
CREATE TABLE audit.noted (event integer, happened date, FOREIGN KEY (event, happened) REFERENCES audit.events);
INSERT INTO audit.noted VALUES (3, date '2023-06-04');

CREATE TABLE public.parent (a integer, b text);
CREATE TABLE public.child (c integer) INHERITS (public.parent);
INSERT INTO public.parent VALUES (1, 'parent');
INSERT INTO public.child VALUES (2, 'child', 3);
CREATE UNLOGGED TABLE public.fleeting (a integer);
INSERT INTO public.fleeting VALUES (1), (1);
CREATE FUNCTION public.short(t text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN RETURN twice(length(t)) < 100; END $$; -- finds `twice` by the usual path alone
CREATE TABLE public.names (a regclass, b regtype, c text CHECK (public.short(c)), d money, e interval, f xml, g bit(3), h tsvector,
    i point, j inet, k uuid, l public.mood[], m int4range, n "char", o timestamp(0), p char(5));
INSERT INTO public.names VALUES ('public.people', 'integer', 'x', '12.34', '1 mon 2 days 03:04:05', '<a>b</a>', '101',
    'a:1 b:2', '(1.5,2)', '::1/64', '00000000-0000-0000-0000-000000000001', '{ok,NULL}', '[1,5)', 'x', 'now', 'ab');
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE public.orders REPLICA IDENTITY FULL;
CREATE INDEX orders_person ON public.orders (person public.numbers);
ALTER TABLE public.orders CLUSTER ON orders_person;
CREATE VIEW public.editable AS SELECT id, note FROM public.orders WITH CHECK OPTION;
CREATE TABLE public.empty (a integer, b text);
CREATE TABLE public.no_columns ();
INSERT INTO public.no_columns DEFAULT VALUES;
INSERT INTO public.no_columns DEFAULT VALUES;

CREATE VIEW public.happy AS SELECT id, name FROM public.people WHERE mood = 'it''s great';
CREATE VIEW audit.happier WITH (security_barrier) AS SELECT h.*, twice(h.id) AS double FROM public.happy h;
COMMENT ON VIEW audit.happier IS 'a view on a view';
CREATE MATERIALIZED VIEW public.count AS SELECT count(*) AS people FROM audit.happier;
CREATE MATERIALIZED VIEW audit.above_count AS SELECT people + 1 AS more FROM public.count;
CREATE MATERIALIZED VIEW public.never AS SELECT 1 AS one WITH NO DATA;
CREATE UNIQUE INDEX count_people ON public.count (people);

CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO public.empty VALUES (1, 'a trigger; it fired'); -- $$ a comment
    RETURN NEW;
END $body$;
CREATE TRIGGER people_noted BEFORE INSERT ON public.people FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION audit.note();
CREATE TRIGGER people_off AFTER DELETE ON public.people FOR EACH STATEMENT EXECUTE FUNCTION audit.note();
ALTER TABLE public.people DISABLE TRIGGER people_off;
CREATE TRIGGER events_noted AFTER INSERT ON audit.events FOR EACH ROW EXECUTE FUNCTION audit.note();
CREATE RULE people_kept AS ON DELETE TO public.people WHERE OLD.id = 1 DO INSTEAD (SELECT 1; SELECT 2);
ALTER TABLE audit.noted ENABLE ROW LEVEL SECURITY;
CREATE POLICY noted_all ON audit.noted FOR SELECT USING (event > 0);
CREATE PUBLICATION feed FOR TABLE public.orders;
CREATE FUNCTION audit.watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE EVENT TRIGGER watched ON ddl_command_end EXECUTE FUNCTION audit.watch();
CREATE CAST (public.mood AS integer) WITH INOUT;

CREATE TABLE public."select ""x""; --" ("a b" integer PRIMARY KEY, "it's" text, "Größe
zwei" text, "." integer DEFAULT 1);
INSERT INTO public."select ""x""; --" VALUES (1, 'x', NULL, 2);
CREATE SCHEMA "we.ird ""schema""";
CREATE TABLE "we.ird ""schema"""."t.a" ("$1" integer);
INSERT INTO "we.ird ""schema"""."t.a" VALUES (7);

REVOKE EXECUTE ON FUNCTION public.twice(integer) FROM PUBLIC;
GRANT SELECT ON public.happy TO PUBLIC;
GRANT SELECT (id, name), UPDATE (name) ON public.people TO PUBLIC;
GRANT USAGE ON SCHEMA audit TO PUBLIC;
REVOKE ALL ON TABLE public.fleeting FROM CURRENT_USER;
GRANT SELECT, INSERT ON TABLE public.fleeting TO CURRENT_USER;
ALTER DEFAULT PRIVILEGES IN SCHEMA audit GRANT SELECT ON TABLES TO PUBLIC;
REFRESH MATERIALIZED VIEW public.count;
REFRESH MATERIALIZED VIEW audit.above_count;
"#;

/// What an agent might do to it.
pub(crate) const DAMAGE: &str = r#"
DROP TABLE audit.noted, public.orders CASCADE;
DROP EVENT TRIGGER watched;
DROP VIEW public.happy CASCADE;
DROP TYPE public.mood CASCADE;
ALTER TABLE public.people ADD COLUMN extra text, DROP COLUMN tags, ALTER COLUMN money TYPE integer;
DELETE FROM public.people WHERE id > 250;
INSERT INTO public.people (name, age) VALUES ('new', 3);
CREATE OR REPLACE FUNCTION public.twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT n * 3; $$;
CREATE TABLE public.since (a integer);
CREATE SCHEMA later;
CREATE TABLE later.also (a public.positive);
CREATE VIEW later.view AS SELECT * FROM public.since;
CREATE TYPE audit.later AS ENUM ('x');
CREATE FUNCTION audit.later(audit.later) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE PUBLICATION more FOR ALL TABLES;
CREATE CAST (bigint AS date) WITH INOUT;
DROP TABLE audit.events_2023;
CREATE TABLE audit.events_2025 PARTITION OF audit.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
SELECT setval('audit.counter', 777), nextval('audit.untouched');
GRANT ALL ON SCHEMA audit TO PUBLIC;
COMMENT ON SCHEMA audit IS 'forged';
COMMENT ON TABLE public.people IS NULL;
GRANT ALL ON public.empty TO PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA audit REVOKE SELECT ON TABLES FROM PUBLIC;
DROP SCHEMA "we.ird ""schema""" CASCADE;
DROP TEXT SEARCH CONFIGURATION public.words;
DROP OPERATOR FAMILY public.numbers USING btree CASCADE;
DROP CONVERSION public.latin;
INSERT INTO public.empty VALUES (1, NULL), (2, '');
DROP TABLE public.child;
"#;
