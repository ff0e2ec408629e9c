-- Where each object lies. Rebuilt from the packs when it is lost.
CREATE TABLE object_packs (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  bytes INTEGER NOT NULL
);
CREATE TABLE object_places (
  id BLOB PRIMARY KEY,
  pack INTEGER NOT NULL,
  block INTEGER NOT NULL,
  position INTEGER NOT NULL,
  length INTEGER NOT NULL,
  form INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE object_generation (
  generation INTEGER NOT NULL
);
INSERT INTO object_generation (generation) VALUES (1);
