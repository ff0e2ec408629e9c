-- The packs that lie in the depot, in the order in which they came.
CREATE TABLE shared_packs (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    bytes BIGINT NOT NULL,
    list_bytes BIGINT NOT NULL,
    list_digest TEXT NOT NULL
);
