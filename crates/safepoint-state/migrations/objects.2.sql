-- Under which name a pack lies in the depot, if it does, and how much of the
-- list of shared packs is known here.
ALTER TABLE object_packs ADD COLUMN shared_as TEXT;
CREATE TABLE object_learned (
  number INTEGER NOT NULL
);
INSERT INTO object_learned (number) VALUES (0);
