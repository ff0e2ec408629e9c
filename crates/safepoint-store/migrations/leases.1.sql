-- Who does which background work, until when by the clock of the database,
-- and how often the work has changed hands.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    expires BIGINT NOT NULL,
    fence BIGINT NOT NULL
);
