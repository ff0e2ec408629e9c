-- How far each target of operators has been told of the trail. The trail is the outbox:
-- what is to be told stands there, in the transaction in which it happened.
CREATE TABLE control_tellings (
  target TEXT PRIMARY KEY,
  next BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  due BIGINT NOT NULL,
  claim TEXT NOT NULL
);
